package nnet3pass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// accumulate lets a component that adds to its output, and whose output is a term of a sum, add to
// the other terms. Otherwise it would add to zeros, and the result would then be added to the other
// terms.
func accumulate() rewrite.Rule {
	return ruleFor("local_accumulate", "a component that adds to its output adds to the other terms of a sum: x + f(z) → f(z) onto x", 1,
		func(c *rewrite.Context, a *fgraph.Apply, op *lower.Assemble) rewrite.Result {
			if len(op.Terms) < 2 {
				return c.Miss("not a sum")
			}
			// Of several such components the last one must be it: the sum of the others has to
			// exist when it runs. The order of additions stays, since it would be added last
			// anyway.
			last := -1
			for k := range op.Terms {
				if t := &op.Terms[k]; whole(op, t) && a.Inputs()[t.Input].Type() == a.Out().Type() && addsAlone(a.Inputs()[t.Input]) {
					if last < 0 || origin(a.Inputs()[t.Input]) > origin(a.Inputs()[op.Terms[last].Input]) {
						last = k
					}
				}
			}
			if last < 0 {
				return c.Miss("no term is the whole output of a component that adds and has no other use")
			}
			adder := a.Inputs()[op.Terms[last].Input]
			var rest []lower.Term
			for k := range op.Terms {
				if k == last {
					continue
				}
				// A later term would have to be computed earlier, or the component to wait, and its
				// input and its place with it.
				if in := a.Inputs()[op.Terms[k].Input]; in == adder || origin(in) > origin(adder) {
					return c.Miss("another term is computed later")
				}
				rest = append(rest, op.Terms[k])
			}
			return accumulateOnto(a, adder.Owner(), adder.Owner().Op(), op, rest)
		})
}

// fuseResidualBackward lets the backward run of a product whose derivative is one of two terms of a
// sum add it to the other term. With a bypass of a layer, a second matrix of the width of the layer
// never exists.
func fuseResidualBackward() rewrite.Rule {
	return ruleFor("local_fuse_residual_backward", "the backward run of a product accumulates onto the other term of a sum: αx + affine*(dy) → affine* onto αx", 1,
		func(c *rewrite.Context, a *fgraph.Apply, op *lower.Assemble) rewrite.Result {
			if len(op.Terms) != 2 {
				return c.Miss("%d terms", len(op.Terms))
			}
			for k := range op.Terms {
				t, other := &op.Terms[k], &op.Terms[1-k]
				x := a.Inputs()[t.Input]
				inner, ok := ownerOp[lower.Backprop](x)
				switch {
				case !ok || x.Index() != 0 || !inner.HasDX || inner.InPlace || inner.Accumulate || len(x.Clients()) != 1 || t.Input == other.Input:
					c.Miss("input %d is not the plain result of a backward run that only this sum uses", t.Input)
					continue
				case origin(a.Inputs()[other.Input]) > origin(x):
					c.Miss("the other term is computed after %s, which would have to wait for it", inner.Name)
					continue
				case !whole(op, t) || x.Type() != a.Out().Type():
					c.Miss("the derivative is not the whole sum")
					continue
				case inner.C.Properties()&component.BackpropAdds != 0:
					c.Miss("%s adds to zeros", inner.Name)
					continue
				}
				adding, ok := component.NewAdding(inner.C)
				if !ok {
					c.Miss("%s is not affine", inner.Name)
					continue
				}
				inner.Component = lower.Component{C: adding, Number: -1, Name: inner.Name}
				return accumulateOnto(a, x.Owner(), inner, op, []lower.Term{*other})
			}
			return rewrite.Result{}
		})
}

// accumulateOnto replaces a, a sum that op computes, by an apply of adder instead of old, which
// makes one of the terms. It adds to the rest of them.
func accumulateOnto(a, old *fgraph.Apply, adder fgraph.Op, op *lower.Assemble, rest []lower.Term) rewrite.Result {
	sum := lower.NewAssemble(op.Rows, op.Cols, rest, a.Inputs())
	sum.Owner().SetOrigin(old.Origin())
	// One whole matrix needs no copy here. Whether the component may overwrite it, and so whether
	// it is copied after all, is decided by the in-place passes and by storage.
	if len(rest) == 1 && whole(op, &rest[0]) {
		sum = lower.NewBlock(sum.Owner().Inputs()[0], rest[0].Src())
	}
	adding := onto(old, adder, sum)
	pairs := replacements(old.Outputs(), adding.Outputs())
	pairs[0].Old = a.Out()
	return rewrite.Result{Pairs: pairs}
}

// whole reports whether the term is an unscaled block that makes up the result.
func whole(op *lower.Assemble, t *lower.Term) bool {
	return covers(op, t) && t.Contiguous() && t.Scale == 1
}

// addsAlone reports whether v has a single use and is what a component, run forward or backward,
// adds to its output.
func addsAlone(v *fgraph.Variable) bool {
	if v.Owner() == nil || len(v.Clients()) != 1 || v.Index() != 0 {
		return false
	}
	switch op := v.Owner().Op().(type) {
	case lower.Propagate:
		return !op.InPlace && !op.Accumulate && op.C.Properties()&component.PropagateAdds != 0
	case lower.Backprop:
		return !op.InPlace && !op.Accumulate && op.HasDX && op.C.Properties()&component.BackpropAdds != 0
	}
	return false
}

// onto applies an op that adds to sum and the inputs of a.
func onto(a *fgraph.Apply, op fgraph.Op, sum *fgraph.Variable) *fgraph.Apply {
	var at int
	switch o := op.(type) {
	case lower.Propagate:
		o.Accumulate = true
		op, at = o, o.InputAdded()
	case lower.Backprop:
		o.Accumulate = true
		op, at = o, o.InputAdded()
	}
	return applyAt(a, op, slices.Insert(slices.Clone(a.Inputs()), at, sum), outputTypes(a)...)
}
