package saturate

import (
	"context"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/saturate/internal/egraph"
)

// candidate is a way to compute the graph.
type candidate struct {
	choice  *egraph.Choice
	results []*fgraph.Variable // what the roots become
	order   []egraph.Class     // the classes that are needed, after those of their inputs
	pairs   []fgraph.Replacement
	cost    float64 // of its applies
}

// candidate returns what is chosen, and nil if nothing changes.
func (s *run) candidate(ctx context.Context, choice *egraph.Choice) (*candidate, error) {
	x := &builder{b: s.b, choice: choice, made: make(map[egraph.Class]*fgraph.Variable), tuples: make(map[egraph.Class]*fgraph.Apply)}
	f := &candidate{choice: choice}
	for _, c := range s.roots() {
		v := x.build(ctx, c)
		if v == nil {
			return nil, ctx.Err()
		}
		f.results = append(f.results, v)
	}
	f.order, f.cost = x.order, x.cost
	// The roots are what the graph computes for others. Their replacement brings everything else
	// along.
	if f.pairs = replacements(s.in.roots, f.results); len(f.pairs) == 0 {
		return nil, nil
	}
	return f, nil
}

// same reports whether two candidates choose the same nodes.
func (f *candidate) same(o *candidate) bool {
	return slices.EqualFunc(f.order, o.order, func(c, d egraph.Class) bool { return c == d && f.choice.Node(c) == o.choice.Node(d) })
}

// cheapest returns the cheapest form by what applies and those of rules cost, and nil if that is
// the graph as it is.
func (s *run) cheapest(ctx context.Context, each func(*fgraph.Apply) float64, multiple float64) (*candidate, error) {
	choice, err := s.b.g.Extract(ctx, s.b.model(s.first, each, multiple), s.roots()...)
	if err != nil {
		return nil, err
	}
	return s.candidate(ctx, choice)
}

// newcomer is how much more applies of rules count for a form that keeps what does not gain much.
const newcomer = 1.5

// choose returns the form that replaces the graph, or nil. That is the cheapest one, unless what
// runs later makes less of it than of the graph as it is; then it is what becomes cheapest of some
// others: the cheapest one if all is fused that can be, one with fewer changes, and parts of the
// cheapest one.
func (s *run) choose(ctx context.Context) (*candidate, error) {
	f, err := s.cheapest(ctx, s.b.costOf, 1)
	if err != nil {
		return nil, err
	}
	if f != nil && !(f.cost < s.in.cost-float64(s.in.cost*preference)) {
		f = nil
	}
	// By the cost of the graph itself this is the answer. But the graph is not run as it is here:
	// fusion and in-place ops follow, and what is cheaper now may be dearer then.
	if s.p.Later == nil {
		return f, nil
	}
	t := &trials{s: s, left: s.p.Tries}
	if t.left == 0 {
		t.left = defaultTries
	}
	if f != nil {
		// If the cheapest form is also cheaper at the end, one trial is all.
		if _, err := t.try(ctx, f); err != nil || t.best != nil {
			return t.best, err
		}
	}
	// Otherwise other models of cost propose forms. The first assumes that all is fused that can
	// be: then intermediate results are free.
	if fused := s.b.p.fuser; fused != nil {
		if err := t.model(ctx, fused.FusedCost, 1); err != nil {
			return nil, err
		}
	}
	if f != nil {
		// The second makes new applies dearer, so only changes with a clear gain are left. At last
		// the cheapest form is taken apart.
		if err := t.model(ctx, s.b.costOf, newcomer); err != nil {
			return nil, err
		}
		if err := t.parts(ctx, f); err != nil {
			return nil, err
		}
	}
	if t.failed > 0 {
		s.h.Recorder().Count("dearer_later", float64(t.failed), "")
	}
	return t.best, nil
}
