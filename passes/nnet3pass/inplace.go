package nnet3pass

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// propagateInPlace lets components that can write over their input do so where the input is not needed later, and lets those
// that accumulate do it where the sum so far lies. The destroy handler vetoes what would destroy something that is still needed.
func propagateInPlace() rewrite.GraphRewriter {
	return rewrite.In2Out("propagate_in_place", rewrite.Rule{
		Name: "propagate_in_place", Destroys: true, Doc: "a forward run writes over its input, or over what it adds to, where nothing later reads that",
		On: []rewrite.Track{rewrite.TrackType[lower.Propagate]()},
		Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			op := a.Op().(lower.Propagate)
			if op.InPlace || !op.Accumulate && op.C.Properties()&component.PropagateInPlace == 0 {
				return c.Miss("%s can't run in place, or does already", op.Name), nil
			}
			k := max(op.InputAdded(), 0)
			if who := laterReader(a, k); who != nil {
				return c.Miss("%v reads the input later", who.Op()), nil
			}
			op.InPlace = true
			return replaceOp(a, op), nil
		},
	})
}

// backpropInPlace lets components that can write the input derivative over the output derivative do so.
func backpropInPlace() rewrite.GraphRewriter {
	return rewrite.In2Out("backprop_in_place", rewrite.Rule{
		Name: "backprop_in_place", Destroys: true, Doc: "a backward run writes over the derivative it is given, or over what it adds to, where nothing later reads that",
		On: []rewrite.Track{rewrite.TrackType[lower.Backprop]()},
		Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			op := a.Op().(lower.Backprop)
			if op.InPlace || !op.HasDX || !op.Accumulate && op.C.Properties()&component.BackpropInPlace == 0 {
				return c.Miss("%s can't run in place, or does already", op.Name), nil
			}
			k := op.InputDeriv()
			if op.Accumulate {
				k = op.InputAdded()
			}
			if who := laterReader(a, k); who != nil {
				return c.Miss("%v reads the derivative later", who.Op()), nil
			}
			op.InPlace = true
			return replaceOp(a, op), nil
		},
	})
}

// replaceOp proposes the same apply with another op.
func replaceOp(a *fgraph.Apply, op fgraph.Op) rewrite.Result {
	return rewrite.Result{Outputs: fgraph.NewApply(op, a.Inputs(), outputTypes(a)...).Outputs()}
}

// laterReader finds an apply that reads what input k of a shows, and that stood after a in the original order. The destroy
// handler would let it run before a, but to keep the order keeps lives short.
func laterReader(a *fgraph.Apply, k int) *fgraph.Apply {
	root, r := lower.Resolve(a.Inputs()[k])
	later := func(c fgraph.Client) bool { return c.Apply != nil && c.Apply != a && c.Apply.Origin() > a.Origin() }
	for _, c := range root.Clients() {
		if c.Apply == nil {
			continue
		}
		b, ok := c.Apply.Op().(lower.Block)
		if !ok {
			if later(c) {
				return c.Apply
			}
			continue
		}
		if !b.Rect.Overlaps(r) {
			continue
		}
		for _, c := range c.Apply.Out().Clients() {
			if later(c) {
				return c.Apply
			}
		}
	}
	return nil
}
