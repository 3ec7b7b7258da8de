package ir

import (
	"slices"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
)

// contribQuantization are operators of ONNX Runtime on small integers. Inputs are tensors with a scale and a zero point
// behind each.
var contribQuantization = []Operator{
	contrib("DynamicQuantizeMatMul", 3, 5, nil, func(b *Builder) []variable {
		q := b.several(3, "DynamicQuantizeLinear", b.x(0))
		return []variable{b.product(q[0], b.x(1), q[2], b.x(3), b.mul(q[1], b.x(2)), b.x(4))}
	}),
	contrib("MatMulIntegerToFloat", 4, 7, nil, func(b *Builder) []variable {
		return []variable{b.product(b.x(0), b.x(1), b.x(4), b.x(5), b.mul(b.x(2), b.x(3)), b.x(6))}
	}),
	contrib("QGemm", 6, 9, nil, qGemm),
	quantized("QLinearAdd", 7, 8, func(b *Builder) variable { return b.add(b.dequantized(0, 1, 2), b.dequantized(3, 4, 5)) }, 6),
	quantized("QLinearMul", 7, 8, func(b *Builder) variable { return b.mul(b.dequantized(0, 1, 2), b.dequantized(3, 4, 5)) }, 6),
	quantized("QLinearSigmoid", 4, 5, func(b *Builder) variable { return b.Do("Sigmoid", b.dequantized(0, 1, 2)) }, 3),
	quantized("QLinearLeakyRelu", 4, 5, func(b *Builder) variable {
		return b.Do("LeakyRelu", b.dequantized(0, 1, 2), b.keep("alpha"))
	}, 3),
	quantized("QLinearSoftmax", 5, 5, qSoftmax, 3),
	quantized("QLinearWhere", 9, 9, func(b *Builder) variable {
		return b.Do("Where", b.x(0), b.dequantized(1, 2, 3), b.dequantized(4, 5, 6))
	}, 7),
	quantized("QLinearReduceMean", 4, 5, func(b *Builder) variable {
		axes := b.Ints("axes")
		if axes == nil {
			axes = lists.Range[int64](b.rankOf(b.x(0)))
		}
		return b.Do("ReduceMean", b.dequantized(0, 1, 2), axes, b.keep("keepdims"))
	}, 3),
	quantized("QLinearConcat", 5, -1, func(b *Builder) variable {
		var parts []variable
		for k := 2; k < b.numInputs(); k += 3 {
			parts = append(parts, b.dequantized(k, k+1, k+2))
		}
		return b.concat(b.Op.Int("axis", 0), parts...)
	}, 0),
	quantized("QLinearAveragePool", 4, 5, func(b *Builder) variable {
		return b.channelsSecond(b.dequantized(0, 1, 2), func(x variable) variable {
			return b.Do("AveragePool", x, b.wholeWindows(x, b.keep("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")))
		})
	}, 3),
	quantized("QLinearGlobalAveragePool", 4, 5, func(b *Builder) variable {
		return b.channelsSecond(b.dequantized(0, 1, 2), func(x variable) variable { return b.Do("GlobalAveragePool", x) })
	}, 3),
	contrib("QLinearConv", 8, 9, nil, func(b *Builder) []variable {
		return []variable{b.channelsSecond(b.x(0), func(x variable) variable {
			return b.Do("QLinearConv", x, b.x(1), b.x(2), b.x(3), b.x(4), b.x(5), b.x(6), b.x(7), b.x(8),
				b.keep("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"))
		})}
	}),
	contrib("NhwcMaxPool", 1, 1, nil, func(b *Builder) []variable {
		return []variable{b.withChannelsSecond(b.x(0), func(x variable) variable {
			list, none := b.fittingPads(x, b.keep("auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"))
			y := b.Do("MaxPool", x, list)
			for _, axis := range none {
				y = b.slice(y, axis, 0, 0)
			}
			return y
		})}
	}),
	contrib("QuantizeLinear", 2, 3, nil, func(b *Builder) []variable {
		elem := onnx.Uint8
		if b.has(2) {
			elem = b.Elem(2)
		}
		if elem.Bits() == 8 {
			return []variable{b.Do("QuantizeLinear", b.x(0), b.x(1), b.x(2), b.keep("axis"))}
		}
		// Versions before 21 have no integers of 16 bits.
		least, most, _ := elem.Limits()
		y := b.add(b.Do("Round", b.div(b.x(0), b.alongAxis(b.x(1)))), b.alongAxis(b.cast(b.x(2), onnx.Float)))
		return []variable{b.cast(b.Do("Clip", y, float64(least), float64(most)), elem)}
	}),
	contrib("DequantizeLinear", 2, 3, nil, func(b *Builder) []variable {
		y := b.cast(b.x(0), onnx.Float)
		if b.has(2) {
			y = b.sub(y, b.alongAxis(b.cast(b.x(2), onnx.Float)))
		}
		return []variable{b.mul(y, b.alongAxis(b.x(1)))}
	}),
	contrib("DynamicQuantizeLSTM", 12, 12, func(c *Call) {
		x, w := c.sizesOf(0, 3), c.sizesOf(1, 3)
		hidden := c.exactly(w[2], Known(4))
		c.Set(0, NewType(c.Elem(0), x[0], w[0], x[1], hidden))
		c.Set(1, NewType(c.Elem(0), w[0], x[1], hidden))
		c.Set(2, NewType(c.Elem(0), w[0], x[1], hidden))
	}, nil),
	contrib("MulInteger", 3, 4, nil, func(b *Builder) []variable {
		number := func(k int) variable {
			x := b.cast(b.x(k), onnx.Int32)
			if b.has(k + 1) {
				x = b.sub(x, b.cast(b.x(k+1), onnx.Int32))
			}
			return x
		}
		return []variable{b.mul(number(0), number(2))}
	}),
}

