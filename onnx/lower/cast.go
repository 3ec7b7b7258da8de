package lower

import (
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// cast converts elements. Floats become integers by cutting off their fraction, integers wrap around, and
// bools are made by comparing with zero.
func (c *call) cast(to onnx.DataType) []*value {
	x, from := c.x(0), c.elem(0)
	if from == onnx.String && to != from {
		x = c.parsed(x, to)
	}
	switch to {
	case from:
		return []*value{c.in[0]}
	case onnx.String:
		return c.out(c.formatted(x), to)
	case onnx.Bool:
		return c.out(truth(x), to)
	case onnx.Int4, onnx.Uint4, onnx.Int2, onnx.Uint2:
		return c.out(wrapped(tensor.Cast(x, array.Int64), to), to)
	}
	if isSmall(to) {
		return c.out(c.toSmall(x, to), to)
	}
	return c.out(x, to)
}

// wrapped gives int64s the range of a smaller type of integers, which arrays hold in a larger one.
func wrapped(x variable, to onnx.DataType) variable {
	least, most, _ := to.Limits()
	low := number(float64(least), x)
	// The remainder has the sign of the divisor, so numbers wrap around at both ends.
	return tensor.Add(tensor.Map(array.Mod, tensor.Sub(x, low), number(float64(most-least+1), x)), low)
}

// toSmall rounds x to a small type of floats, as the attributes of the node say.
func (c *call) toSmall(x variable, t onnx.DataType) variable {
	p := toSmall{t, c.bool("saturate", true), c.oneOf("round_mode", "up", "up", "down", "nearest")}
	return routine(c, "RoundSmall", roundedToSmall, p, []variable{tensor.Cast(x, array.Float64)}, tensor.NewType(array.Float32, c.shape(x)...))[0]
}

type bitCast struct{ From, To onnx.DataType }

// bitCast takes the bits of elements for those of another type.
func (c *call) bitCast() []*value {
	from, to := c.elem(0), onnx.DataType(c.int("to", 0))
	d, err := dtypeOf(to)
	c.failIf(err != nil, "%w", err)
	c.failIf(from.Bits() != to.Bits() || from.Bits() < 8, "elements of type %v have not as many bits as %v", from, to)
	return c.out(routine(c, "BitCast", bitsCast, bitCast{from, to}, []variable{c.x(0)}, tensor.NewType(d, c.shape(c.x(0))...))[0], to)
}

func bitsCast(p bitCast, in []*array.Array) ([]*array.Array, error) {
	t, err := TensorOf("", in[0], p.From)
	if err != nil {
		return nil, err
	}
	t.DataType = p.To
	a, err := ArrayOf(t, "")
	return []*array.Array{a}, err
}
