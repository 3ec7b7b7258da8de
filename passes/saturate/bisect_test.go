package saturate_test

import (
	"context"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

// TestBisect: the steps of a saturation count as rewrites, so bisection names the rule among them
// that makes the difference.
func TestBisect(t *testing.T) {
	p := pass(t, "good:\n    (dear x) => (f x)\nbetter:\n    (f (f x)) => (g x)\nwrong:\n    (neg (g x)) <=> (h (g x))\nlast:\n    (add (h x) (h x)) => (cheap x)\n")
	run := func(ctx context.Context) *fgraph.FunctionGraph {
		g := graph(t, "(add (neg (dear (dear a))) (neg (dear (dear a))))", "(dear b)")
		if err := rewrite.Run(ctx, p, g, nil); err != nil {
			t.Fatal(err)
		}
		if err := g.Check(); err != nil {
			t.Error(err)
		}
		return g
	}
	runs := 0
	culprit, found := rewrite.Bisect(t.Context(), func(ctx context.Context) bool {
		runs++
		for a := range run(ctx).Applies() {
			if a.Op() == toy("h") || a.Op() == toy("cheap") {
				return false
			}
		}
		return true
	})
	if !found || culprit.Pass != "saturate" || culprit.Rule != "wrong" || runs > 10 {
		t.Errorf("%v after %d runs", culprit, runs)
	}
	var texts []string
	for n := range 20 {
		if text := run(rewrite.WithOptions(t.Context(), rewrite.Options{Allow: rewrite.Budget(n)})).String(); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if all := run(t.Context()).String(); len(texts) < 5 || texts[len(texts)-1] != all {
		t.Errorf("%v, not to %s", texts, all)
	}
	// A rule that may not make a step ends the saturation there, and is not let in by another way.
	without := run(rewrite.WithOptions(t.Context(), rewrite.Options{Allow: func(why fgraph.Reason) bool { return why.Rule != "wrong" }}))
	for a := range without.Applies() {
		if a.Op() == toy("h") || a.Op() == toy("cheap") {
			t.Error(without)
		}
	}
}
