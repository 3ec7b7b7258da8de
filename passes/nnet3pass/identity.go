package nnet3pass

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// RemoveIdentity removes components that copy their input: no-ops, and dropout in test mode.
func RemoveIdentity() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_remove_identity", Doc: "a component that copies its input is its input: propagate{no-op}(x) → x",
		On: []rewrite.Track{rewrite.TrackType[lower.Propagate]()}, Depth: 1,
		Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			op := a.Op().(lower.Propagate)
			id, ok := op.C.(component.Identity)
			switch {
			case !ok || !id.IsIdentity():
				return c.Miss("%s is no identity", op.Name), nil
			case op.StoreStats || op.UsesMemo:
				return c.Miss("%s has an effect besides its output", op.Name), nil
			case a.Inputs()[0].Type() != a.Out().Type():
				return c.Miss("%s changes the size", op.Name), nil
			}
			return rewrite.Result{Outputs: []*fgraph.Variable{a.Inputs()[0]}}, nil
		},
	}
}
