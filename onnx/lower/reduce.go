package lower

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

var reductions = map[string]func(c *call) []*value{
	"ReduceSum":       reduction(func(x variable, axes ...int) variable { return tensor.Sum(x, axes...) }),
	"ReduceMean":      reduction(mean),
	"ReduceProd":      reduction(func(x variable, axes ...int) variable { return tensor.ReduceOver(array.Prod, x, axes...) }),
	"ReduceMax":       func(c *call) []*value { return c.extreme(array.Max, c.intsOr(1, nil)) },
	"ReduceMin":       func(c *call) []*value { return c.extreme(array.Min, c.intsOr(1, nil)) },
	"ReduceL1":        reduction(absolute),
	"ReduceL2":        reduction(euclidean),
	"ReduceSumSquare": reduction(func(x variable, axes ...int) variable { return tensor.Sum(tensor.Sqr(x), axes...) }),
	"ReduceLogSum":    reduction(func(x variable, axes ...int) variable { return tensor.Log(tensor.Sum(x, axes...)) }),
	"ReduceLogSumExp": reduction(func(x variable, axes ...int) variable { return tensor.ReduceOver(array.LogSumExp, x, axes...) }),
	"ArgMax":          func(c *call) []*value { return c.arg(tensor.Argmax) },
	"ArgMin":          func(c *call) []*value { return c.arg(tensor.Argmin) },
	"CumSum":          func(c *call) []*value { return c.cumulated(tensor.Cumsum, 0) },
	"CumProd":         func(c *call) []*value { return c.cumulated(tensor.Cumprod, 1) },
}

func absolute(x variable, axes ...int) variable { return tensor.Sum(tensor.Abs(x), axes...) }

func euclidean(x variable, axes ...int) variable {
	return tensor.Sqrt(tensor.Sum(tensor.Sqr(x), axes...))
}

// mean divides a sum by the number of elements: of integers, too.
func mean(x variable, axes ...int) variable {
	if len(axes) == 0 && ndim(x) == 0 {
		return x
	}
	return tensor.Mean(x, axes...)
}

// reduction lowers a reduction, whose axes are an input.
func reduction(f func(x variable, axes ...int) variable) func(c *call) []*value {
	return func(c *call) []*value { return c.reduce(f, c.intsOr(1, nil)) }
}

// reduce reduces the first input over axes, or over all if there are none.
func (c *call) reduce(f func(x variable, axes ...int) variable, axes []int) []*value {
	x := c.x(0)
	if len(axes) == 0 {
		if c.bool("noop_with_empty_axes", false) {
			// Of one element each: what the operator does with elements before or after they are added stays.
			return c.like(f(tensor.ExpandDims(x, ndim(x)), ndim(x)))
		}
		axes = span(0, ndim(x))
	}
	axes = c.axes(axes, ndim(x))
	y := x
	if len(axes) > 0 || ndim(x) == 0 { // what else the operator does, it does to a scalar, too
		y = f(x, axes...)
	}
	if c.bool("keepdims", true) {
		y = c.keepDims(y, x, axes...)
	}
	return c.like(y)
}

// keepDims gives a reduction of x over some axes as many dimensions as x.
func (c *call) keepDims(y, x variable, axes ...int) variable {
	if c.open != nil && unsized(x) {
		axes = slices.Clone(axes)
		slices.Sort(axes)
		return tensor.ExpandDims(y, axes...)
	}
	shape := c.shape(x)
	for _, a := range axes {
		shape[a] = 1
	}
	return c.reshape(y, shape)
}

// extreme lowers ReduceMax and ReduceMin, whose result is the smallest or largest number of the type where
// there are no elements.
func (c *call) extreme(op array.Reduction, axes []int) []*value {
	reduce := func(x variable, axes ...int) variable { return tensor.ReduceOver(op, x, axes...) }
	dims := c.dims(c.x(0))
	if len(axes) == 0 && !c.bool("noop_with_empty_axes", false) {
		axes = span(0, len(dims))
	}
	empty := false
	for _, a := range c.axes(axes, len(dims)) {
		if dims[a].Is(0) {
			dims[a], empty = ir.Known(1), true // one of the number that the others have to beat
		}
	}
	if !empty {
		return c.reduce(reduce, axes)
	}
	one := *c
	one.in = slices.Clone(c.in)
	one.in[0] = c.typed(tensor.Alloc(tensor.Constant(least(c.elem(0), op == array.Max)), c.scalars(dims)...), c.elem(0))
	return one.reduce(reduce, axes)
}

// least returns the smallest number of a type, or the largest.
func least(t onnx.DataType, smallest bool) *array.Array {
	low, high, ok := t.Limits() // of uint64s the largest that arrays hold
	switch {
	case t == onnx.Bool:
		return array.Scalar(!smallest)
	case ok && smallest:
		return array.Scalar(low)
	case ok:
		return array.Scalar(high)
	case smallest:
		return array.Scalar(math.Inf(-1))
	}
	return array.Scalar(math.Inf(1))
}

// arg returns the places of the largest or smallest elements.
func (c *call) arg(f func(x variable, axes ...int) variable) []*value {
	x := c.x(0)
	axis := c.axis(c.int("axis", 0), ndim(x))
	last := c.bool("select_last_index", false)
	// The last place is the first one from behind.
	if last {
		x = tensor.Flip(x, axis)
	}
	y := f(x, axis)
	if last {
		y = tensor.Sub(c.size(c.dims(c.x(0))[axis].Minus(ir.Known(1))), y)
	}
	if c.bool("keepdims", true) {
		y = c.keepDims(y, x, axis)
	}
	return c.out(y, onnx.Int64)
}

// exclusive returns how many elements there are along an axis if only those before each are to be cumulated,
// otherwise 0.
func (c *call) exclusive(axis int) int {
	if !c.bool("exclusive", false) {
		return 0
	}
	return c.dim(c.x(0), axis)
}

// cumulated lowers CumSum and CumProd. Exclusive ones begin with what is neutral, without the last element.
func (c *call) cumulated(f func(x variable, axis int) variable, neutral float64) []*value {
	x := c.x(0)
	axis := c.axis(int(c.one(1)), ndim(x))
	if c.bool("reverse", false) {
		x = tensor.Flip(x, axis)
	}
	if n := c.exclusive(axis); n > 0 {
		margins := slices.Repeat([]tensor.Margin{{Before: tensor.Int(0), After: tensor.Int(0)}}, ndim(x))
		margins[axis].Before = tensor.Int(1)
		x = tensor.PadValue(part(x, axis, tensor.SliceOf(tensor.Int(0), tensor.Int(n-1), 1)), number(neutral, x), margins...)
	}
	y := f(x, axis)
	if c.bool("reverse", false) {
		y = tensor.Flip(y, axis)
	}
	return c.like(y)
}
