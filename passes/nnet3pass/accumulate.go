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
				if in := a.Inputs()[op.Terms[k].Input]; in == adder || origin(in) > origin(adder) {
					return c.Miss("another term is computed later")
				}
				rest = append(rest, op.Terms[k])
			}
			sum := lower.NewAssemble(op.Rows, op.Cols, rest, a.Inputs())
			sum.Owner().SetOrigin(adder.Owner().Origin())
			if len(rest) == 1 && whole(op, &rest[0]) {
				sum = lower.NewBlock(sum.Owner().Inputs()[0], rest[0].Src())
			}
			old, adding := adder.Owner(), onto(adder.Owner(), sum)
			adding.SetOrigin(old.Origin())
			pairs := []fgraph.Replacement{{Old: a.Out(), New: adding.Out()}}
			for i := 1; i < len(old.Outputs()); i++ {
				pairs = append(pairs, fgraph.Replacement{Old: old.Outputs()[i], New: adding.Outputs()[i]})
			}
			return rewrite.Result{Pairs: pairs}
		})
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

// onto applies the op of a, which adds, to sum.
func onto(a *fgraph.Apply, sum *fgraph.Variable) *fgraph.Apply {
	var op fgraph.Op
	var at int
	switch o := a.Op().(type) {
	case lower.Propagate:
		o.Accumulate = true
		op, at = o, o.InputAdded()
	case lower.Backprop:
		o.Accumulate = true
		op, at = o, o.InputAdded()
	}
	return fgraph.NewApply(op, slices.Insert(slices.Clone(a.Inputs()), at, sum), outputTypes(a)...)
}
