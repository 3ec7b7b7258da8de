package ir

import (
	"cmp"

	"github.com/nnopt/nnopt/onnx"
)

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
