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

var norms = map[string]func(c *call) []*value{
	"BatchNormalization": func(c *call) []*value {
		x := c.x(0)
		c.perChannel(x, 1, 2, 3, 4)
		channel := func(v variable) variable { return channels(v, ndim(x)) }
		mean, variance := c.x(3), c.x(4)
		out := []*value{nil}
		if c.bool("training_mode", false) {
			// The statistics are those of the batch, and the running ones move towards them.
			axes := slices.DeleteFunc(span(0, ndim(x)), func(i int) bool { return i == 1 })
			now := tensor.Mean(x, axes...)
			spread := tensor.Mean(tensor.Sqr(tensor.Sub(x, channel(now))), axes...)
			moved := func(old, now variable) *value {
				m := c.float("momentum", 0.9)
				return c.typed(tensor.Add(tensor.Mul(number(m, old), old), tensor.Mul(number(1-m, now), now)), c.elem(3))
			}
			out = append(out, moved(mean, now), moved(variance, spread))
			mean, variance = now, spread
		}
		scale := tensor.TrueDiv(channel(c.x(1)), tensor.Sqrt(tensor.Add(channel(variance), number(c.float("epsilon", 1e-5), channel(variance)))))
		out[0] = c.typed(tensor.Add(tensor.Mul(tensor.Sub(x, channel(mean)), scale), channel(c.x(2))), c.elem(0))
		return out
	},
	"InstanceNormalization": func(c *call) []*value {
		x := c.x(0)
		c.perChannel(x, 1, 2)
		// What is normalized together is a row, as tensors have an op for.
		shape := c.dims(x)
		c.failIf(len(shape) < 2, "an input of shape %v", shape)
		y, _, _ := c.normalized(c.reshapeTo(x, []ir.Dim{shape[0], shape[1], together(shape[2:])}), 2)
		return c.like(c.reshapeTo(tensor.Add(tensor.Mul(y, channels(c.x(1), 3)), channels(c.x(2), 3)), shape))
	},
	"LayerNormalization": func(c *call) []*value {
		x := c.x(0)
		y, mean, inverse := c.normalized(x, c.axis(c.int("axis", -1), ndim(x)))
		y = tensor.Mul(y, c.x(1))
		if c.has(2) {
			y = tensor.Add(y, c.x(2))
		}
		stash := onnx.DataType(c.int("stash_type", int(onnx.Float)))
		return []*value{c.typed(y, c.elem(0)), c.typed(mean, stash), c.typed(inverse, stash)}
	},
	"RMSNormalization":             (*call).rmsNorm,
	"SimplifiedLayerNormalization": (*call).rmsNorm, // of ONNX Runtime
	"GroupNormalization": func(c *call) []*value {
		x := c.x(0)
		shape, groups := c.dims(x), c.int("num_groups", 1)
		if len(shape) < 2 || groups <= 0 || c.number(shape[1])%groups != 0 {
			c.fail("%d groups of shape %v", groups, shape)
		}
		size := ir.Known(int64(c.number(shape[1]) / groups)).Times(together(shape[2:]))
		y, _, _ := c.normalized(c.reshapeTo(x, []ir.Dim{shape[0], ir.Known(int64(groups)), size}), 2)
		scale, bias := c.x(1), c.x(2)
		if c.opset < 21 && slices.Equal(c.shape(scale), []int{groups}) && slices.Equal(c.shape(bias), []int{groups}) && !shape[1].Is(int64(groups)) {
			y = tensor.Add(tensor.Mul(y, channels(scale, 3)), channels(bias, 3))
			return c.like(c.reshapeTo(y, shape))
		}
		c.perChannel(x, 1, 2)
		return c.like(tensor.Add(tensor.Mul(c.reshapeTo(y, shape), channels(scale, len(shape))), channels(bias, len(shape))))
	},
	"LpNormalization": unary(func(c *call, x variable) variable {
		axis := c.axis(c.int("axis", -1), ndim(x))
		norm := tensor.Sqrt(tensor.Sum(tensor.Sqr(x), axis))
		if c.int("p", 2) == 1 {
			norm = tensor.Sum(tensor.Abs(x), axis)
		}
		norm = tensor.ExpandDims(norm, axis)
		zero := tensor.Map(array.Eq, norm, number(0, x)) // where the result is 0
		return tensor.Switch(zero, number(0, x), tensor.TrueDiv(x, norm))
	}),
	"MeanVarianceNormalization": unary(func(c *call, x variable) variable {
		axes := c.list("axes")
		if axes == nil {
			axes = []int{0, 2, 3}
		}
		axes = c.axes(axes, ndim(x))
		slices.Sort(axes)
		d := tensor.Sub(x, tensor.ExpandDims(tensor.Mean(x, axes...), axes...))
		return tensor.TrueDiv(d, tensor.Add(tensor.Sqrt(tensor.ExpandDims(tensor.Mean(tensor.Sqr(d), axes...), axes...)), number(1e-9, x)))
	}),
	"LRN": unary(func(c *call, x variable) variable {
		size := c.int("size", 1)
		c.failIf(size <= 0 || ndim(x) < 2, "size %d of %d dimensions", size, ndim(x))
		depth := c.dim(x, 1)
		margins := slices.Repeat([]tensor.Margin{{Before: tensor.Int(0), After: tensor.Int(0)}}, ndim(x))
		// A window has no more channels on either side than there are.
		before, after := min((size-1)/2, depth), min(size/2, depth)
		margins[1] = tensor.Margin{Before: tensor.Int(before), After: tensor.Int(after)}
		padded := tensor.PadValue(tensor.Sqr(x), number(0, x), margins...)
		var sum variable
		for i := range before + after + 1 {
			part := tensor.Subtensor(padded, tensor.Everything(), tensor.SliceOf(tensor.Int(i), tensor.Int(i+depth), 1))
			if sum == nil {
				sum = part
			} else {
				sum = tensor.Add(sum, part)
			}
		}
		alpha, beta := c.float("alpha", 1e-4), c.float("beta", 0.75)
		base := tensor.Add(number(c.float("bias", 1), x), tensor.Mul(number(alpha/float64(size), x), sum))
		if beta == 0.75 && alpha >= 0 { // as always. The roots, and not the power, of minus infinity are NaN
			root := tensor.Sqrt(base)
			return tensor.TrueDiv(x, tensor.Mul(root, tensor.Sqrt(root)))
		}
		return tensor.TrueDiv(x, tensor.Pow(base, number(beta, x)))
	}),
}

