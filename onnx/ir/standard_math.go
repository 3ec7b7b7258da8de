package ir

import (
	"cmp"
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

// standardMath are operators of elements.
var standardMath = slices.Concat(
	named(Operator{MinInputs: 1, MaxInputs: 1, Infer: inferSame},
		"Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Mish",
		"Reciprocal", "Round", "Selu", "Shrink", "Sigmoid", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu", "BitwiseNot"),
	named(Operator{MinInputs: 1, MaxInputs: 1, Infer: inferSoftmax}, "Softmax", "LogSoftmax", "Hardmax"),
	[]Operator{
		{Type: "Abs", MinInputs: 1, MaxInputs: 1, Infer: inferElements(func(x []Dim) Dim {
			if low, _ := x[0].bounds(0); low >= 0 {
				return x[0]
			}
			return numeric(x, func(n []int64) int64 { return max(n[0], -n[0]) })
		})},
		{Type: "Neg", MinInputs: 1, MaxInputs: 1, Infer: inferElements(func(x []Dim) Dim { return Known(0).Minus(x[0]) })},
		{Type: "Relu", MinInputs: 1, MaxInputs: 1, Infer: inferElements(func(x []Dim) Dim { return x[0].max(Known(0)) })},
		{Type: "Sign", MinInputs: 1, MaxInputs: 1, Infer: inferElements(sign)},
		{Type: "Identity", MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) { c.Set(0, c.In(0)) }},
		{Type: "Cast", MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) {
			c.cast(c.to("to", onnx.Undefined))
		}},
		{Type: "CastLike", MinInputs: 2, MaxInputs: 2, Infer: func(c *Call) { c.cast(c.Elem(1)) }},
		{Type: "BitCast", MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) {
			to := c.to("to", onnx.Undefined)
			if from := c.Elem(0); from.Bits() != to.Bits() && from != onnx.Undefined && to != onnx.Undefined {
				c.Fail("elements of type %v have not as many bits as %v", from, to)
			}
			c.shaped(0, to, 0)
		}},
		{Type: "Clip", MinInputs: 1, MaxInputs: 3, Infer: inferClip},
		{Type: "CumSum", MinInputs: 2, MaxInputs: 2, Infer: inferCumulative},
		{Type: "CumProd", MinInputs: 2, MaxInputs: 2, Infer: inferCumulative},

		{Type: "Add", MinInputs: 2, MaxInputs: 2, Commutes: true, Infer: inferElements(func(x []Dim) Dim { return x[0].Plus(x[1]) })},
		{Type: "Sub", MinInputs: 2, MaxInputs: 2, Infer: inferElements(func(x []Dim) Dim { return x[0].Minus(x[1]) })},
		{Type: "Mul", MinInputs: 2, MaxInputs: 2, Commutes: true, Infer: inferElements(func(x []Dim) Dim { return x[0].Times(x[1]) })},
		{Type: "Div", MinInputs: 2, MaxInputs: 2, Infer: inferElements(quotientOf)},
		{Type: "Mod", MinInputs: 2, MaxInputs: 2, Infer: inferElements(remainderOf)},
		{Type: "Pow", MinInputs: 2, MaxInputs: 2, Infer: func(c *Call) {
			dims, ranked := c.broadcastInputs(0, 1)
			c.Set(0, tensor(c.Elem(0), dims, ranked))
		}},
		{Type: "PRelu", MinInputs: 2, MaxInputs: 2, Infer: func(c *Call) {
			c.elemOf(0, 1)
			c.like(0, 0) // the slope is broadcast to it, not the other way round
		}},
		{Type: "SwiGLU", MinInputs: 2, MaxInputs: 2, Infer: func(c *Call) {
			t, ok := c.In(0).withoutData().Meet(c.In(1).withoutData())
			c.failIf(!ok, "types %v and %v differ", c.In(0), c.In(1))
			c.Set(0, t)
		}},
		{Type: "Max", MinInputs: 1, MaxInputs: -1, Infer: inferElements(folded(Dim.max))},
		{Type: "Min", MinInputs: 1, MaxInputs: -1, Infer: inferElements(folded(Dim.min))},
		{Type: "Sum", MinInputs: 1, MaxInputs: -1, Infer: inferElements(nil)},
		{Type: "Mean", MinInputs: 1, MaxInputs: -1, Infer: inferElements(nil)},
		{Type: "BitShift", MinInputs: 2, MaxInputs: 2, Infer: inferElements(nil)},
		{Type: "BitwiseAnd", MinInputs: 2, MaxInputs: 2, Commutes: true, Infer: inferElements(numerically(func(n []int64) int64 { return n[0] & n[1] }))},
		{Type: "BitwiseOr", MinInputs: 2, MaxInputs: 2, Commutes: true, Infer: inferElements(numerically(func(n []int64) int64 { return n[0] | n[1] }))},
		{Type: "BitwiseXor", MinInputs: 2, MaxInputs: 2, Commutes: true, Infer: inferElements(numerically(func(n []int64) int64 { return n[0] ^ n[1] }))},
	},
)

