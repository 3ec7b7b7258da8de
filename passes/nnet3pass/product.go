package nnet3pass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// fuseEpilogue fuses an affine component with the row-wise component that alone reads its result.
// The fused component does both before it stores the result.
func fuseEpilogue() rewrite.Rule {
	return ruleFor("local_fuse_epilogue", "an affine is fused with the row-wise component after it: f(affine(x)) → affine+f(x)", 2,
		func(c *rewrite.Context, a *fgraph.Apply, op lower.Propagate) rewrite.Result {
			if !plain(op) || op.Accumulate || op.Precomputed != nil && !isIdentity(op.C) || len(a.Inputs()) != 1 {
				return c.Miss("%s has an effect or looks at other rows", op.Name)
			}
			inner, product, ok := productBelow(c, a)
			if !ok {
				return rewrite.Result{}
			}
			fused, ok := product.Follow(op.C)
			if !ok {
				return c.Miss("%s can't be computed while %s stores its result", op.Name, inner.Name)
			}
			inner.Component = lower.Component{C: fused, Number: -1, Name: inner.Name + "+" + op.Name}
			return rewrite.Replace(fgraph.NewApply(inner, a.Inputs()[0].Owner().Inputs(), a.Out().Type()).Out())
		})
}

// productBelow returns the product that computes the input of a, if nothing else reads its result.
// If the product accumulates, it must add to the sum before anything else happens to the result. If
// there is no such product, it tells c why not.
func productBelow(c *rewrite.Context, a *fgraph.Apply) (lower.Propagate, *component.Product, bool) {
	x := a.Inputs()[0]
	op, ok := ownerOp[lower.Propagate](x)
	if !ok || !plain(op) {
		c.Miss("the input is not the plain result of a component")
		return op, nil, false
	}
	if len(x.Clients()) != 1 {
		c.Miss("the result of %s has other uses", op.Name)
		return op, nil, false
	}
	p, ok := component.NewProduct(op.C)
	if !ok || op.Accumulate && !p.AddsFirst() {
		c.Miss("%s is not affine, or accumulates", op.Name)
		return op, nil, false
	}
	return op, p, true
}

// multiplyOut makes one linear map of two, where that takes fewer multiplications and the first one
// is fixed, such as a transform of the features before the first layer. Trained maps stay separate:
// in a recurrent network it depends on the number of requested times whether anything else reads
// the value between two maps, and the bits of a result must not. Maps whose product has fewer than
// leastProduct parameters stay separate too: they cost next to nothing, and the order of sums stays
// Kaldi's.
func multiplyOut() rewrite.Rule {
	return ruleFor("local_multiply_out", "a fixed linear map and the next one become one map where that is cheaper: A(B(x)) → (AB)(x)", 2,
		func(c *rewrite.Context, a *fgraph.Apply, op lower.Propagate) rewrite.Result {
			if !plain(op) || op.Accumulate || len(a.Inputs()) != 1 {
				return c.Miss("%s has an effect, or accumulates", op.Name)
			}
			outer, ok := component.NewProduct(op.C)
			if !ok {
				return c.Miss("%s is not affine", op.Name)
			}
			inner, first, ok := productBelow(c, a)
			if !ok {
				return rewrite.Result{}
			}
			if first.Base().Properties().Has(component.Updatable) {
				return c.Miss("%s is not fixed", inner.Name)
			}
			if n := first.InputDim() * outer.OutputDim(); n < leastProduct {
				return c.Miss("the product would have %d parameters, fewer than %d", n, leastProduct)
			}
			product, ok := outer.After(first)
			if !ok {
				return c.Miss("the product of %s and %s would cost more, or they are not simple", inner.Name, op.Name)
			}
			op.Component = lower.Component{C: product, Number: -1, Name: inner.Name + "·" + op.Name}
			op.Precomputed = inner.Precomputed
			return rewrite.Replace(fgraph.NewApply(op, a.Inputs()[0].Owner().Inputs(), a.Out().Type()).Out())
		})
}

