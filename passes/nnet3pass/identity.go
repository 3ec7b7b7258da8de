package nnet3pass

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// removeIdentity removes components that copy their input: no-ops, and dropout in test mode.
func removeIdentity() rewrite.Rule {
	return ruleFor("local_remove_identity", "a component that copies its input is its input: propagate{no-op}(x) → x", 1,
		func(c *rewrite.Context, a *fgraph.Apply, op lower.Propagate) rewrite.Result {
			switch {
			case !isIdentity(op.C):
				return c.Miss("%s is not an identity", op.Name)
			case op.StoreStats || op.UsesMemo && len(a.Outputs()[1].Clients()) > 0:
				return c.Miss("%s has an effect besides its output", op.Name)
			case a.Inputs()[0].Type() != a.Out().Type():
				return c.Miss("%s changes the size", op.Name)
			}
			out := make([]*fgraph.Variable, len(a.Outputs()))
			out[0] = a.Inputs()[0]
			return rewrite.Replace(out...)
		})
}

func isIdentity(c component.Component) bool {
	id, ok := c.(component.Identity)
	return ok && id.IsIdentity()
}

// removeIdentityBackward removes backward runs that copy the derivative they are given: those of
// no-ops, and of dropout that drops nothing. Dropout counts as it is now: if it may start to drop,
// the computation has to be optimized again.
func removeIdentityBackward() rewrite.Rule {
	return ruleFor("local_remove_identity_backward", "a backward run that copies the derivative is the derivative: backprop{no-op}(dy) → dy", 1,
		func(c *rewrite.Context, a *fgraph.Apply, op lower.Backprop) rewrite.Result {
			id, ok := op.C.(component.BackwardIdentity)
			switch {
			case !ok || !id.IsIdentityBackward():
				return c.Miss("%s is not an identity", op.Name)
			case op.HasState || !op.HasDX || op.Accumulate:
				return c.Miss("%s has an effect besides the derivative, adds to it or has none", op.Name)
			}
			dy := a.Inputs()[op.InputDeriv()]
			if dy.Type() != a.Out().Type() {
				return c.Miss("%s changes the size", op.Name)
			}
			return rewrite.Replace(dy)
		})
}
