package nnet3pass

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// fuseEpilogue joins an affine component and the row-wise component that alone reads its result into one that does both
// before it stores the result.
func fuseEpilogue() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_fuse_epilogue", Doc: "an affine and the row-wise component behind it are one: f(affine(x)) → affine+f(x)",
		On: []rewrite.Track{rewrite.TrackType[lower.Propagate]()}, Depth: 2,
		Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			op := a.Op().(lower.Propagate)
			if !plain(op) || op.Accumulate || op.Precomputed != nil && !isIdentity(op.C) || len(a.Inputs()) != 1 {
				return c.Miss("%s has an effect or looks at other rows", op.Name), nil
			}
			inner, product, ok := productBelow(c, a)
			if !ok {
				return rewrite.Result{}, nil
			}
			fused, ok := product.Follow(op.C)
			if !ok {
				return c.Miss("%s can't be done while %s stores its result", op.Name, inner.Name), nil
			}
			out := inner
			out.Component = lower.Component{C: fused, Number: -1, Name: inner.Name + "+" + op.Name}
			return rewrite.Replace(fgraph.NewApply(out, a.Inputs()[0].Owner().Inputs(), a.Out().Type()).Out()), nil
		},
	}
}

// productBelow returns the product that makes the input of a, if nobody else reads its result and what it adds to, if it does, comes before
// all that is done to the sums. If not, c
// is told why.
func productBelow(c *rewrite.Context, a *fgraph.Apply) (lower.Propagate, *component.Product, bool) {
	x := a.Inputs()[0]
	op, ok := ownerOp[lower.Propagate](x)
	if !ok || !plain(op) {
		c.Miss("the input is no component's plain result")
		return op, nil, false
	}
	if len(x.Clients()) != 1 {
		c.Miss("the result of %s has other uses", op.Name)
		return op, nil, false
	}
	p, ok := component.NewProduct(op.C)
	if !ok || op.Accumulate && !p.AddsFirst() {
		c.Miss("%s is not affine, or adds to something", op.Name)
		return op, nil, false
	}
	return op, p, true
}

// multiplyOut makes one linear map of two, where that has fewer multiplications and the first one is fixed, such as a transform of
// the features in front of the first layer. Maps that are trained stay apart: whether nobody else reads what is between two of
// them depends, in a recurrent network, on how many times are asked for, and the bits of a result should not. Maps that would have
// fewer than least parameters as one stay apart too: they cost nothing to speak of, and the order of sums stays Kaldi's.
func multiplyOut(least int) rewrite.Rule {
	return rewrite.Rule{
		Name: "local_multiply_out", Doc: "of a fixed linear map and the one behind it, one is made where that is cheaper: A(B(x)) → (AB)(x)",
		On: []rewrite.Track{rewrite.TrackType[lower.Propagate]()}, Depth: 2,
		Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			op := a.Op().(lower.Propagate)
			if !plain(op) || op.Accumulate || len(a.Inputs()) != 1 {
				return c.Miss("%s has an effect, or adds to something", op.Name), nil
			}
			outer, ok := component.NewProduct(op.C)
			if !ok {
				return c.Miss("%s is not affine", op.Name), nil
			}
			inner, first, ok := productBelow(c, a)
			if !ok {
				return rewrite.Result{}, nil
			}
			if first.Base().Properties().Has(component.Updatable) {
				return c.Miss("%s is not fixed", inner.Name), nil
			}
			if n := first.InputDim() * outer.OutputDim(); n < least {
				return c.Miss("as one they would have %d parameters, fewer than %d", n, least), nil
			}
			product, ok := outer.After(first)
			if !ok {
				return c.Miss("%s and %s multiplied out would be dearer, or are not simple", inner.Name, op.Name), nil
			}
			op.Component = lower.Component{C: product, Number: -1, Name: inner.Name + "·" + op.Name}
			op.Precomputed = inner.Precomputed
			return rewrite.Replace(fgraph.NewApply(op, a.Inputs()[0].Owner().Inputs(), a.Out().Type()).Out()), nil
		},
	}
}