// perChannel checks that inputs have a number for each channel of x, of which there is one if it has one dimension.
func (c *call) perChannel(x variable, inputs ...int) {
	n := ir.Known(1)
	if ndim(x) > 1 {
		n = c.dims(x)[1]
	}
	for _, k := range inputs {
		if s := c.dims(c.x(k)); len(s) != 1 || s[0].Differs(n) {
			c.fail("input %d has shape %v for %v channels", k, s, n)
		}
	}
}

// channels gives a vector of a number for each channel so many dimensions: channels are the second.
func channels(v variable, n int) variable {
	return asDim(v, min(1, max(n-1, 0)), n)
}

// normalized subtracts the mean over the dimensions from an axis on and divides by the standard
// deviation, of which it also returns the inverse.
func (c *call) normalized(x variable, axis int) (y, mean, inverse variable) {
	axes := span(axis, ndim(x))
	c.failIf(len(axes) == 0, "there is nothing to normalize")
	mean = tensor.ExpandDims(tensor.Mean(x, axes...), axes...)
	d := tensor.Sub(x, mean)
	variance := tensor.ExpandDims(tensor.Mean(tensor.Sqr(d), axes...), axes...)
	inverse = tensor.Map(array.Inv, tensor.Sqrt(tensor.Add(variance, number(c.float("epsilon", 1e-5), x))))
	return tensor.Mul(d, inverse), mean, inverse
}

// rmsNorm divides by the root of the mean square over the dimensions from an axis on. The second result, which only
// ONNX Runtime's operator has, is what it multiplies with.
func (c *call) rmsNorm() []*value {
	x := c.x(0)
	if onnx.DataType(c.int("stash_type", int(onnx.Float))) == onnx.Double {
		x = c.floats(0)
	}
	axes := span(c.axis(c.int("axis", -1), ndim(x)), ndim(x))
	square := tensor.ExpandDims(tensor.Mean(tensor.Sqr(x), axes...), axes...)
	root := tensor.Sqrt(tensor.Add(square, number(c.float("epsilon", 1e-5), square)))
	y := tensor.TrueDiv(x, root)
	y = tensor.Mul(y, tensor.Cast(c.x(1), tensor.TypeOf(y).DType()))
	return append(c.like(y), c.typed(tensor.Map(array.Inv, root), onnx.DataType(c.int("stash_type", int(onnx.Float)))))
}
