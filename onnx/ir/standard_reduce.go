package ir

import (
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

// standardReductions are operators that reduce dimensions. The axes are an input.
var standardReductions = slices.Concat(
	named(Operator{MinInputs: 1, MaxInputs: 2, Infer: inferReduction(nil)}, "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceSumSquare"),
	[]Operator{
		{Type: "ReduceMax", MinInputs: 1, MaxInputs: 2, Infer: inferReduction(Dim.max)},
		{Type: "ReduceMin", MinInputs: 1, MaxInputs: 2, Infer: inferReduction(Dim.min)},
		{Type: "ReduceProd", MinInputs: 1, MaxInputs: 2, Infer: inferReduction(Dim.Times)},
		{Type: "ReduceSum", MinInputs: 1, MaxInputs: 2, Infer: inferReduction(Dim.Plus)},
	},
	named(Operator{MinInputs: 1, MaxInputs: 1, Infer: inferArgument}, "ArgMax", "ArgMin"),
)

// inferReduction returns the inference of a reduction. fold computes the result of elements that are
// integers, if there is one.
func inferReduction(fold func(d, e Dim) Dim) func(*Call) {
	return func(c *Call) {
		keep := c.Op.Int("keepdims", 1) != 0
		axes, known := c.numbers(1)
		if known = known || !c.has(1); known && len(axes) == 0 && c.Op.Int("noop_with_empty_axes", 0) != 0 {
			c.like(0, 0)
			return
		}
		elem := c.Elem(0)
		// Over all dimensions none is left, however many there were.
		if !keep && known && len(axes) == 0 && c.In(0).Rank() < 0 {
			c.Set(0, NewType(elem))
			return
		}
		dims := c.ranked(0, elem)
		if !known {
			// Any dimension may be reduced, but how many are may be known.
			n := c.count(1)
			switch {
			case keep:
				c.Set(0, NewType(elem, reducible(dims)...))
			case n > 0 && n <= len(dims):
				c.Set(0, NewType(elem, unknowns(len(dims)-n)...))
			default:
				c.anyShape(elem)
			}
			return
		}
		t := NewType(elem, c.reduced(dims, axes, keep)...)
		if list, ok := c.data(0); ok && fold != nil && len(list) > 0 { // which the type does not hold unless it is of all
			t = t.with([]Dim{folded(fold)(list)})
		}
		c.Set(0, t)
	}
}

// reducible returns sizes that may become 1.
func reducible(dims []Dim) []Dim {
	list := unknowns(len(dims))
	for i, d := range dims {
		if d.Is(1) {
			list[i] = d
		}
	}
	return list
}

// reduced returns sizes without those of axes, or with 1 in their place. No axes are all.
func (c *Call) reduced(dims []Dim, axes []int64, keep bool) []Dim {
	reduce := make([]bool, len(dims))
	for _, a := range axes {
		reduce[c.axis(a, len(dims))] = true
	}
	var out []Dim
	for i, d := range dims {
		switch {
		case !reduce[i] && len(axes) > 0:
			out = append(out, d)
		case keep:
			out = append(out, Known(1))
		}
	}
	return out
}

func inferArgument(c *Call) {
	dims := c.ranked(0, onnx.Int64)
	c.Set(0, NewType(onnx.Int64, c.reduced(dims, []int64{c.Op.Int("axis", 0)}, c.Op.Int("keepdims", 1) != 0)...))
}
