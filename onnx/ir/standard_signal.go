package ir

import (
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

// standardSignals are Fourier transforms and what is multiplied before and after them.
var standardSignals = slices.Concat(
	named(Operator{MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) {
		size := c.one(0)
		c.notNegative(size)
		c.Set(0, NewType(c.to("output_datatype", onnx.Float), size))
	}}, "HannWindow", "HammingWindow", "BlackmanWindow"),
	[]Operator{
		{Type: "MelWeightMatrix", MinInputs: 5, MaxInputs: 5, Infer: func(c *Call) {
			c.Set(0, NewType(c.to("output_datatype", onnx.Float), c.one(1).over(Known(2)).Plus(Known(1)), c.one(0)))
		}},
		{Type: "DFT", MinInputs: 1, MaxInputs: 3, Infer: inferDFT},
		{Type: "STFT", MinInputs: 2, MaxInputs: 4, Body: stft},
	},
)

// inferDFT: the axis is an input since opset 20. The last dimension is of real and imaginary parts.
func inferDFT(c *Call) {
	elem := c.Elem(0)
	dims := c.ranked(0, elem)
	n := len(dims)
	c.failIf(n < 2, "a signal of %d dimensions; the last one is of real and imaginary parts", n)
	axis := Known(c.Op.Int("axis", -2))
	switch {
	case c.has(2):
		axis = c.one(2)
	case c.Op.Attribute("axis") == nil && c.Legacy != 0 && c.Legacy < 20:
		axis = Known(1)
	}
	half, inverse := c.Op.Int("onesided", 0) != 0, c.Op.Int("inverse", 0) != 0
	parts := Known(2)
	if half && inverse { // the result is real
		parts = Known(1)
	}
	dims[n-1] = parts
	at, ok := axis.Number()
	if !ok {
		for i := range n - 1 {
			dims[i] = UnknownDim
		}
		c.Set(0, NewType(elem, dims...))
		return
	}
	k := c.axis(at, n)
	c.failIf(k == n-1, "axis %d is that of real and imaginary parts", at)
	length := dims[k]
	switch {
	case c.has(1):
		length = c.one(1)
	case half && inverse:
		// Of the two lengths that such a half may come from, the even one. The odd one has to be given.
		length = length.Minus(Known(1)).Times(Known(2))
	}
	c.notNegative(length)
	if half && !inverse {
		length = length.over(Known(2)).Plus(Known(1))
	}
	dims[k] = length
	c.Set(0, NewType(elem, dims...))
}

// stft transforms frames of a signal, [N, length] or with real and imaginary parts as a third dimension.
func stft(b *Builder) []variable {
	x := b.x(0)
	if b.rankOf(x) == 2 {
		x = b.unsqueeze(x, 2)
	}
	dims, _ := TypeOf(x).Shape()
	b.failIf(len(dims) != 3, "a signal of %d dimensions", len(dims))
	if n, ok := b.one(1).Number(); ok && n < 1 {
		b.Fail("a frame_step of %d", n)
	}
	window, length, size := b.x(2), variable(nil), b.one(3)
	switch {
	case window != nil:
		if length, size = b.size(window, 0), b.sizesOf(2, 1)[0]; size.Differs(b.one(3)) {
			b.Fail("a window of %v for frames of %v", size, b.one(3))
		}
	case b.has(3):
		length = b.scalar(b.integers(3))
	default:
		b.Fail("there is neither a window nor the length of frames")
	}
	b.failIf(dims[1].Plus(Known(1)).atMost(size), "frames of %v of a signal of %v", size, dims[1])
	starts := b.Do("Range", Int64(0), b.add(b.sub(b.size(x, 1), length), 1), b.scalar(b.integers(1)))
	y := b.Do("Gather", x, b.add(b.unsqueeze(starts, 1), b.upTo(length)), Int("axis", 1)) // [N, frames, length, parts]
	if window != nil {
		y = b.mul(y, b.unsqueeze(window, 1))
	}
	return []variable{b.Do("DFT", y, nil, Int64(2), Int("onesided", b.Op.Int("onesided", 1)))}
}

// standardRandom are operators of random numbers.
var standardRandom = slices.Concat(
	named(Operator{MinInputs: 0, MaxInputs: 0, Random: true, Infer: func(c *Call) {
		shape := c.Op.Ints("shape")
		if len(shape) > maxRank {
			shape = nil
		}
		c.Set(0, tensor(c.to("dtype", onnx.Float), knowns(shape), len(shape) == len(c.Op.Ints("shape"))))
	}}, "RandomNormal", "RandomUniform"),
	named(Operator{MinInputs: 1, MaxInputs: 1, Random: true, Infer: func(c *Call) { c.shaped(0, c.to("dtype", c.Elem(0)), 0) }}, "RandomNormalLike", "RandomUniformLike", "Bernoulli"),
	[]Operator{{Type: "Multinomial", MinInputs: 1, MaxInputs: 1, Random: true, Infer: func(c *Call) {
		c.Set(0, NewType(c.to("dtype", onnx.Int32), c.sizesOf(0, 2)[0], Known(c.Op.Int("sample_size", 1))))
	}}},
)
