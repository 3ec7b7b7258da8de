package lower

import (
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// cast converts elements. Floats become integers by cutting off their fraction, and bools by being
// compared with zero.
func (c *call) cast(to onnx.DataType) []*value {
	x, from := c.x(0), c.elem(0)
	switch to {
	case from:
		return []*value{c.in[0]}
	case onnx.Bool:
		return c.out(truth(x), to)
	case onnx.BFloat16, onnx.Float16:
		// Rounded once, from what the elements are.
		return c.out(c.routine("Round16", roundTo{to == onnx.BFloat16}, []variable{c.floats(0)}, tensor.NewType(array.Float64, c.shape(x)...))[0], to)
	case onnx.Int16, onnx.Uint16, onnx.Uint32, onnx.Int4, onnx.Uint4, onnx.Int2, onnx.Uint2:
		return c.out(wrapped(tensor.Cast(x, array.Int64), to), to)
	}
	if isSmall(to) {
		return c.out(c.toSmall(x, to), to)
	}
	return c.out(x, to)
}

// wrapped gives int64s the range of a smaller type of integers, which arrays hold in a larger one.
func wrapped(x variable, to onnx.DataType) variable {
	size, low := float64(int64(1)<<to.Bits()), 0.0
	if to == onnx.Int16 || to == onnx.Int4 || to == onnx.Int2 {
		low = -size / 2
	}
	y := tensor.Map(array.Mod, tensor.Sub(x, number(low, x)), number(size, x))
	return tensor.Add(y, number(low, x))
}

type roundTo struct{ Brain bool }

// roundedTo16 rounds numbers to what half floats hold.
func roundedTo16(p roundTo, in []*array.Array) ([]*array.Array, error) {
	y := array.New(array.Float64, in[0].Shape()...)
	out := array.Slice[float64](y)
	for i, v := range array.Slice[float64](in[0]) {
		if p.Brain {
			out[i] = floatAt(onnx.BFloat16, []byte{byte(brainBits(float32(v))), byte(brainBits(float32(v)) >> 8)}, 0)
		} else {
			out[i] = half(halfBits(v))
		}
	}
	return []*array.Array{y}, nil
}
