package lower

import (
	"slices"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// blockCodes are ONNX Runtime's operators of weights that are codes of a few bits, with scales of blocks. The codes
// of a model stay what they are: neither a product nor a lookup makes floats of all of them.
var blockCodes = map[string]func(c *call) []*value{
	"com.microsoft.MatMulNBits":          func(c *call) []*value { return c.matMulNBits() },
	"com.microsoft.GatherBlockQuantized": func(c *call) []*value { return c.gatherBlocks() },
}

// roundsFloats reports whether floats that meet codes are rounded to 8 bits: where accuracy_level allows it, and where ONNX
// Runtime 1.30 does it, of codes that are fast that way.
func (c *call) roundsFloats(bits, block int, zeros variable) bool {
	return c.int("accuracy_level", 0) == 4 && (bits == 4 || bits == 2 && block >= 32 && block <= 128) &&
		(ndim(zeros) == 0 || tensor.TypeOf(zeros).DType() == array.Uint8)
}

// matMulNBits multiplies floats, or floats that are rounded to 8 bits if that is allowed.
func (c *call) matMulNBits() []*value {
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
	var y variable
	if c.has(4) {
		y = c.reordered(x, bits, block, terms, codes, scales, zeros)
	} else {
		y = tensor.MustApply(tensor.BlockMatmulOp{Bits: bits, Terms: terms, Rounded: c.roundsFloats(bits, block, zeros)}, tensor.Cast(x, array.Float32), codes, scales, zeros)
	}
	if c.has(5) {
		y = tensor.Add(y, tensor.Cast(c.x(5), array.Float32))
	}
	return c.like(y)
}

// reordered is the product with weights of which input 4 says to which block each term belongs.
func (c *call) reordered(x variable, bits, block, terms int, codes, scales, zeros variable) variable {
	shape := c.shape(codes)
	columns, blocks := shape[0], shape[1]
	c.bounded([]int{columns, blocks * block})
	w := part(tensor.Cast(c.unpacked(c.reshape(codes, []int{columns, -1}), bits), array.Float32), 1, tensor.SliceOf(nil, tensor.Int(terms), 1))
	// The terms of a block need not lie together, so each takes the scale of its own.
	each := func(v variable) variable {
		return tensor.MoveAxes(tensor.Take(tensor.MoveAxes(v, []int{1}, []int{0}), tensor.Cast(part(c.x(4), 0, tensor.SliceOf(nil, tensor.Int(terms), 1)), array.Int64)), []int{0}, []int{1})
	}
	switch {
	case ndim(zeros) == 0:
	case tensor.TypeOf(zeros).DType() == array.Uint8:
		zeros = each(tensor.Cast(part(c.unpacked(c.reshape(zeros, []int{columns, -1}), bits), 1, tensor.SliceOf(nil, tensor.Int(blocks), 1)), array.Float32))
	default:
		zeros = each(c.reshape(tensor.Cast(zeros, array.Float32), []int{columns, blocks}))
	}
	w = tensor.Mul(tensor.Sub(w, zeros), each(c.reshape(tensor.Cast(scales, array.Float32), []int{columns, blocks})))
	return tensor.Matmul(tensor.Cast(x, array.Float32), tensor.Transpose(w))
}

// unpacked returns the codes of some bits that bytes hold along the last dimension, the first one of a byte in its
// lowest bits.
func (c *call) unpacked(v variable, bits int) variable {
	if bits == 8 {
		return v
	}
	n := ndim(v)
	var list []variable
	for s := 0; s < 8; s += bits {
		list = append(list, tensor.Map(array.And, tensor.Map(array.IntDiv, v, number(float64(int(1)<<s), v)), number(float64(int(1)<<bits-1), v)))
	}
	dims := slices.Clone(c.dims(v))
	dims[n-1] = numbers([]int{c.shapeOf(v, n-1) * 8 / bits})[0]
	return c.reshapeTo(tensor.Stack(n, list...), dims)
}

// shapeOf returns one size, which must be known.
func (c *call) shapeOf(v variable, d int) int {
	n := tensor.TypeOf(v).Dim(d)
	if n == tensor.Unknown {
		c.fail("%w: %v", ErrSizes, v.Type())
	}
	return n
}

// gatherBlocks takes codes before it makes floats of them.
func (c *call) gatherBlocks() []*value {
	x := c.x(0)
	n := ndim(x)
	axis, along, block := c.axis(c.int("gather_axis", 0), n), c.axis(c.int("quantize_axis", 1), n), c.int("block_size", 128)
	bits, packed := c.int("bits", 4), c.elem(0) == onnx.Uint8
	if axis == along || block < 1 || packed && (along != n-1 || bits != 2 && bits != 4 && bits != 8) {
		c.fail("%w: codes of %d bits along %d, of which those along %d are gathered", ErrUnsupported, bits, along, axis)
	}
	// The dimensions of the indices take the place of the gathered one.
	if along > axis {
		along += ndim(c.x(1)) - 1
	}
	taken := func(v variable) variable {
		if v = c.gather(v, axis); packed && tensor.TypeOf(v).DType() == array.Uint8 {
			v = c.unpacked(v, bits)
		}
		return tensor.Cast(v, array.Float32)
	}
	codes := taken(x)
	size := c.shapeOf(codes, along)
	spread := func(v variable) variable {
		c.bounded([]int{c.shapeOf(v, along), block})
		// Blocks are repeated whole, and the last one may be longer than what is left.
		return part(tensor.Repeat(v, tensor.Int(min(block, size)), along), along, tensor.SliceOf(nil, tensor.Int(size), 1))
	}
	switch {
	case c.has(3):
		codes = tensor.Sub(codes, spread(taken(c.x(3))))
	case packed:
		codes = tensor.Sub(codes, number(float64(int(1)<<(bits-1)), codes))
	}
	return c.out(tensor.Mul(codes, spread(tensor.Cast(c.gather(c.x(2), axis), array.Float32))), c.elem(2))
}
