package ir

import (
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

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
