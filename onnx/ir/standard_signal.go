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
			c.Set(0, NewType(c.to("output_datatype", onnx.Float), c.one(1).Over(Known(2)).Plus(Known(1)), c.one(0)))
		}},
		{Type: "DFT", MinInputs: 1, MaxInputs: 3, Infer: inferDFT},
		{Type: "STFT", MinInputs: 2, MaxInputs: 4, Infer: inferSTFT},
	},
)

// inferDFT: the axis is an input since opset 20. The last dimension is of real and imaginary parts.
func inferDFT(c *Call) {
	elem := c.Elem(0)
	dims := c.ranked(0, elem)
	n := len(dims)
	if n < 2 {
		c.Fail("a signal of %d dimensions; the last one is of real and imaginary parts", n)
	}
	axis := Known(c.Op.Int("axis", -2))
	switch {
	case c.Has(2):
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
	k := c.Axis(at, n)
	if k == n-1 {
		c.Fail("axis %d is that of real and imaginary parts", at)
	}
	length := dims[k]
	switch {
	case c.Has(1):
		length = c.one(1)
	case half && inverse:
		// Of the two lengths that such a half may come from, the even one. The odd one has to be given.
		length = length.Minus(Known(1)).Times(Known(2))
	}
	c.notNegative(length)
	if half && !inverse {
		length = length.Over(Known(2)).Plus(Known(1))
	}
	dims[k] = length
	c.Set(0, NewType(elem, dims...))
}

// inferSTFT: frames are as long as frame_length says, or as the window.
func inferSTFT(c *Call) {
	signal := c.sizesOf(0, 3)
	length := UnknownDim
	if c.Has(2) {
		length = c.sizesOf(2, 1)[0]
	}
	if c.Has(3) {
		length = c.one(3)
	}
	step := c.one(1)
	if n, ok := step.Number(); ok && n < 1 {
		c.Fail("a frame_step of %d", n)
	}
	frames := signal[1].Minus(length).Over(step).Plus(Known(1))
	bins := length
	if c.Op.Int("onesided", 1) != 0 {
		bins = length.Over(Known(2)).Plus(Known(1))
	}
	c.Set(0, NewType(c.Elem(0), signal[0], frames, bins, Known(2)))
}
