package tensor

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// Linspace returns num evenly spaced values from start to stop, or, without the endpoint, num values
// of which the next one would be stop. They make up the first dimension; start and stop are
// broadcast.
func Linspace(start, stop *fgraph.Variable, num int, endpoint bool) *fgraph.Variable {
	if num < 0 {
		fail("linspace", "%d values", num)
	}
	dtype := array.Upcast(TypeOf(start).DType(), TypeOf(stop).DType()).Float()
	start, stop = Cast(start, dtype), Cast(stop, dtype)
	ndim := max(TypeOf(start).NDim(), TypeOf(stop).NDim())
	start, stop = PadLeft(start, ndim), PadLeft(stop, ndim)
	steps := num
	if endpoint {
		steps--
	}
	y := asDim(Cast(ARange(Int(0), Int(num), Int(1)), dtype), 0, ndim+1)
	step := Sub(stop, start)
	if steps > 0 {
		step = TrueDiv(step, Number(float64(steps), step))
	}
	y = Add(Mul(y, step), start)
	if endpoint && num > 1 {
		// The last sum may miss stop by its rounding.
		y = SetSubtensor(y, stop, At(Int(-1)))
	}
	return y
}

// maxDifferences bounds how often Diff takes differences, so that a few characters don't describe a
// large graph.
const maxDifferences = 64

// Diff returns the differences of neighbours along a dimension, n times in a row. Of bools it says
// which neighbours are different.
func Diff(x *fgraph.Variable, n, axis int) *fgraph.Variable {
	const name = "diff"
	if n < 0 || n > maxDifferences {
		fail(name, "the order %d, which is not in 0 to %d", n, maxDifferences)
	}
	axis = NormalAxes(name, x, []int{axis})[0]
	op := array.Sub
	if TypeOf(x).DType() == array.Bool {
		op = array.Neq
	}
	for range n {
		x = Map(op, Subtensor(x, along(axis, SliceOf(Int(1), nil, 1))...), Subtensor(x, along(axis, SliceOf(nil, Int(-1), 1))...))
	}
	return x
}