// overwrite lets components that add to their output overwrite it instead, so that it need not be
// zero before.
func overwrite() rewrite.Rule {
	return ruleFor("local_overwrite", "a product that adds to zeros overwrites them instead", 1,
		func(c *rewrite.Context, a *fgraph.Apply, op lower.Propagate) rewrite.Result {
			if !plain(op) || op.Accumulate || op.C.Properties()&component.PropagateAdds == 0 {
				return c.Miss("%s has an effect, or does not add", op.Name)
			}
			product, ok := component.NewProduct(op.C)
			if !ok {
				return c.Miss("%s is not affine", op.Name)
			}
			op.Component = lower.Component{C: product, Number: -1, Name: op.Name}
			return replaceOp(a, op)
		})
}

// overwriteBackward is overwrite for backward runs that add to the derivative of the input.
func overwriteBackward() rewrite.Rule {
	return ruleFor("local_overwrite_backward", "a backward run that adds to zeros overwrites them instead", 1,
		func(c *rewrite.Context, a *fgraph.Apply, op lower.Backprop) rewrite.Result {
			if !op.HasDX || op.UsesMemo || op.InPlace || op.Accumulate || op.C.Properties()&component.BackpropAdds == 0 {
				return c.Miss("%s does not add to zeros, or needs the memo of its forward run", op.Name)
			}
			if _, ok := op.C.(component.Backpropper); !ok {
				return c.Miss("%s has no backward pass", op.Name)
			}
			op.Component = lower.Component{C: component.NewOverwriting(op.C), Number: -1, Name: op.Name}
			return replaceOp(a, op)
		})
}

// fuseResidual lets a product whose result is one of two terms of a sum accumulate onto the other
// term, αx in αx + f(z). With a bypass of a layer, a second matrix of the width of the layer never
// exists.
func fuseResidual() rewrite.Rule {
	return ruleFor("local_fuse_residual", "a product accumulates onto the other term of a sum: αx + affine(z) → affine onto αx", 1,
		func(c *rewrite.Context, a *fgraph.Apply, op *lower.Assemble) rewrite.Result {
			if len(op.Terms) != 2 {
				return c.Miss("%d terms", len(op.Terms))
			}
			for k := range op.Terms {
				t, other := &op.Terms[k], &op.Terms[1-k]
				x := a.Inputs()[t.Input]
				inner, ok := ownerOp[lower.Propagate](x)
				switch {
				case !ok || !plain(inner) || inner.Accumulate || len(x.Clients()) != 1 || t.Input == other.Input:
					c.Miss("input %d is not the plain result of a component that only this sum uses", t.Input)
					continue
				case origin(a.Inputs()[other.Input]) > origin(x):
					c.Miss("the other term is computed after %s, which would have to wait for it", inner.Name)
					continue
				case !whole(op, t) || x.Type() != a.Out().Type() || !covers(op, other):
					c.Miss("the terms are not whole matrices")
					continue
				}
				product, ok := component.NewProduct(inner.C)
				if !ok {
					c.Miss("%s is not affine", inner.Name)
					continue
				}
				// The product scales what it adds to, so no scaled copy is needed: the scale
				// becomes a part of the epilogue.
				onto, ok := product.Onto(other.Scale)
				if !ok {
					c.Miss("%s accumulates already", inner.Name)
					continue
				}
				added := a.Inputs()[other.Input]
				// A block is a view of what is there. Rows that are chosen one by one must be
				// brought together first, and then the product adds to that copy.
				if other.Contiguous() {
					added = lower.NewBlock(added, other.Src())
				} else {
					rows := *other
					rows.Input, rows.Scale = 0, 1
					added = lower.NewAssemble(op.Rows, op.Cols, []lower.Term{rows}, []*fgraph.Variable{added})
				}
				inner.Component = lower.Component{C: onto, Number: -1, Name: inner.Name + "+residual"}
				inner.Accumulate = true
				inputs := append(slices.Clone(x.Owner().Inputs()), added)
				return rewrite.Replace(fgraph.NewApply(inner, inputs, a.Out().Type()).Out())
			}
			return rewrite.Result{}
		})
}
