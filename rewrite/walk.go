package rewrite

import (
	"context"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// An Order is a direction in which a driver goes through a graph.
type Order uint8

// The orders.
const (
	InToOut Order = iota // inputs before what is computed from them
	OutToIn
)

// A Walk shows every apply of a graph once to rules that track its op, until one
// of them fires.
type Walk struct {
	Name  string
	Rules []NodeRewriter
	Order Order
	// VisitNew makes the walk visit applies that it has brought in as well,
	// after all others.
	VisitNew bool
	// MaxUse ends a walk that visits new applies and does not come to an end,
	// see [Equilibrium].
	MaxUse float64

	set *ruleSet
}

// In2Out returns a walk in the direction of the computation.
func In2Out(name string, rules ...NodeRewriter) *Walk {
	w := &Walk{Name: name, Rules: rules}
	w.Prepare()
	return w
}

// Out2In returns a walk against the direction of the computation.
func Out2In(name string, rules ...NodeRewriter) *Walk {
	w := &Walk{Name: name, Rules: rules, Order: OutToIn}
	w.Prepare()
	return w
}

// Prepare is as [Equilibrium.Prepare].
func (w *Walk) Prepare() { w.set, _ = newRuleSet(w.Rules) }

// RewriterName returns w.Name.
func (w *Walk) RewriterName() string { return w.Name }

// Class returns the class of the walk in a profile.
func (w *Walk) Class() string { return profile.ClassTopo }

// Inplace reports whether one of the rules is an [Inplacer] that says so.
func (w *Walk) Inplace() bool { return anyInplace(w.Rules) }

// RewriterDoc says what the rules say of themselves.
func (w *Walk) RewriterDoc() string { return docsOf(w.Rules) }

// AddRequirements attaches what replacements are made through, and what watches
// over rules that make ops work in place.
func (w *Walk) AddRequirements(g *fgraph.FunctionGraph) error {
	return requirements(g, w.Inplace())
}

// Apply walks over the graph.
func (w *Walk) Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	rec.SetClass("", w.Class())
	rec.Nodes(g.NumApplies())
	e, err := newEngine(ctx, passFrom(ctx, w.Name, "Walk"), w.set, w.Rules, g, rec)
	if err != nil {
		return err
	}
	defer e.close()
	if w.VisitNew {
		e.limit = newLimit(e.opts, w.MaxUse, g.NumApplies())
	}
	if e.idle() {
		return nil
	}
	start := rec.Now()
	order, err := g.Toposort()
	rec.AddToposort(rec.Since(start))
	if err != nil {
		return &Error{Pass: e.pass, Err: err}
	}
	if w.Order == OutToIn {
		slices.Reverse(order)
	}
	start = rec.Now()
	defer func() { rec.AddLoop(rec.Since(start)) }()
	for i := 0; i < len(order) && !e.stopped; i++ {
		n := order[i]
		if !g.Contains(n) {
			continue
		}
		rule, err := e.visit(n)
		if err != nil {
			return err
		}
		if rule >= 0 && w.VisitNew {
			order = append(order, e.changes.imported...)
		}
	}
	return nil
}

// requirements attaches what replacements are made through, and for rules that
// make ops work in place what watches over those.
func requirements(g *fgraph.FunctionGraph, inplace bool) error {
	if inplace {
		if err := fgraph.WatchDestroyers(g); err != nil {
			return err
		}
	}
	return requireReplaceValidate(g)
}

// docsOf joins what rules say of themselves.
func docsOf(rules []NodeRewriter) string {
	var docs []string
	for _, r := range rules {
		if d, ok := r.(Documented); ok && d.RewriterDoc() != "" {
			docs = append(docs, d.RewriterDoc())
		}
	}
	return strings.Join(docs, "; ")
}

func anyInplace(rules []NodeRewriter) bool {
	for _, r := range rules {
		if i, ok := r.(Inplacer); ok && i.Inplace() {
			return true
		}
	}
	return false
}
