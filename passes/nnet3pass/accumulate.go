package nnet3pass

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// accumulate lets a component that adds to its output add to the rest of the sum that it is a term of, instead of to zeros
// which are then added to the rest.
func accumulate() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_accumulate", Doc: "a component that adds does so onto the other terms of a sum: x + f(z) → f(z) onto x",
		On: []rewrite.Track{rewrite.TrackType[*lower.Assemble]()}, Depth: 1,
		Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			op := a.Op().(*lower.Assemble)
			if len(op.Terms) < 2 {
				return c.Miss("no sum"), nil
			}
			last := -1
			for k := range op.Terms {
				if t := &op.Terms[k]; covers(op, t) && t.Contiguous() && t.Scale == 1 && a.Inputs()[t.Input].Type() == a.Out().Type() && addsAlone(a.Inputs()[t.Input]) {
					if last < 0 || origin(a.Inputs()[t.Input]) > origin(a.Inputs()[op.Terms[last].Input]) {
						last = k
					}
				}
			}
			if last < 0 {
				return c.Miss("no term is the whole result of a component that adds, used here only"), nil
			}
			adder := a.Inputs()[op.Terms[last].Input]
			var rest []lower.Term
			for k := range op.Terms {
				if k == last {
					continue
				}
				if in := a.Inputs()[op.Terms[k].Input]; in == adder || origin(in) > origin(adder) {
					return c.Miss("another term is made later"), nil
				}
				rest = append(rest, op.Terms[k])
			}
			sum := lower.NewAssemble(op.Rows, op.Cols, rest, a.Inputs())
			sum.Owner().SetOrigin(adder.Owner().Origin())
			if len(rest) == 1 && covers(op, &rest[0]) && rest[0].Contiguous() && rest[0].Scale == 1 {
				t := &rest[0]
				sum = lower.NewBlock(sum.Owner().Inputs()[0], t.Src())
			}
			old, adding := adder.Owner(), onto(adder.Owner(), sum)
			adding.SetOrigin(old.Origin())
			pairs := []fgraph.Replacement{{Old: a.Out(), New: adding.Out()}}
			for i := 1; i < len(old.Outputs()); i++ {
				pairs = append(pairs, fgraph.Replacement{Old: old.Outputs()[i], New: adding.Outputs()[i]})
			}
			return rewrite.Result{Pairs: pairs}, nil
		},
	}
}

func origin(v *fgraph.Variable) int {
	if a := v.Owner(); a != nil {
		return a.Origin()
	}
	return -1
}

// addsAlone reports whether v is what a component, run forward or backward, adds to its output, and is used once.
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

// onto applies the op of a, which adds, onto sum.
func onto(a *fgraph.Apply, sum *fgraph.Variable) *fgraph.Apply {
	inputs := append([]*fgraph.Variable(nil), a.Inputs()...)
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
	inputs = append(inputs[:at:at], append([]*fgraph.Variable{sum}, inputs[at:]...)...)
	return fgraph.NewApply(op, inputs, outputTypes(a)...)
}