func inferSame(c *Call) { c.like(0, 0) }

// inferElements returns the inference of an element-wise operator: its inputs and its result have one
// type of elements, and the shape is that which the inputs are broadcast to. compute returns an element,
// for integers; without it elements are not known.
func inferElements(compute func(x []Dim) Dim) func(*Call) {
	return func(c *Call) {
		dims, ranked := c.broadcastInputs(c.all()...)
		t := tensor(c.elemOf(c.all()...), dims, ranked)
		if compute != nil && isInteger(t.elem) {
			if list, ok := c.eachElement(compute); ok {
				t = t.with(list)
			}
		}
		c.Set(0, t)
	}
}

// numeric computes an element if all it depends on are numbers.
func numeric(x []Dim, f func(n []int64) int64) Dim {
	list := make([]int64, len(x))
	for i, d := range x {
		var ok bool
		if list[i], ok = d.Number(); !ok {
			return UnknownDim
		}
	}
	return Known(f(list))
}

func numerically(f func(n []int64) int64) func(x []Dim) Dim {
	return func(x []Dim) Dim { return numeric(x, f) }
}

// folded returns a function of any number of elements.
func folded(f func(d, e Dim) Dim) func(x []Dim) Dim {
	return func(x []Dim) Dim {
		y := x[0]
		for _, d := range x[1:] {
			y = f(y, d)
		}
		return y
	}
}

func sign(x []Dim) Dim {
	switch low, high := x[0].bounds(0); {
	case low > 0:
		return Known(1)
	case high < 0:
		return Known(-1)
	}
	return numeric(x, func(n []int64) int64 { return min(max(n[0], -1), 1) })
}

// quotientOf divides integers as ONNX does, towards zero, which is down where neither is negative.
func quotientOf(x []Dim) Dim {
	low, _ := x[0].bounds(0)
	least, _ := x[1].bounds(0)
	if low >= 0 && least >= 0 {
		return x[0].over(x[1])
	}
	// By -1 the least integer overflows.
	if x[1].Is(0) || x[1].Is(-1) {
		return UnknownDim
	}
	return numeric(x, func(n []int64) int64 { return n[0] / n[1] })
}

// remainderOf is the remainder of integers that are not negative, where fmod does not matter.
func remainderOf(x []Dim) Dim {
	low, _ := x[0].bounds(0)
	least, _ := x[1].bounds(0)
	if low < 0 || least < 0 {
		return UnknownDim
	}
	if _, ok := x[0].exactly(x[1]); ok {
		return Known(0)
	}
	if x[1].Is(0) {
		return UnknownDim
	}
	return numeric(x, func(n []int64) int64 { return n[0] % n[1] })
}

// cast infers a result with other elements. Integers remain what they are if the type can hold them.
func (c *Call) cast(to onnx.DataType) {
	dims, ranked := c.shape(0)
	t := tensor(to, dims, ranked)
	if list, ok := c.data(0); ok && isInteger(to) {
		if to == onnx.Bool {
			for i, d := range list {
				list[i] = differs([]Dim{d, Known(0)})
			}
		}
		t = t.with(list)
	}
	c.Set(0, t)
}

func inferClip(c *Call) {
	c.checkNumber(1)
	c.checkNumber(2)
	t := c.In(0).withoutData()
	elem := c.elemOf(c.all()...)
	if list, ok := c.data(0); ok && isInteger(elem) {
		for i := range list {
			if c.has(1) {
				list[i] = list[i].max(c.one(1))
			}
			if c.has(2) {
				list[i] = list[i].min(c.one(2))
			}
		}
		t = t.with(list)
	}
	c.Set(0, t)
}

func inferCumulative(c *Call) {
	if dims, ranked := c.shape(0); ranked {
		if axis, ok := c.one(1).Number(); ok {
			c.axis(axis, len(dims))
		}
	}
	c.like(0, 0)
}

// inferSoftmax: before opset 13, the axis was the first of those that are one, and could be behind all.
func inferSoftmax(c *Call) {
	if dims, ranked := c.shape(0); ranked && c.Legacy == 0 && len(dims) > 0 {
		c.axis(c.Op.Int("axis", -1), len(dims))
	}
	c.like(0, 0)
}

