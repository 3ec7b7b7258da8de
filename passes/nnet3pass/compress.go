package nnet3pass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// memoryCompression keeps one bit per element of the output of a rectified linear unit for its
// backward pass, instead of the output. Kaldi's option does that on a GPU, with one byte per
// element.
func memoryCompression() rewrite.Rule {
	return ruleFor("memory_compression", "the backward pass of a ReLU reads one bit per element from a memo instead of the output", 1,
		func(c *rewrite.Context, a *fgraph.Apply, op lower.Propagate) rewrite.Result {
			masked, ok := component.NewMaskedReLU(op.C, 0, 0)
			if !ok || op.UsesMemo || op.InPlace || op.Accumulate {
				return c.Miss("%s is not a ReLU, or runs in place", op.Name)
			}
			back, rows := onlyBackprop(a)
			if back == nil {
				return c.Miss("the output is not used by just one backward run of the component")
			}
			// The backward run may be about some of the rows only. The component is then told
			// which, so that it keeps bits for no others.
			if rows.Rows() < lower.TypeOf(a.Out()).Rows {
				masked, _ = component.NewMaskedReLU(op.C, int(rows.R0), int(rows.Rows()))
			}
			bop := back.Op().(lower.Backprop)
			// The output value is the operand right before the derivative.
			y := bop.InputDeriv() - 1
			derived := lower.Component{C: masked, Number: -1, Name: op.Name}
			op.Component, op.UsesMemo = derived, true
			bop.Component, bop.UsesMemo, bop.HasY = derived, true, false

			types := []fgraph.Type{a.Out().Type(), lower.MemoType{Component: int32(back.Origin())}}
			for _, v := range a.Outputs()[1:] {
				types = append(types, v.Type())
			}
			forward := applyAt(a, op, a.Inputs(), types...)
			var inputs []*fgraph.Variable
			for i, v := range back.Inputs() {
				if i == y {
					continue // the output: the memo holds what is needed of it
				}
				// Both runs are replaced at once, so the backward run must not read outputs of the
				// old forward run.
				if v.Owner() == a {
					v = forward.Outputs()[v.Index()+1] // the state, which now comes after the memo
				}
				inputs = append(inputs, v)
				if i == y+1 {
					inputs = append(inputs, forward.Outputs()[1])
				}
			}
			backward := applyAt(back, bop, inputs, outputTypes(back)...)
			made := slices.Delete(slices.Clone(forward.Outputs()), 1, 2) // without the memo
			return rewrite.Result{Pairs: append(replacements(a.Outputs(), made), replacements(back.Outputs(), backward.Outputs())...)}
		})
}

// onlyBackprop returns the backward run of the component of a, and the rows that it is about, if it
// alone reads the output of a, or a block of its rows, as its output value. Otherwise it returns
// nil.
func onlyBackprop(a *fgraph.Apply) (found *fgraph.Apply, rows lower.Rect) {
	t := lower.TypeOf(a.Out())
	unique := true
	// All backward runs are looked at. With a second one, the memo, which is consumed once, would
	// not do, and with a run of another component it doesn't matter: that keeps the output alive by
	// itself.
	read := func(v *fgraph.Variable, r lower.Rect) {
		for client := range readers(v) {
			op, ok := client.Apply.Op().(lower.Backprop)
			if !ok || op.C != a.Op().(lower.Propagate).C {
				continue
			}
			y := op.InputDeriv() - 1
			unique = unique && found == nil && op.HasY && !op.UsesMemo && !op.Accumulate && !op.InPlace && client.Index == y && r.Cols() == t.Cols
			found, rows = client.Apply, r
		}
	}
	read(a.Out(), lower.Rect{R1: t.Rows, C1: t.Cols})
	for client := range readers(a.Out()) {
		if b, ok := client.Apply.Op().(lower.Block); ok {
			read(client.Apply.Out(), b.Rect)
		}
	}
	if !unique {
		return nil, rows
	}
	return found, rows
}
