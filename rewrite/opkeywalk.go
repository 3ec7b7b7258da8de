package rewrite

import (
	"context"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// An OpKeyWalk shows rules the applies of the ops that they track, which it finds
// without going through the graph: it pays where these are few. The rules have
// to track single ops, see [TrackOp].
//
// Inputs come before what is computed from them. What a replacement brings in is
// visited as well if a rule tracks its op, after all others.
type OpKeyWalk struct {
	Name  string
	Rules []NodeRewriter
	// MaxUse ends a walk that does not come to an end, see [Equilibrium].
	MaxUse float64

	set *ruleSet
}

// Prepare is as [Equilibrium.Prepare].
func (w *OpKeyWalk) Prepare() { w.set, _ = newRuleSet(w.Rules) }

// RewriterName returns w.Name.
func (w *OpKeyWalk) RewriterName() string { return w.Name }

// Class returns the class of the walk in a profile.
func (w *OpKeyWalk) Class() string { return profile.ClassOpKey }

// Inplace reports whether one of the rules is an [Inplacer] that says so.
func (w *OpKeyWalk) Inplace() bool { return anyInplace(w.Rules) }

// RewriterDoc says what the rules say of themselves.
func (w *OpKeyWalk) RewriterDoc() string { return docsOf(w.Rules) }

// AddRequirements attaches what finds applies and what replacements are made
// through.
func (w *OpKeyWalk) AddRequirements(g *fgraph.FunctionGraph) error {
	if err := g.Attach(fgraph.NewNodeFinder()); err != nil {
		return err
	}
	return requirements(g, w.Inplace())
}

// Apply visits the applies of the tracked ops.
func (w *OpKeyWalk) Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	rec.SetClass("", w.Class())
	rec.Nodes(g.NumApplies())
	if err := w.AddRequirements(g); err != nil {
		return err
	}
	e, err := newEngine(ctx, passFrom(ctx, w.Name, "OpKeyWalk"), w.set, w.Rules, g, rec)
	if err != nil {
		return err
	}
	defer e.close()
	ops, err := w.ops()
	if err != nil {
		return &Error{Pass: e.pass, Err: err}
	}
	finder, _ := fgraph.FeatureOf[*fgraph.NodeFinder](g)
	var nodes []*fgraph.Apply
	for _, op := range ops {
		nodes = append(nodes, finder.Nodes(op)...)
	}
	slices.SortFunc(nodes, func(a, b *fgraph.Apply) int {
		if g.ComesBefore(a, b) {
			return -1
		}
		return 1
	})
	e.limit = newLimit(e.opts, w.MaxUse, g.NumApplies())
	start := rec.Now()
	defer func() { rec.AddLoop(rec.Since(start)) }()
	for i := 0; i < len(nodes) && !e.stopped; i++ {
		if !g.Contains(nodes[i]) {
			continue
		}
		rule, err := e.visit(nodes[i])
		if err != nil {
			return err
		}
		if rule >= 0 {
			nodes = append(nodes, e.changes.imported...)
		}
	}
	return nil
}

// ops returns the tracked ops, each once.
func (w *OpKeyWalk) ops() ([]fgraph.Op, error) {
	var ops []fgraph.Op
	for _, r := range w.Rules {
		tracks := r.Tracks()
		if tracks == nil {
			return nil, fmt.Errorf("%w: %s tracks every op; a walk by op wants single ones", ErrRule, NameOf(r))
		}
		for _, t := range tracks {
			if t.op == nil {
				return nil, fmt.Errorf("%w: %s tracks the type %v; a walk by op wants single ones", ErrRule, NameOf(r), t)
			}
			if !slices.ContainsFunc(ops, func(o fgraph.Op) bool { return fgraph.OpsEqual(o, t.op) }) {
				ops = append(ops, t.op)
			}
		}
	}
	return ops, nil
}
