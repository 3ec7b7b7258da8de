package lower

import (
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

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
