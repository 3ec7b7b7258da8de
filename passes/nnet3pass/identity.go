package nnet3pass

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// removeIdentity removes components that copy their input: no-ops, and dropout in test mode.
func removeIdentity() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_remove_identity", Doc: "a component that copies its input is its input: propagate{no-op}(x) → x",
		On: []rewrite.Track{rewrite.TrackType[lower.Propagate]()}, Depth: 1,
		Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			op := a.Op().(lower.Propagate)
			id, ok := op.C.(component.Identity)
			switch {
			case !ok || !id.IsIdentity():
				return c.Miss("%s is no identity", op.Name), nil
			case op.StoreStats || op.UsesMemo && len(a.Outputs()[1].Clients()) > 0:
				return c.Miss("%s has an effect besides its output", op.Name), nil
			case a.Inputs()[0].Type() != a.Out().Type():
				return c.Miss("%s changes the size", op.Name), nil
			}
			out := make([]*fgraph.Variable, len(a.Outputs()))
			out[0] = a.Inputs()[0]
			return rewrite.Result{Outputs: out}, nil
		},
	}
}

// removeIdentityBackward removes backward runs that copy the derivative they are given: those of no-ops, and of dropout that
// drops nothing. It is the network as it is now that counts: where dropout may set in later, a computation is optimized anew.
func removeIdentityBackward() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_remove_identity_backward", Doc: "a backward run that copies the derivative is the derivative: backprop{no-op}(dy) → dy",
		On: []rewrite.Track{rewrite.TrackType[lower.Backprop]()}, Depth: 1,
		Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			op := a.Op().(lower.Backprop)
			id, ok := op.C.(component.BackwardIdentity)
			switch {
			case !ok || !id.IsIdentityBackward():
				return c.Miss("%s is no identity", op.Name), nil
			case op.HasState || !op.HasDX || op.Accumulate:
				return c.Miss("%s has an effect besides the derivative, adds to it or makes none", op.Name), nil
			}
			dy := a.Inputs()[op.InputDeriv()]
			if dy.Type() != a.Out().Type() {
				return c.Miss("%s changes the size", op.Name), nil
			}
			return rewrite.Replace(dy), nil
		},
	}
}
