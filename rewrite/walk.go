package rewrite

import (
	"context"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// An Order is the direction in which a driver traverses a graph.
type Order uint8

// The orders.
const (
	InToOut Order = iota // inputs before their clients
	OutToIn              // clients before their inputs
)

// A Walk shows every apply of a graph once to the rules that track its op, until one of them
// fires.
type Walk struct {
	Name  string
	Rules []NodeRewriter
	Order Order
	// ByOp makes the walk look up the applies of the tracked ops instead of traversing the
	// graph. This pays if they are few. The rules must track single ops, see [TrackOp]. The
	// order is InToOut, and VisitNew is implied.
	ByOp bool
	// VisitNew makes the walk also visit applies that it has inserted, after all others.
	VisitNew bool
	// MaxUse ends a walk that visits new applies and does not terminate, see [Equilibrium].
	MaxUse float64

	set *preparation
}

// In2Out returns a walk from the inputs to the outputs.
func In2Out(name string, rules ...NodeRewriter) *Walk {
	w := &Walk{Name: name, Rules: rules}
	w.Prepare()
	return w
}

// Out2In returns a walk from the outputs to the inputs.
func Out2In(name string, rules ...NodeRewriter) *Walk {
	w := &Walk{Name: name, Rules: rules, Order: OutToIn}
	w.Prepare()
	return w
}

// Prepare is like [Equilibrium.Prepare].
func (w *Walk) Prepare() { w.set = &preparation{rules: w.Rules} }

// MakeRules makes the rules that are made on first use.
func (w *Walk) MakeRules(_ *fgraph.FunctionGraph, rec *profile.Recorder) { w.set.record(rec) }

// Describe describes the walk by its rules.
func (w *Walk) Describe() Description { return w.set.get().describe(w.Name, w.class(), w.Rules) }

// Outline describes the walk by the outlines of its rules.
func (w *Walk) Outline() Description { return summarize(w.Name, w.class(), w.Rules, Outline) }

func (w *Walk) class() string {
	if w.ByOp {
		return profile.ClassOpKey
	}
	return profile.ClassTopo
}

// AddRequirements attaches the features that the walk and its rules need.
func (w *Walk) AddRequirements(g *fgraph.FunctionGraph) error {
	if w.ByOp {
		if err := g.Attach(fgraph.NewNodeFinder()); err != nil {
			return err
		}
	}
	return watchDestroyers(g, w.Describe().Destroys)
}

// Apply walks over the graph.
func (w *Walk) Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	rec.SetClass("", w.class())
	rec.Nodes(g.NumApplies())
	// Most passes of a pipeline have nothing to do. A record says of each rule that it had not.
	if set := w.set.get(); !w.ByOp && !rec.Enabled() && set.is(w.Rules) && set.idle(g) {
		return nil
	}
	if w.ByOp {
		if err := w.AddRequirements(g); err != nil {
			return err
		}
	}
	e, err := newEngine(ctx, passFrom(ctx, w.Name, "Walk"), w.set.get(), w.Rules, g, rec)
	if err != nil {
		return err
	}
	defer e.close()
	visitNew := w.VisitNew || w.ByOp
	if visitNew {
		e.limit = newLimit(e.opts, w.MaxUse, g.NumApplies())
	}
	nodes, err := w.nodes(e)
	if err != nil {
		return &Error{Pass: e.pass, Err: err}
	}
	if len(nodes) == 0 {
		return nil
	}
	start := rec.Now()
	defer func() { rec.AddLoop(rec.Since(start)) }()
	for i := 0; i < len(nodes) && !e.stopped; i++ {
		n := nodes[i]
		// Replacements made earlier in this walk may have removed it.
		if !g.Contains(n) {
			continue
		}
		rule, err := e.visit(n)
		if err != nil {
			return err
		}
		if rule >= 0 && visitNew {
			// At the end of the list, which bounds how often rules that feed each other alternate:
			// MaxUse counts them, as in an equilibrium.
			nodes = append(nodes, e.changes.imported...)
		}
	}
	return nil
}

// nodes returns the applies to visit, in order.
func (w *Walk) nodes(e *engine) ([]*fgraph.Apply, error) {
	if w.ByOp {
		return w.nodesByOp(e.g)
	}
	if e.asker.idle(e.g) {
		return nil, nil
	}
	start := e.rec.Now()
	order, err := e.g.Toposort()
	e.rec.AddToposort(e.rec.Since(start))
	if w.Order == OutToIn {
		slices.Reverse(order)
	}
	return order, err
}

// nodesByOp returns the applies of the tracked ops, inputs before clients.
func (w *Walk) nodesByOp(g *fgraph.FunctionGraph) ([]*fgraph.Apply, error) {
	finder, _ := fgraph.FeatureOf[*fgraph.NodeFinder](g)
	var ops []fgraph.Op
	var nodes []*fgraph.Apply
	for _, r := range w.Rules {
		tracks := r.Tracks()
		if tracks == nil {
			return nil, fmt.Errorf("%w: %s tracks every op; a walk by op wants single ones", ErrRule, Describe(r).Name)
		}
		for _, t := range tracks {
			if t.op == nil {
				return nil, fmt.Errorf("%w: %s tracks the type %v; a walk by op wants single ones", ErrRule, Describe(r).Name, t)
			}
			if !slices.ContainsFunc(ops, t.matches) {
				ops = append(ops, t.op)
				nodes = append(nodes, finder.Nodes(t.op)...)
			}
		}
	}
	// The finder knows applies by op and by number. The order of the graph brings inputs before
	// clients without sorting the whole graph.
	slices.SortFunc(nodes, func(a, b *fgraph.Apply) int {
		if g.ComesBefore(a, b) {
			return -1
		}
		return 1
	})
	return nodes, nil
}

// watchDestroyers attaches a [fgraph.DestroyHandler] for a rewriter that inserts ops that
// destroy their inputs.
func watchDestroyers(g *fgraph.FunctionGraph, destroys bool) error {
	if !destroys {
		return nil
	}
	return fgraph.WatchDestroyers(g)
}