// quantized returns an operator whose result is quantized with the scale that an input is, and the zero point behind it.
func quantized(typ string, minInputs, maxInputs int, body func(*Builder) variable, scale int) Operator {
	return contrib(typ, minInputs, maxInputs, nil, func(b *Builder) []variable {
		return []variable{b.Do("QuantizeLinear", body(b), b.x(scale), b.x(scale+1))}
	})
}

// dequantized returns an input of integers as numbers, nil if it is left out.
func (b *Builder) dequantized(x, scale, zero int) variable {
	if !b.has(x) {
		return nil
	}
	return b.Do("DequantizeLinear", b.x(x), b.x(scale), b.x(zero))
}

// product multiplies matrices of integers, and the sums with a scale.
func (b *Builder) product(x, y, zeroX, zeroY, scale, bias variable) variable {
	sums := b.Do("MatMulInteger", x, y, zeroX, zeroY)
	return b.plus(b.mul(b.cast(sums, onnx.Float), scale), bias)
}

func qGemm(b *Builder) []variable {
	x, y, zeroY := b.x(0), b.x(3), b.x(5)
	if b.Op.Int("transA", 0) != 0 {
		x = b.transpose(x, 1, 0)
	}
	if b.Op.Int("transB", 0) != 0 {
		y = b.transpose(y, 1, 0)
	}
	sums := b.Do("MatMulInteger", x, y, b.x(2), zeroY)
	sums = b.plus(sums, b.x(6))
	scale := b.mul(b.mul(b.x(1), b.x(4)), float64(b.Op.Float("alpha", 1)))
	out := b.mul(b.cast(sums, onnx.Float), scale)
	if b.has(7) {
		out = b.Do("QuantizeLinear", out, b.x(7), b.x(8))
	}
	return []variable{out}
}

// qSoftmax: before version 13, the dimensions from an axis on were one. Where that is one element, ONNX Runtime's integers
// overflow: of unsigned ones the result is 0.
func qSoftmax(b *Builder) variable {
	x := b.dequantized(0, 1, 2)
	axis := b.axis(b.Op.Int("axis", -1), b.rankOf(x))
	y := x
	flatten := b.Op.Int("opset", 0) < softmaxVersion
	if flatten {
		y, axis = b.Do("Flatten", x, Int("axis", int64(axis))), 1
	}
	n, known := b.known(y, axis)
	count := b.size(y, axis)
	if y = b.Do("Softmax", y, Int("axis", int64(axis))); b.Elem(0) == onnx.Uint8 && (!known || n == 1) {
		y = b.mul(y, b.cast(b.Do("Greater", count, 1), onnx.Float))
	}
	if flatten {
		y = b.Do("Reshape", y, b.Do("Shape", x))
	}
	return y
}

