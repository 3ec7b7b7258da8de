package saturate_test

import (
	"strings"
	"testing"

	"github.com/nnopt/nnopt/rewrite"
)

// TestTracedTerm: the trace of a saturation shows the terms that change, also where a chain of rewrites
// deep below the root leads to one of the root.
func TestTracedTerm(t *testing.T) {
	p := pass(t, "first:\n    (dear x) => (double x)\nsecond:\n    (double x) => (cheap x)\nturn:\n    (neg (cheap x)) => (cheap (neg x))\n"+
		"last:\n    (dear (f (g (h (f (g (h (cheap x)))))))) => (cheap x)\n")
	g := graph(t, "(dear (f (g (h (f (g (h (neg (dear a)))))))))")
	var told strings.Builder
	if err := rewrite.Run(rewrite.WithOptions(t.Context(), rewrite.Options{Trace: rewrite.TraceTo(&told)}), p, g, nil); err != nil {
		t.Fatal(err)
	}
	if got := told.String(); strings.Count(got, "…") != 1 || !strings.HasPrefix(got, `rewriting: saturate/first: dear(a) -> double(a)
rewriting: saturate/second: double(a) -> cheap(a)
rewriting: saturate/turn: neg(cheap(a)) -> cheap(neg(a))
rewriting: saturate/last: dear(f(g(…))) -> cheap(neg(a))
`) {
		t.Error(got)
	}
}
