package onnxtest

import (
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

// one returns a step of an operator of one value, whose result has its type and shape.
func one(op string, since int64, elems []onnx.DataType, exact bool, attributes func(b *builder) []*onnx.Attribute) step {
	return step{op: op, since: since, elems: elems, exact: exact && slices.Contains(jumping, op), make: func(b *builder, op string, x *value) *value {
		var list []*onnx.Attribute
		if attributes != nil {
			list = attributes(b)
		}
		v := b.node(op, []*value{x}, x.elem, x.shape, list...)
		if isFloat(x.elem) {
			v.exact = x.exact && exact
		}
		return v
	}}
}

// jumping are operators whose results jump where their inputs change a bit.
var jumping = []string{"Floor", "Ceil", "Round", "Sign", "Hardmax", "ThresholdedRelu", "Shrink"}

func alpha(b *builder) []*onnx.Attribute {
	if b.chance(0.4) {
		return nil
	}
	return []*onnx.Attribute{number("alpha", float64(1+b.IntN(8))/4)}
}

// two returns a step of an operator of two values of one type.
func two(op string, since int64, elems []onnx.DataType, exact bool) step {
	return step{op: op, since: since, elems: elems, make: func(b *builder, op string, x *value) *value {
		y, shape := b.other(x)
		if b.chance(0.5) {
			x, y = y, x
		}
		v := b.node(op, []*value{x, y}, x.elem, shape)
		if isFloat(x.elem) && !exact {
			rough(v)
		}
		return v
	}}
}

// comparing returns a step of an operator whose result is a bool.
func comparing(op string, since int64, elems []onnx.DataType) step {
	return step{op: op, since: since, elems: elems, exact: true, make: func(b *builder, op string, x *value) *value {
		y, shape := b.other(x)
		if !y.exact {
			return nil
		}
		return b.node(op, []*value{x, y}, onnx.Bool, shape)
	}}
}

// many returns a step of an operator of any number of values of one type.
func many(op string, since int64, elems []onnx.DataType) step {
	return step{op: op, since: since, elems: elems, make: func(b *builder, op string, x *value) *value {
		in, shape := []*value{x}, x.shape
		for range b.IntN(3) {
			y, both := b.other(&value{elem: x.elem, shape: shape})
			in, shape = append(in, y), both
		}
		v := b.node(op, in, x.elem, shape)
		if isFloat(x.elem) && (op == "Mean" || len(in) > 2) {
			rough(v)
		}
		return v
	}}
}

var elementSteps = []step{
	one("Abs", 7, numbers, true, nil), one("Neg", 7, slices.Concat(floats, signed), true, nil), one("Sign", 9, numbers, true, nil), one("Relu", 7, slices.Concat(floats, signed), true, nil),
	one("Floor", 7, floats, true, nil), one("Ceil", 7, floats, true, nil), one("Round", 11, floats, true, nil), one("Identity", 7, anything, true, nil),
	one("Exp", 7, floats, false, nil), one("Sigmoid", 7, floats, false, nil), one("Tanh", 7, floats, false, nil), one("Erf", 9, floats, false, nil), one("Sin", 7, floats, false, nil),
	one("Cos", 7, floats, false, nil), one("Atan", 7, floats, false, nil), one("Sinh", 9, floats, false, nil), one("Cosh", 9, floats, false, nil), one("Asinh", 9, floats, false, nil),
	one("Softplus", 7, floats, false, nil), one("Softsign", 7, floats, false, nil), one("Elu", 7, floats, false, alpha), one("Selu", 7, floats, false, nil), one("Celu", 12, floats, false, alpha),
	one("LeakyRelu", 7, floats, false, alpha), one("ThresholdedRelu", 10, floats, true, alpha), one("HardSigmoid", 7, floats, false, nil), one("HardSwish", 14, floats, false, nil),
	one("Mish", 18, floats, false, nil), one("Shrink", 9, numbers, true, nil), one("Not", 7, bools, true, nil), one("BitwiseNot", 18, integers, true, nil),
	one("Gelu", 20, floats, false, func(b *builder) []*onnx.Attribute {
		return []*onnx.Attribute{text("approximate", pick(b, "none", "tanh"))}
	}),
	two("Add", 7, numbers, true), two("Sub", 7, numbers, true), two("Mul", 7, numbers, true),
	two("And", 7, bools, true), two("Or", 7, bools, true), two("Xor", 7, bools, true),
	two("BitwiseAnd", 18, integers, true), two("BitwiseOr", 18, integers, true), two("BitwiseXor", 18, integers, true),
	comparing("Equal", 7, anything), comparing("Greater", 7, numbers), comparing("Less", 7, numbers), comparing("GreaterOrEqual", 12, numbers), comparing("LessOrEqual", 12, numbers),
	many("Max", 8, numbers), many("Min", 8, numbers), many("Sum", 8, floats), many("Mean", 8, floats),
	{op: "Div", since: 7, elems: numbers, make: func(b *builder, op string, x *value) *value {
		// By what is not 0, and of integers a constant.
		y := b.constant(x.elem, nil, func(int) float64 { return float64(1 + b.IntN(4)) })
		if isSigned(x.elem) && b.chance(0.5) {
			y = b.constant(x.elem, nil, func(int) float64 { return -float64(1 + b.IntN(4)) })
		}
		return b.node(op, []*value{x, y}, x.elem, x.shape)
	}},
	{op: "Mod", since: 10, elems: numbers, exact: true, make: func(b *builder, op string, x *value) *value {
		y := b.constant(x.elem, nil, func(int) float64 { return float64(1 + b.IntN(4)) })
		if isSigned(x.elem) && b.chance(0.5) {
			y = b.constant(x.elem, nil, func(int) float64 { return -float64(1 + b.IntN(4)) })
		}
		var attributes []*onnx.Attribute
		if isFloat(x.elem) || b.chance(0.5) {
			attributes = append(attributes, integer("fmod", 1))
		}
		return b.node(op, []*value{x, y}, x.elem, x.shape, attributes...)
	}},
	{op: "Pow", since: 7, elems: numbers, make: func(b *builder, op string, x *value) *value {
		elem := x.elem
		if b.opset >= 12 && b.chance(0.5) {
			elem = pick(b, onnx.Float, onnx.Int64, onnx.Int32)
		}
		y := b.constant(elem, nil, func(int) float64 { return float64(b.IntN(4)) })
		return rough(b.node(op, []*value{x, y}, x.elem, x.shape))
	}},
	{op: "Sqrt", since: 7, elems: floats, make: func(b *builder, op string, x *value) *value {
		a := b.node("Abs", []*value{x}, x.elem, x.shape)
		return b.node(op, []*value{a}, x.elem, x.shape)
	}},
	{op: "Log", since: 7, elems: floats, make: func(b *builder, op string, x *value) *value {
		a := b.node("Exp", []*value{x}, x.elem, x.shape)
		return rough(b.node(op, []*value{rough(a)}, x.elem, x.shape))
	}},
	{op: "PRelu", since: 7, elems: numbers, make: func(b *builder, op string, x *value) *value {
		y, shape := b.other(x)
		for k, s := range shape {
			if !slices.Equal(s, x.shape[k]) {
				return nil
			}
		}
		return b.node(op, []*value{x, y}, x.elem, x.shape)
	}},
	{op: "Clip", since: 7, elems: numbers, make: func(b *builder, op string, x *value) *value {
		low := float64(b.IntN(3))
		if isSigned(x.elem) {
			low -= 2
		}
		high := low + float64(b.IntN(4))
		if b.opset < 11 {
			var attributes []*onnx.Attribute
			if b.chance(0.8) {
				attributes = append(attributes, number("min", low))
			}
			if b.chance(0.8) {
				attributes = append(attributes, number("max", high))
			}
			return b.node(op, []*value{x}, x.elem, x.shape, attributes...)
		}
		in := []*value{x, nil, nil}
		if b.chance(0.7) {
			in[1] = b.constant(x.elem, nil, func(int) float64 { return low })
		}
		if b.chance(0.7) {
			in[2] = b.constant(x.elem, nil, func(int) float64 { return high })
		}
		return b.node(op, trimmed(in), x.elem, x.shape)
	}},
	{op: "Cast", since: 7, elems: anything, make: func(b *builder, op string, x *value) *value { return b.cast(x, pick(b, anything...)) }},
	{op: "CastLike", since: 15, elems: anything, make: func(b *builder, op string, x *value) *value {
		y := b.some()
		if !b.castable(x, y.elem) {
			return nil
		}
		return b.node(op, []*value{x, y}, y.elem, x.shape)
	}},
	{op: "BFloat16", since: 13, elems: []onnx.DataType{onnx.Float}, exact: true, make: func(b *builder, _ string, x *value) *value {
		return b.node("Cast", []*value{x}, onnx.BFloat16, x.shape, integer("to", int(onnx.BFloat16)))
	}},
	{op: "Where", since: 9, elems: anything, make: func(b *builder, op string, x *value) *value {
		y, shape := b.other(x)
		c := b.some()
		if c.elem != onnx.Bool {
			c = b.drawn(onnx.Bool)
		}
		both, ok := b.joint(c, &value{shape: shape})
		if !ok {
			return nil
		}
		return b.node(op, []*value{c, x, y}, x.elem, both)
	}},
	{op: "BitShift", since: 11, elems: unsigned, make: func(b *builder, op string, x *value) *value {
		y := b.constant(x.elem, nil, func(int) float64 { return float64(b.IntN(7)) })
		return b.node(op, []*value{x, y}, x.elem, x.shape, text("direction", pick(b, "LEFT", "RIGHT")))
	}},
	{op: "IsNaN", since: 9, elems: floats, make: func(b *builder, op string, x *value) *value {
		return b.node(op, []*value{x}, onnx.Bool, x.shape)
	}},
	{op: "IsInf", since: 10, elems: []onnx.DataType{onnx.Float, onnx.Double}, make: func(b *builder, op string, x *value) *value {
		return b.node(op, []*value{x}, onnx.Bool, x.shape, truth("detect_negative", b.chance(0.5)), truth("detect_positive", b.chance(0.5)))
	}},
}

// castable reports whether programs agree about a cast: not of fractions that are negative to what has no
// sign, nor of what is hardly known to integers.
func (b *builder) castable(x *value, to onnx.DataType) bool {
	switch {
	case to == x.elem || isTiny(x.elem) || x.elem == onnx.BFloat16 && !isFloat(to):
		return false
	case isFloat(to) || to == onnx.Bool && x.exact:
		return true
	}
	return x.exact && (isSigned(to) || !isFloat(x.elem))
}

func (b *builder) cast(x *value, to onnx.DataType) *value {
	if !b.castable(x, to) || !b.all && kernelTable()[kernelKey("Cast", to)]>>b.opset&1 == 0 {
		return nil
	}
	return b.node("Cast", []*value{x}, to, x.shape, integer("to", int(to)))
}

// trimmed returns inputs without those at the end that are left out.
func trimmed(in []*value) []*value {
	for len(in) > 0 && in[len(in)-1] == nil {
		in = in[:len(in)-1]
	}
	return in
}
