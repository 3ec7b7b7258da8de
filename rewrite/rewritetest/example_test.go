package rewritetest_test

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/rewrite/rewritetest"
)

// A test of a rule that drops double negations.
func Example() {
	t := &broken{} // the *testing.T of the test
	neg := func(v *fgraph.Variable) *fgraph.Variable {
		return fgraph.NewApply(op("neg"), []*fgraph.Variable{v}, real{}).Out()
	}
	rule := rewrite.Rule{Name: "double_negation", On: []rewrite.Track{rewrite.TrackOp(op("neg"))}, Depth: 2,
		Fn: func(c *rewrite.Context, n *fgraph.Apply) (rewrite.Result, error) {
			inner := n.Inputs()[0].Owner()
			if inner == nil || inner.Op() != op("neg") {
				return c.Miss("the argument is not a negation"), nil
			}
			return rewrite.Replace(inner.Inputs()[0]), nil
		}}
	x := fgraph.NewInput(real{}, "x")
	rewritetest.Fires(t, rule, rewritetest.Graph(t, []*fgraph.Variable{x}, neg(neg(x))), "[x]")
	x = fgraph.NewInput(real{}, "x")
	rewritetest.DoesNotFire(t, rule, rewritetest.Graph(t, []*fgraph.Variable{x}, neg(x)))
	fmt.Println("passed")
	// Output: passed
}
