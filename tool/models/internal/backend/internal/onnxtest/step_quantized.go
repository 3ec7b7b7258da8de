package onnxtest

import (
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

var bytes = []onnx.DataType{onnx.Uint8, onnx.Int8}

// scale makes a number by which integers are multiplied: a power of two, so that programs round alike.
func (b *builder) scale(shape ...int) *value {
	return b.constant(onnx.Float, shape, func(int) float64 { return pick(b, 0.25, 0.5, 0.125, 1) })
}

func (b *builder) zero(elem onnx.DataType, shape ...int) *value {
	return b.constant(elem, shape, func(int) float64 {
		if elem == onnx.Uint8 || elem == onnx.Uint16 || elem == onnx.Uint4 {
			return float64(b.IntN(12))
		}
		return float64(b.IntN(9) - 4)
	})
}

var quantizedSteps = []step{
	{op: "QuantizeLinear", since: 10, elems: []onnx.DataType{onnx.Float}, exact: true, make: func(b *builder, op string, x *value) *value {
		elem := pick(b, bytes...)
		if b.opset >= 21 && b.chance(0.4) {
			elem = pick(b, onnx.Int16, onnx.Uint16, onnx.Int4, onnx.Uint4)
		}
		return b.quantized(op, x, elem)
	}},
	{op: "DequantizeLinear", since: 10, elems: bytes, make: func(b *builder, op string, x *value) *value {
		return b.dequantized(op, x)
	}},
	{op: "QuantizeDequantize", since: 10, elems: []onnx.DataType{onnx.Float}, exact: true, make: func(b *builder, _ string, x *value) *value {
		elem := pick(b, bytes...)
		if b.opset >= 21 && b.chance(0.5) {
			elem = pick(b, onnx.Int16, onnx.Uint16, onnx.Int4, onnx.Uint4)
		}
		q := b.quantized("QuantizeLinear", x, elem)
		if q == nil {
			return nil
		}
		return b.dequantized("DequantizeLinear", q)
	}},
	{op: "DynamicQuantizeLinear", since: 11, elems: []onnx.DataType{onnx.Float}, exact: true, make: func(b *builder, op string, x *value) *value {
		if slices.ContainsFunc(x.shape, func(s []int) bool { return product(s) == 0 }) {
			return nil
		}
		v := b.node(op, []*value{x}, onnx.Uint8, x.shape)
		b.more(onnx.Float, b.same())
		b.more(onnx.Uint8, b.same())
		return v
	}},
	{op: "MatMulInteger", since: 10, elems: bytes, rank: 2, make: func(b *builder, op string, x *value) *value {
		last := x.rank() - 1
		size := x.shape[0][last]
		if size == 0 || !b.agree(x.shape, b.same(x.shape[0]...), last) {
			return nil
		}
		out := 1 + b.IntN(4)
		elem := pick(b, bytes...)
		in := []*value{x, b.drawn(elem, size, out), b.zero(x.elem), nil}
		if b.chance(0.5) {
			in[3] = b.zero(elem)
		}
		return b.node(op, trimmed(in), onnx.Int32, b.each(func(k int) []int { return append(slices.Clone(x.shape[k][:last]), out) }))
	}},
	{op: "QLinearMatMul", since: 10, elems: bytes, rank: 2, make: func(b *builder, op string, x *value) *value {
		last := x.rank() - 1
		size := x.shape[0][last]
		if size == 0 || !b.agree(x.shape, b.same(x.shape[0]...), last) {
			return nil
		}
		out := 1 + b.IntN(4)
		in := []*value{x, b.scale(), b.zero(x.elem), b.drawn(x.elem, size, out), b.scale(), b.zero(x.elem), b.scale(), b.zero(x.elem)}
		return b.node(op, in, x.elem, b.each(func(k int) []int { return append(slices.Clone(x.shape[k][:last]), out) }))
	}},
	{op: "ConvInteger", since: 10, elems: []onnx.DataType{onnx.Uint8}, rank: 4, make: func(b *builder, op string, x *value) *value {
		c, w := b.channels(x), b.window(x, false)
		if c == 0 || w == nil {
			return nil
		}
		out := 1 + b.IntN(3)
		for k := range w.shape {
			w.shape[k][1] = out
		}
		in := []*value{x, b.drawn(onnx.Uint8, append([]int{out, c}, w.kernel...)...), b.zero(x.elem)}
		return b.node(op, in, onnx.Int32, w.shape, w.attributes...)
	}},
	{op: "QLinearConv", since: 10, elems: bytes, rank: 4, make: func(b *builder, op string, x *value) *value {
		c, w := b.channels(x), b.window(x, false)
		if c == 0 || w == nil {
			return nil
		}
		groups := pick(b, 1, c)
		out := groups * (1 + b.IntN(2))
		for k := range w.shape {
			w.shape[k][1] = out
		}
		weights, scales, zero := b.drawn(x.elem, append([]int{out, c / groups}, w.kernel...)...), b.scale(), b.zero(x.elem)
		if b.chance(0.4) {
			scales, zero = b.scale(out), b.constant(x.elem, []int{out}, func(int) float64 { return 0 })
		}
		in := []*value{x, b.scale(), b.zero(x.elem), weights, scales, zero, b.scale(), b.zero(x.elem)}
		if b.chance(0.5) {
			in = append(in, b.drawn(onnx.Int32, out))
		}
		return b.node(op, in, x.elem, w.shape, append(w.attributes, integer("group", groups))...)
	}},
}

// points draws scales and zero points for x: one, one for each place of an axis, or one for a block.
func (b *builder) points(x *value, elem onnx.DataType) (scale, zero *value, attributes []*onnx.Attribute) {
	var shape []int
	if x.rank() > 0 && b.opset >= 13 && b.chance(0.5) {
		axis, number := b.axis(x, true)
		if size := x.shape[0][axis]; b.agree(x.shape, b.same(x.shape[0]...), axis) && size > 0 {
			shape, attributes = []int{size}, []*onnx.Attribute{integer("axis", number)}
		}
		if b.opset >= 21 && x.fixed() && b.chance(0.4) && product(x.shape[0]) > 0 {
			shape = slices.Clone(x.shape[0])
			shape[axis] = (shape[axis] + 1) / 2
			attributes = []*onnx.Attribute{integer("axis", number), integer("block_size", 2)}
		}
	}
	return b.scale(shape...), b.zero(elem, shape...), attributes
}

func (b *builder) quantized(op string, x *value, elem onnx.DataType) *value {
	if isTiny(elem) && !b.all && b.depth > 0 {
		return nil
	}
	scale, zero, attributes := b.points(x, elem)
	return b.node(op, []*value{x, scale, zero}, elem, x.shape, attributes...)
}

func (b *builder) dequantized(op string, x *value) *value {
	scale, zero, attributes := b.points(x, x.elem)
	return b.node(op, []*value{x, scale, zero}, onnx.Float, x.shape, attributes...)
}
