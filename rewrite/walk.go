package rewrite

import (
	"context"
	"slices"

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

// AddRequirements attaches what replacements are made through.
func (w *Walk) AddRequirements(g *fgraph.FunctionGraph) error { return requireReplaceValidate(g) }

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

func anyInplace(rules []NodeRewriter) bool {
	for _, r := range rules {
		if i, ok := r.(Inplacer); ok && i.Inplace() {
			return true
		}
	}
	return false
}