// overwrite lets components that add to their output overwrite it instead, so that it need not be zero before.
func overwrite() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_overwrite", Doc: "a product that adds to zeros overwrites them instead",
		On: []rewrite.Track{rewrite.TrackType[lower.Propagate]()}, Depth: 1,
		Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			op := a.Op().(lower.Propagate)
			if !plain(op) || op.Accumulate || op.C.Properties()&component.PropagateAdds == 0 {
				return c.Miss("%s has an effect, or does not add", op.Name), nil
			}
			product, ok := component.NewProduct(op.C)
			if !ok {
				return c.Miss("%s is not affine", op.Name), nil
			}
			op.Component = lower.Component{C: product, Number: -1, Name: op.Name}
			return replaceOp(a, op), nil
		},
	}
}

// overwriteBackward is Overwrite for backward runs that add to the derivative of the input.
func overwriteBackward() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_overwrite_backward", Doc: "a backward run that adds to zeros overwrites them instead",
		On: []rewrite.Track{rewrite.TrackType[lower.Backprop]()}, Depth: 1,
		Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			op := a.Op().(lower.Backprop)
			if !op.HasDX || op.UsesMemo || op.InPlace || op.Accumulate || op.C.Properties()&component.BackpropAdds == 0 {
				return c.Miss("%s does not add to zeros, or needs its forward run's memo", op.Name), nil
			}
			if _, ok := op.C.(component.Backpropper); !ok {
				return c.Miss("%s has no backward pass", op.Name), nil
			}
			op.Component = lower.Component{C: component.NewOverwriting(op.C), Number: -1, Name: op.Name}
			return replaceOp(a, op), nil
		},
	}
}

// fuseResidual lets a product add its result to the other term of a sum, where the product alone makes one term:
// αx + f(z) is a product that runs over αx. With a bypass of a layer, a second matrix of the layer's width never exists.
func fuseResidual() rewrite.Rule {
	return assembleRule("local_fuse_residual", "a product adds to the other term of a sum itself: αx + affine(z) → affine onto αx",
		func(c *rewrite.Context, a *fgraph.Apply, op *lower.Assemble) *fgraph.Variable {
			if len(op.Terms) != 2 {
				c.Miss("%d terms", len(op.Terms))
				return nil
			}
			for k := range op.Terms {
				t, other := &op.Terms[k], &op.Terms[1-k]
				x := a.Inputs()[t.Input]
				inner, ok := ownerOp[lower.Propagate](x)
				switch {
				case !ok || !plain(inner) || inner.Accumulate || len(x.Clients()) != 1 || t.Input == other.Input:
					c.Miss("input %d is no component's plain result that only this sum uses", t.Input)
					continue
				case origin(a.Inputs()[other.Input]) > origin(x):
					c.Miss("the other term is made after %s, which would have to wait for it", inner.Name)
					continue
				case !covers(op, t) || t.Scale != 1 || !t.Contiguous() || x.Type() != a.Out().Type() || !covers(op, other):
					c.Miss("the terms are not whole matrices")
					continue
				}
				product, ok := component.NewProduct(inner.C)
				if !ok {
					c.Miss("%s is not affine", inner.Name)
					continue
				}
				onto, ok := product.Onto(other.Scale)
				if !ok {
					c.Miss("%s adds to something already", inner.Name)
					continue
				}
				added := a.Inputs()[other.Input]
				if other.Contiguous() {
					added = lower.NewBlock(added, other.Src())
				} else {
					rows := *other
					rows.Input, rows.Scale = 0, 1
					added = lower.NewAssemble(op.Rows, op.Cols, []lower.Term{rows}, []*fgraph.Variable{added})
				}
				inner.Component = lower.Component{C: onto, Number: -1, Name: inner.Name + "+residual"}
				inner.Accumulate = true
				return fgraph.NewApply(inner, append(append([]*fgraph.Variable(nil), x.Owner().Inputs()...), added), a.Out().Type()).Out()
			}
			return nil
		})
}

// covers reports whether the term makes every element of the result.
func covers(op *lower.Assemble, t *lower.Term) bool {
	return t.NumRows == op.Rows && t.NumCols == op.Cols
}

// plain reports whether an op does nothing but compute its output, not in place.
func plain(op lower.Propagate) bool {
	return !op.StoreStats && !op.UsesMemo && !op.InPlace && op.C.Properties()&component.Random == 0
}

func isIdentity(c component.Component) bool {
	id, ok := c.(component.Identity)
	return ok && id.IsIdentity()
}