// channelsSecond calls compute with the channels as the second dimension. If the op says so, x has them as the last
// one, and so has the result.
func (b *Builder) channelsSecond(x variable, compute func(variable) variable) variable {
	if b.Op.Int("channels_last", 0) == 0 {
		return compute(x)
	}
	return b.withChannelsSecond(x, compute)
}

func (b *Builder) withChannelsSecond(x variable, compute func(variable) variable) variable {
	perm := lists.Range[int64](b.rankOf(x))
	n := len(perm)
	b.failIf(n < 3, "%d dimensions", n)
	back := append(append([]int64{0}, perm[2:]...), 1)
	return b.transpose(compute(b.transpose(x, append([]int64{0, int64(n - 1)}, perm[1:n-1]...)...)), back...)
}

// wholeWindows returns the attributes of a pool with more padding at the ends, so that a window that stands out
// because of ceil_mode is whole and counts as much as any other, if padding counts. That is how ONNX Runtime averages
// small integers, but not floats.
func (b *Builder) wholeWindows(x variable, list []*onnx.Attribute) []*onnx.Attribute {
	kernel, strides := b.Ints("kernel_shape"), b.Ints("strides")
	if b.Op.Int("ceil_mode", 0) == 0 || b.Op.Int("count_include_pad", 0) == 0 || len(strides) != len(kernel) || b.Op.Text("auto_pad", "NOTSET") != "NOTSET" {
		return list
	}
	n := len(kernel)
	pads := make([]int64, 2*n)
	copy(pads, b.Ints("pads"))
	for i, stride := range strides {
		more := stride - 1
		size, known := b.known(x, 2+i)
		if known && stride > 0 {
			more = max(0, kernel[i]-size-pads[i]-pads[n+i]) + (stride-max(0, size+pads[i]+pads[n+i]-kernel[i])%stride)%stride
		}
		// No window begins in the padding.
		if pads[n+i]+more < kernel[i] {
			pads[n+i] += more
		} else if !known {
			return list
		}
	}
	list = slices.DeleteFunc(list, func(a *onnx.Attribute) bool { return a.Name == "pads" || a.Name == "ceil_mode" })
	return append(list, Ints("pads", pads...))
}

// fittingPads returns the attributes of a pool with padding such that windows fit. Where one is too large for a
// dimension, ONNX Runtime rounds the number of windows toward 0, which may leave one; none lists the axes where it
// leaves none.
func (b *Builder) fittingPads(x variable, list []*onnx.Attribute) (fitting []*onnx.Attribute, none []int64) {
	kernel, strides, dilations := b.Ints("kernel_shape"), b.Ints("strides"), b.Ints("dilations")
	at := func(list []int64, i int) int64 {
		if i < len(list) {
			return list[i]
		}
		return 1
	}
	n := len(kernel)
	pads := make([]int64, 2*n)
	copy(pads, b.Ints("pads"))
	fits := true
	for i, k := range kernel {
		size, known := b.known(x, 2+i)
		lacks := (k-1)*at(dilations, i) + 1 - size - pads[i] - pads[n+i]
		if !known || lacks <= 0 {
			continue
		}
		pads[n+i], fits = pads[n+i]+lacks, false
		if lacks >= at(strides, i) {
			none = append(none, int64(2+i))
		}
	}
	if fits || b.Op.Text("auto_pad", "NOTSET") != "NOTSET" {
		return list, nil
	}
	list = slices.DeleteFunc(list, func(a *onnx.Attribute) bool { return a.Name == "pads" })
	return append(list, Ints("pads", pads...)), none
}

// alongAxis reshapes a vector, with a number for each index of an axis, so that it is broadcast to the first input.
func (b *Builder) alongAxis(v variable) variable {
	if b.rankOf(v) == 0 {
		return v
	}
	n := b.rankOf(b.x(0))
	shape := make([]int64, n-b.axis(b.Op.Int("axis", 1), n))
	for i := range shape {
		shape[i] = 1
	}
	shape[0] = -1
	return b.reshape(v, shape...)
}
