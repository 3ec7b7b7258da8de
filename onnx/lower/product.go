package lower

import (
	"cmp"
	"slices"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

var products = map[string]func(c *call) []*value{
	"MatMul": func(c *call) []*value { return c.like(tensor.Matmul(c.x(0), c.x(1))) },
	"Gemm": func(c *call) []*value {
		a, b := c.x(0), c.x(1)
		if c.bool("transA", false) {
			a = tensor.Transpose(a)
		}
		if c.bool("transB", false) {
			b = tensor.Transpose(b)
		}
		y := tensor.Dot(a, b)
		if alpha := c.float("alpha", 1); alpha != 1 {
			y = tensor.Mul(number(alpha, y), y)
		}
		if beta := c.float("beta", 1); c.has(2) && beta != 0 {
			z := c.x(2)
			if beta != 1 {
				z = tensor.Mul(number(beta, z), z)
			}
			y = tensor.Add(y, z)
		}
		return c.like(y)
	},
	"Einsum": func(c *call) []*value {
		return c.like(tensor.Einsum(c.text("equation", ""), c.xs()...))
	},
	"Det":           func(c *call) []*value { return c.det() },
	"MatMulInteger": func(c *call) []*value { return c.matmulInteger() },
	"QuantizeLinear": func(c *call) []*value {
		elem := onnx.Uint8
		if c.has(2) {
			elem = c.elem(2)
		}
		elem = cmp.Or(onnx.DataType(c.int("output_dtype", 0)), elem)
		return c.out(c.quantize(c.x(0), c.along(1, c.x(0)), c.alongOr(2, c.x(0)), elem), elem)
	},
	"DequantizeLinear": func(c *call) []*value {
		x := tensor.Cast(c.x(0), tensor.TypeOf(c.x(1)).DType())
		if z := c.alongOr(2, c.x(0)); z != nil {
			x = tensor.Sub(x, tensor.Cast(z, tensor.TypeOf(c.x(1)).DType()))
		}
		return c.out(tensor.Mul(x, c.along(1, c.x(0))), cmp.Or(onnx.DataType(c.int("output_dtype", 0)), c.elem(1)))
	},
	"DynamicQuantizeLinear": func(c *call) []*value {
		scale, z := dynamicScale(c.x(0))
		return []*value{{v: c.quantize(c.x(0), scale, z, onnx.Uint8), elem: onnx.Uint8}, {v: scale, elem: onnx.Float}, {v: z, elem: onnx.Uint8}}
	},
	"QLinearMatMul": func(c *call) []*value {
		if sums := c.matmulSums(0, 3, 2, 5); sums != nil && ndim(c.single(1)) == 0 && ndim(c.x(4)) <= 1 {
			scale := tensor.Mul(tensor.Cast(c.single(1), array.Float64), tensor.Cast(c.single(4), array.Float64))
			return c.requantized(tensor.Mul(tensor.Cast(sums, array.Float64), scale))
		}
		return c.requantized(tensor.Matmul(c.dequantized(0, 1, 2), c.dequantized(3, 4, 5)))
	},
	"QLinearConv": func(c *call) []*value {
		w := c.weights(3)
		if sums := c.convSums(0, 3, 2, 5, len(w)); sums != nil && ndim(c.single(1)) == 0 {
			y := tensor.Cast(sums, array.Float64)
			if c.has(8) {
				y = tensor.Add(y, channels(c.floats(8), len(w)))
			}
			scale := tensor.Cast(c.single(4), array.Float64)
			if ndim(scale) > 0 {
				scale = channels(scale, len(w))
			}
			scale = tensor.Mul(tensor.Cast(c.single(1), array.Float64), scale)
			return c.requantized(tensor.Mul(y, scale))
		}
		x := c.dequantized(0, 1, 2)
		weights := tensor.Mul(tensor.Sub(c.floats(3), rows(c.floats(5), len(w))), rows(c.floats(4), len(w)))
		var bias variable
		if c.has(8) {
			bias = tensor.Mul(c.floats(8), tensor.Mul(c.floats(1), c.floats(4)))
		}
		return c.requantized(tensor.Conv(x, weights, bias, c.slide(w[2:], x), c.int("group", 1)))
	},
	"ConvInteger": func(c *call) []*value {
		w := c.weights(1)
		if sums := c.convSums(0, 1, 2, 3, len(w)); sums != nil {
			return c.out(sums, onnx.Int32)
		}
		x, k := c.floats(0), c.floats(1)
		if c.has(2) {
			x = tensor.Sub(x, tensor.Cast(c.reshape(c.x(2), nil), array.Float64))
		}
		if c.has(3) {
			k = tensor.Sub(k, rows(c.floats(3), len(w)))
		}
		return c.out(tensor.Conv(x, k, nil, c.slide(w[2:], x), c.int("group", 1)), onnx.Int32)
	},
}

// dynamicScale returns the scale and the zero point with which all elements of x are integers of 8 bits, and 0 is one.
func dynamicScale(x variable) (scale, z variable) {
	low, high := reduceAll(array.Min, x), reduceAll(array.Max, x)
	zero := number(0, low)
	low, high = tensor.Minimum(low, zero), tensor.Maximum(high, zero)
	// Of zeros alone the scale may be anything but 0: it is 1, as in ONNX Runtime.
	scale = tensor.Switch(tensor.Map(array.Eq, high, low), number(1, low), tensor.TrueDiv(tensor.Sub(high, low), number(255, low)))
	point := tensor.Map(array.Round, tensor.Maximum(zero, tensor.Minimum(number(255, low), tensor.TrueDiv(tensor.Neg(low), scale))))
	return scale, tensor.Cast(point, array.Uint8)
}

// reduceAll reduces a tensor to a scalar.
func reduceAll(op array.Reduction, x variable) variable {
	if ndim(x) == 0 {
		return x
	}
	return tensor.ReduceOver(op, x, span(0, ndim(x))...)
}

// rows gives a vector of a number for each first index, or a scalar, so many dimensions.
func rows(v variable, n int) variable {
	if ndim(v) == 0 {
		return v
	}
	return asDim(v, 0, n)
}

// along returns an input that is a scalar, a vector along the axis of the attribute, or has a number for
// each block of elements along that axis.
func (c *call) along(k int, x variable) variable {
	v := c.x(k)
	block := c.int("block_size", 0)
	switch {
	case block != 0:
		return c.blocks(v, x, block)
	case ndim(v) == 0:
		return v
	case ndim(v) == 1:
		if c.shape(v)[0] == 1 {
			return c.reshape(v, nil)
		}
		return asDim(v, c.axis(c.int("axis", 1), ndim(x)), ndim(x))
	}
	c.fail("%d dimensions of scales", ndim(v))
	return nil
}

// blocks repeats numbers for the elements of blocks along the axis, of which the last one may be short.
func (c *call) blocks(v, x variable, block int) variable {
	have, shape := c.shape(v), c.shape(x)
	axis := c.axis(c.int("axis", 1), len(shape))
	want := slices.Clone(shape)
	if block > 0 {
		want[axis] = (shape[axis] + block - 1) / block
	}
	if block < 0 || !slices.Equal(have, want) {
		c.fail("scales of shape %v for blocks of %d along %d of %v", have, block, axis, shape)
	}
	// A block may be said to be longer than the axis. It is repeated no more often than that, since the
	// rest would be cut off.
	c.bounded(append(slices.Clone(shape), min(block, max(shape[axis], 1))))
	repeated := tensor.Repeat(v, tensor.Int(min(block, max(shape[axis], 1))), axis)
	return part(repeated, axis, tensor.SliceOf(tensor.Int(0), tensor.Int(shape[axis]), 1))
}

func (c *call) alongOr(k int, x variable) variable {
	if !c.has(k) {
		return nil
	}
	return c.along(k, x)
}

// quantize rounds x/scale + zero to integers of a type, those beyond its range to the nearest one.
func (c *call) quantize(x, scale, zero variable, elem onnx.DataType) variable {
	d := tensor.TypeOf(x).DType()
	y := tensor.TrueDiv(x, tensor.Cast(scale, d))
	if _, small := smallFloats[elem]; small { // whose zero points are 0
		return c.toSmall(y, elem)
	}
	// Before the zero point is added: halves go to even integers, and an odd zero point would make others of them.
	y = tensor.Map(array.Round, y)
	if zero != nil {
		y = tensor.Add(y, tensor.Cast(zero, d))
	}
	low, high, ok := elem.Limits()
	c.failIf(!ok || elem == onnx.Bool || elem.Bits() > 16, "%w: integers of type %v", ErrUnsupported, elem)
	y = tensor.Maximum(number(float64(low), y), tensor.Minimum(number(float64(high), y), y))
	return c.typed(y, elem).v
}

// requantized returns a result as integers, as inputs 6 and 7 say.
func (c *call) requantized(y variable) []*value {
	return []*value{{v: c.quantize(y, c.x(6), c.x(7), c.elem(7)), elem: c.elem(7)}}
}

// dequantized returns integers as numbers.
func (c *call) dequantized(x, scale, zero int) variable {
	return tensor.Mul(tensor.Sub(c.floats(x), c.floats(zero)), c.floats(scale))
}

// zeroOf returns what means 0 in an input, which input k says, or nil if that is neither a number nor, if
// each may have one, a vector.
func (c *call) zeroOf(k, input int, each bool) variable {
	if !c.has(k) {
		return tensor.Constant(array.Full(tensor.TypeOf(c.x(input)).DType(), 0))
	}
	z := c.x(k)
	switch {
	case ndim(z) == 1 && c.shape(z)[0] == 1:
		z = c.reshape(z, nil)
	case ndim(z) > 0 && !(each && ndim(z) == 1):
		return nil
	}
	if tensor.TypeOf(z).DType() != tensor.TypeOf(c.x(input)).DType() {
		return nil
	}
	return z
}

// bytes reports whether an input has integers of eight bits.
func (c *call) bytes(k int) bool {
	d := tensor.TypeOf(c.x(k)).DType()
	return d == array.Int8 || d == array.Uint8
}

// matmulSums returns the exact product of two inputs, or nil for what only one with larger integers has:
// several matrices on the right, or several zeros on the left.
func (c *call) matmulSums(a, b, zeroA, zeroB int) variable {
	if !c.bytes(a) || !c.bytes(b) || ndim(c.x(a)) < 2 || ndim(c.x(b)) != 2 {
		return nil
	}
	za, zb := c.zeroOf(zeroA, a, false), c.zeroOf(zeroB, b, true)
	if za == nil || zb == nil {
		return nil
	}
	return tensor.MatmulInteger(c.x(a), c.x(b), za, zb)
}

// convSums returns the exact convolution of two inputs, with weights of n dimensions, or nil if it has groups.
func (c *call) convSums(x, w, zeroX, zeroW, n int) variable {
	if !c.bytes(x) || !c.bytes(w) || c.int("group", 1) != 1 || n > 2+array.MaxSpatial || ndim(c.x(x)) != n {
		return nil
	}
	zx, zw := c.zeroOf(zeroX, x, false), c.zeroOf(zeroW, w, true)
	if zx == nil || zw == nil {
		return nil
	}
	return tensor.ConvInteger(c.x(x), c.x(w), zx, zw, c.slide(c.shape(c.x(w))[2:], c.x(x)))
}

// single returns an input without dimensions if it has one element, and otherwise as it is.
func (c *call) single(k int) variable {
	if v := c.x(k); ndim(v) != 1 || c.shape(v)[0] != 1 {
		return v
	}
	return c.reshape(c.x(k), nil)
}

func (c *call) matmulInteger() []*value {
	if sums := c.matmulSums(0, 1, 2, 3); sums != nil {
		return c.out(sums, onnx.Int32)
	}
	a, b := c.integers(0), c.integers(1)
	if c.has(2) {
		z := c.integers(2)
		if ndim(z) == 1 && c.shape(z)[0] > 1 {
			// Each row of the left factor has a zero of its own.
			z = tensor.ExpandDims(z, 1)
		}
		a = tensor.Sub(a, z)
	}
	if c.has(3) {
		b = tensor.Sub(b, c.integers(3))
	}
	return c.out(tensor.Matmul(a, b), onnx.Int32)
}

// det returns the determinants of matrices.
func (c *call) det() []*value {
	x := c.x(0)
	if ndim(x) == 2 {
		return c.like(tensor.Det(x))
	}
	shape := c.shape(x)
	c.failIf(len(shape) < 2, "%d dimensions", len(shape))
	n := product(shape[:len(shape)-2])
	flat := c.reshape(x, append([]int{n}, shape[len(shape)-2:]...))
	c.bounded([]int{n})
	var list []variable
	for i := range min(n, 1<<10) {
		list = append(list, tensor.Det(tensor.Subtensor(flat, tensor.At(tensor.Int(i)))))
	}
	return c.like(c.reshape(tensor.Stack(0, list...), shape[:len(shape)-2]))
}

// blockCodes are ONNX Runtime's operators of weights that are codes of a few bits, with scales of blocks. The codes
// of a model stay what they are: neither a product nor a lookup makes floats of all of them.
var blockCodes = map[string]func(c *call) []*value{
	"com.microsoft.MatMulNBits": (*call).matMulNBits,
}

// matMulNBits multiplies floats, or floats that are rounded to 8 bits if that is allowed.
func (c *call) matMulNBits() []*value {
	if c.has(4) { // the blocks of terms that do not lie together
		return c.parts()
	}
	bits, terms, columns, block := c.int("bits", 4), c.int("K", 0), c.int("N", 0), c.int("block_size", 0)
	x, codes := c.x(0), c.x(1)
	// Blocks are those that ONNX Runtime takes: powers of two from 16 on.
	if bits != 2 && bits != 4 && bits != 8 || block < 16 || block&(block-1) != 0 || tensor.TypeOf(codes).DType() != array.Uint8 {
		c.fail("%w: %d bits in blocks of %d", ErrUnsupported, bits, block)
	}
	blocks := (terms + block - 1) / block
	if ndim(codes) != 3 {
		codes = c.reshape(codes, []int{columns, blocks, block * bits / 8})
	}
	scales := c.stored(2)
	zeros := tensor.Constant(array.Full(array.Float32, float64(int(1)<<(bits-1))))
	if c.has(3) {
		zeros = c.stored(3)
	}
	rounded := ir.RoundsFloats(c.op, ndim(zeros) > 0 && tensor.TypeOf(zeros).DType() != array.Uint8)
	y := tensor.MustApply(tensor.BlockMatmulOp{Bits: bits, Terms: terms, Rounded: rounded}, tensor.Cast(x, array.Float32), codes, scales, zeros)
	if c.has(5) {
		y = tensor.Add(y, tensor.Cast(c.x(5), array.Float32))
	}
	return c.like(y)
}