// standardLogic are operators whose results are true or false, or that select by them. As elements of a
// type, true is 1 and false 0.
var standardLogic = []Operator{
	{Type: "And", MinInputs: 2, MaxInputs: 2, Commutes: true, Infer: inferElements(func(x []Dim) Dim { return decided(x, 0) })},
	{Type: "Or", MinInputs: 2, MaxInputs: 2, Commutes: true, Infer: inferElements(func(x []Dim) Dim { return decided(x, 1) })},
	{Type: "Xor", MinInputs: 2, MaxInputs: 2, Commutes: true, Infer: inferElements(differs)},
	{Type: "Not", MinInputs: 1, MaxInputs: 1, Infer: inferElements(func(x []Dim) Dim { return Known(1).Minus(x[0]) })},
	{Type: "Equal", MinInputs: 2, MaxInputs: 2, Commutes: true, Infer: inferComparison(func(x []Dim) Dim { return Known(1).Minus(differs(x)) })},
	{Type: "Greater", MinInputs: 2, MaxInputs: 2, Infer: inferComparison(func(x []Dim) Dim { return Known(1).Minus(atMost(x[0], x[1])) })},
	{Type: "GreaterOrEqual", MinInputs: 2, MaxInputs: 2, Infer: inferComparison(func(x []Dim) Dim { return atMost(x[1], x[0]) })},
	{Type: "Less", MinInputs: 2, MaxInputs: 2, Infer: inferComparison(func(x []Dim) Dim { return Known(1).Minus(atMost(x[1], x[0])) })},
	{Type: "LessOrEqual", MinInputs: 2, MaxInputs: 2, Infer: inferComparison(func(x []Dim) Dim { return atMost(x[0], x[1]) })},
	{Type: "IsNaN", MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) { c.shaped(0, onnx.Bool, 0) }},
	{Type: "IsInf", MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) { c.shaped(0, onnx.Bool, 0) }},
	{Type: "Where", MinInputs: 3, MaxInputs: 3, Infer: inferWhere},
}

// inferComparison returns the inference of an operator of two inputs that compares their elements.
func inferComparison(compare func(x []Dim) Dim) func(*Call) {
	return func(c *Call) {
		c.elemOf(0, 1)
		dims, ranked := c.broadcastInputs(0, 1)
		t := tensor(onnx.Bool, dims, ranked)
		if list, ok := c.eachElement(compare); ok {
			t = t.with(list)
		}
		c.Set(0, t)
	}
}

// decided returns the result of an operator that one input of this value decides, as 1 decides Or: it is
// the value, or the other one if both inputs are, or not known.
func decided(x []Dim, value int64) Dim {
	switch {
	case x[0].Is(value) || x[1].Is(value):
		return Known(value)
	case x[0].Is(1-value) && x[1].Is(1-value):
		return Known(1 - value)
	}
	return UnknownDim
}

// differs returns 1 if two numbers are known to differ, 0 if they are known to be the same.
func differs(x []Dim) Dim {
	switch {
	case x[0].Same(x[1]):
		return Known(0)
	case x[0].Differs(x[1]):
		return Known(1)
	}
	return UnknownDim
}

// atMost returns 1 if d is known to be at most e, and 0 if it is known not to be.
func atMost(d, e Dim) Dim {
	switch {
	case d.atMost(e):
		return Known(1)
	case e.Plus(Known(1)).atMost(d):
		return Known(0)
	}
	return UnknownDim
}

func inferWhere(c *Call) {
	elem := c.elemOf(1, 2)
	dims, ranked := c.broadcastInputs(0, 1, 2)
	t := tensor(elem, dims, ranked)
	list, ok := c.eachElement(func(x []Dim) Dim {
		switch {
		case x[0].Is(1) || x[1].Same(x[2]):
			return x[1]
		case x[0].Is(0):
			return x[2]
		}
		return UnknownDim
	})
	if ok && isInteger(elem) {
		t = t.with(list)
	}
	c.Set(0, t)
}

// standardQuantization are operators between numbers and small integers. Products and convolutions of
// those are with the others.
var standardQuantization = []Operator{
	{Type: "QuantizeLinear", MinInputs: 2, MaxInputs: 3, Infer: func(c *Call) {
		elem := onnx.Uint8
		if c.has(2) {
			elem = c.Elem(2)
		}
		c.shaped(0, cmp.Or(c.to("output_dtype", onnx.Undefined), elem), 0)
	}},
	{Type: "DequantizeLinear", MinInputs: 2, MaxInputs: 3, Infer: func(c *Call) {
		c.elemOf(0, 2)
		c.shaped(0, cmp.Or(c.to("output_dtype", onnx.Undefined), c.Elem(1)), 0)
	}},
	{Type: "DynamicQuantizeLinear", MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) {
		c.shaped(0, onnx.Uint8, 0)
		c.Set(1, NewType(onnx.Float))
		c.Set(2, NewType(onnx.Uint8))
	}},
}
