package saturate_test

import (
	"context"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

// replacing returns a rewriter that replaces applies.
func replacing(by func(a *fgraph.Apply) *fgraph.Variable) rewrite.GraphRewriter {
	return rewrite.FromFunc("later", "", nil, func(_ context.Context, g *fgraph.FunctionGraph, _ *profile.Recorder) error {
		for a := range g.Ordered() {
			if v := by(a); v != nil {
				if err := g.Replace(a.Out(), v, fgraph.Reason{}); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// TestCandidates: where the cheapest form does not pay after what runs later, others are tried:
// parts of it, and the cheapest one if all is fused.
func TestCandidates(t *testing.T) {
	undone := replacing(func(a *fgraph.Apply) *fgraph.Variable {
		if a.Op() == toy("h") {
			return call("dear", call("dear", a.Inputs()[0]))
		}
		return nil
	})
	fuses := replacing(func(a *fgraph.Apply) *fgraph.Variable {
		if in := a.Inputs()[0].Owner(); a.Op() == toy("f") && in != nil && in.Op() == toy("f") {
			return call("view", in.Inputs()[0])
		}
		return nil
	})
	const parts = "r:\n    (dear x) => (h x)\nq:\n    (dear_pair x x) => (cheap x)\n"
	for _, c := range []struct {
		later        rewrite.GraphRewriter
		tries        int
		rules, want  string
		graph        []string
		dearer, most float64
	}{
		{undone, 0, parts, "[dear(a), cheap(b), dear(c)]", []string{"(dear a)", "(dear_pair b b)", "(dear c)"}, 3, 3},
		{undone, 0, parts, "[cheap(dear(cheap(dear(a))))]", []string{"(dear_pair (dear (dear_pair (dear a) (dear a))) (dear (dear_pair (dear a) (dear a))))"}, 4, 10},
		{undone, 2, parts, "[dear(a), dear_pair(b, b), dear(c)]", []string{"(dear a)", "(dear_pair b b)", "(dear c)"}, 2, 2},
		{undone, 0, parts, "[dear(a)]", []string{"(dear a)"}, 1, 1},
		{nil, 0, parts, "[h(a), cheap(b)]", []string{"(dear a)", "(dear_pair b b)"}, 0, 0},
		{fuses, 0, "r:\n    (g x) => (f (f x))\n", "[f(f(a))]", []string{"(g a)"}, 0, 0},
		{undone, 0, "r:\n    (g x) => (f (f x))\n", "[g(a)]", []string{"(g a)"}, 1, 1},
	} {
		p := pass(t, c.rules)
		p.Later, p.Tries = c.later, c.tries
		got, rec := result(t, p, graph(t, c.graph...))
		if got != c.want {
			t.Errorf("%v becomes %s, not %s", c.graph, got, c.want)
		}
		dearer := 0.0
		for _, n := range rec.Counters {
			if n.Name == "dearer_later" {
				dearer = n.Value
			}
		}
		if dearer < c.dearer || dearer > c.most {
			t.Errorf("%v: %v forms are dearer", c.graph, dearer)
		}
	}
}
