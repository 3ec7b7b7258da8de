package lower

import "github.com/nnopt/nnopt/onnx"

// cast converts elements. Floats become integers by cutting off their fraction, integers wrap around, and
// bools are made by comparing with zero.
func (c *call) cast(to onnx.DataType) []*value {
	x, from := c.x(0), c.elem(0)
	switch to {
	case from:
		return []*value{c.in[0]}
	case onnx.Bool:
		return c.out(truth(x), to)
	}
	return c.out(x, to)
}
