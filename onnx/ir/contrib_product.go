package ir

import (
	"slices"
	"strings"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
)

// contribProducts are products and convolutions of ONNX Runtime, with what it computes in the same pass, and those
// whose weights are small integers in blocks.
var contribProducts = []Operator{
	contrib("FusedMatMul", 2, 2, nil, fusedMatMul),
	contrib("TransposeMatMul", 2, 2, nil, fusedMatMul),
	contrib("FusedGemm", 2, 3, nil, func(b *Builder) []variable {
		y := b.Do("Gemm", b.x(0), b.x(1), b.x(2), b.keep("alpha", "beta", "transA", "transB"))
		return []variable{b.activated(y, b.keep("activation_alpha", "activation_beta"))}
	}),
	contrib("GemmFastGelu", 2, 3, nil, func(b *Builder) []variable {
		return []variable{b.fastGelu(b.plus(b.Do("MatMul", b.x(0), b.x(1)), b.x(2)))}
	}),
	contrib("FusedConv", 2, 4, nil, func(b *Builder) []variable {
		y := b.Do("Conv", b.x(0), b.x(1), b.x(2), b.keep("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"))
		return []variable{b.activated(b.plus(y, b.x(3)), b.keep("activation_params"))}
	}),
	contrib("MatMulNBits", 3, 6, func(c *Call) {
		c.lastOf(c.Op.Int("N", 0))
	}, matMulNBits),
	contrib("MatMulBnb4", 3, 3, func(c *Call) {
		c.lastOf(c.Op.Int("N", 0))
	}, matMulBnb4),
	contrib("GatherBlockQuantized", 3, 4, nil, gatherBlocks),
	contrib("MatMulInteger16", 2, 2, nil, func(b *Builder) []variable {
		return []variable{b.Do("MatMul", b.cast(b.x(0), onnx.Int32), b.cast(b.x(1), onnx.Int32))}
	}),
	contrib("CDist", 2, 2, nil, func(b *Builder) []variable {
		d := b.sub(b.unsqueeze(b.x(0), 1), b.unsqueeze(b.x(1), 0))
		y := b.Do("ReduceSum", b.mul(d, d), []int64{2}, Int("keepdims", 0))
		if b.Op.Text("metric", "sqeuclidean") == "euclidean" {
			y = b.Do("Sqrt", y)
		}
		return []variable{y}
	}),
}

// lastOf says that the result is the first input but for its last size.
func (c *Call) lastOf(n int64) {
	dims := c.ranked(0, c.Elem(0))
	c.failIf(len(dims) == 0, "a scalar")
	dims[len(dims)-1] = Known(n)
	c.Set(0, NewType(c.Elem(0), dims...))
}

// fusedMatMul multiplies matrices that may be transposed, or whose rows may come before the dimensions of the batch.
func fusedMatMul(b *Builder) []variable {
	factor := func(k int, rows, batch string) variable {
		x := b.x(k)
		if b.Op.Int(batch, 0) != 0 {
			perm := lists.Range[int64](b.rankOf(x))
			n := len(perm)
			x = b.transpose(x, slices.Concat(perm[1:n-1], []int64{0, int64(n - 1)})...)
		}
		if b.Op.Int(rows, 0) != 0 {
			x = b.swapped(x)
		}
		return x
	}
	y := b.Do("MatMul", factor(0, "transA", "transBatchA"), factor(1, "transB", "transBatchB"))
	if alpha := b.Op.Float("alpha", 1); alpha != 1 {
		y = b.mul(y, float64(alpha))
	}
	return []variable{y}
}

// activated applies the activation of the op. Parameters are a list, or attributes with the names that they have in
// the op of the activation behind a prefix.
func (b *Builder) activated(x variable, parameters []*onnx.Attribute) variable {
	name := b.Op.Text("activation", "")
	var own []*onnx.Attribute
	for _, a := range parameters {
		for i, f := range a.Floats {
			own = append(own, Float([]string{"alpha", "beta"}[min(i, 1)], f))
		}
		if a.Type == onnx.AttributeFloat {
			own = append(own, Float(strings.TrimPrefix(a.Name, "activation_"), a.Float))
		}
	}
	switch name {
	case "":
		return x
	case "Clip":
		b.failIf(len(own) != 2, "a Clip without bounds")
		return b.Do("Clip", x, float64(own[0].Float), float64(own[1].Float))
	case "Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid", "HardSwish", "Elu", "Selu", "Softplus", "Softsign", "ThresholdedRelu":
		return b.Do(name, x, own)
	}
	b.Fail("activation %q", name)
	return nil
}

// unpacked returns the integers of 2, 4 or 8 bits that bytes hold, along the last dimension, the lowest bits first.
func (b *Builder) unpacked(x variable, bits int64) variable {
	if bits == 8 {
		return x
	}
	b.failIf(bits != 2 && bits != 4, "%d bits", bits)
	// To the left and back to the right: the bits above fall off without a BitwiseAnd, which came with opset 18.
	var left []int64
	for n := 8 - bits; n >= 0; n -= bits {
		left = append(left, n)
	}
	shift, _ := Integers(left, onnx.Uint8, int64(len(left)))
	high := b.Do("BitShift", b.unsqueeze(x, -1), shift, String("direction", "LEFT"))
	parts := b.Do("BitShift", high, int(8-bits), String("direction", "RIGHT"))
	shape := slices.Repeat([]int64{0}, b.rankOf(x))
	shape[len(shape)-1] = -1
	return b.reshape(parts, shape...)
}

// blocks multiplies blocks of a dimension, the last one, with their scales, after subtracting zero points.
func (b *Builder) blocks(q, zero, scale variable) variable {
	q = b.cast(q, onnx.Float)
	if zero == nil {
		return b.mul(q, scale)
	}
	return b.mul(b.sub(q, b.cast(zero, onnx.Float)), scale)
}

// zeroPoints returns zero points, packed or not, of the rows of n blocks: [rows, n, 1].
func (b *Builder) zeroPoints(k int, rows, n, bits int64) variable {
	z := b.x(k)
	if z == nil {
		return scalarOf(float64(int64(1) << (bits - 1)))
	}
	// Zero points may also be floats, which are not packed.
	if b.Elem(k) == onnx.Uint8 {
		z = b.slice(b.unpacked(b.reshape(z, rows, -1), bits), 1, 0, n)
	}
	return b.reshape(z, rows, n, 1)
}

func matMulNBits(b *Builder) []variable {
	k, n, bits, size := b.Op.Int("K", 0), b.Op.Int("N", 0), b.Op.Int("bits", 4), b.Op.Int("block_size", 0)
	b.failIf(k < 1 || n < 1 || size < 1, "%d×%d integers in blocks of %d", k, n, size)
	many := (k + size - 1) / size
	q := b.unpacked(b.reshape(b.x(1), n, -1), bits)
	zero, scale := b.zeroPoints(3, n, many, bits), b.reshape(b.x(2), n, many, 1)
	w := b.reshape(q, n, many, size)
	if b.has(4) {
		// The terms of a block need not lie together: each says which block it belongs to.
		each := func(v variable) variable {
			if b.rankOf(v) == 0 {
				return v
			}
			return b.Do("Gather", v, b.slice(b.input(4), 0, 0, k), Int("axis", 1))
		}
		w, zero, scale = b.reshape(b.slice(q, 1, 0, k), n, k, 1), each(zero), each(scale)
	}
	// The last block of a row is filled up in the file.
	w = b.slice(b.reshape(b.blocks(w, zero, scale), n, -1), 1, 0, k)
	x := b.x(0)
	if !b.has(4) && RoundsFloats(b.Op, b.has(3) && b.Elem(3) != onnx.Uint8) {
		x = b.inBytes(x, k, size)
	}
	return []variable{b.plus(b.Do("MatMul", x, b.transpose(w, 1, 0)), b.x(5))}
}

// RoundsFloats reports whether MatMulNBits rounds floats that meet codes to 8 bits: where accuracy_level allows it, and
// where ONNX Runtime 1.30 does it, of codes that are fast that way.
func RoundsFloats(op *Op, floatZeros bool) bool {
	bits, block := op.Int("bits", 4), op.Int("block_size", 0)
	return op.Int("accuracy_level", 0) == 4 && (bits == 4 || bits == 2 && block >= 32 && block <= 128) && !floatZeros
}

// inBytes rounds blocks of the last dimension, k long, to multiples of 1/127 of their largest absolute value.
func (b *Builder) inBytes(x variable, k, size int64) variable {
	n := b.rankOf(x)
	many := (k + size - 1) / size
	shape := slices.Repeat([]int64{0}, n)
	if rest := many*size - k; rest > 0 {
		pads := make([]int64, 2*n)
		pads[2*n-1] = rest
		x = b.Do("Pad", x, pads)
	}
	x = b.reshape(x, append(shape[:n-1:n-1], many, size)...)
	// Blocks of zeros stay what they are: their largest value must not be a divisor.
	most := b.Do("Max", b.reduce("ReduceMax", b.Do("Abs", x), int64(n)), 1e-30)
	x = b.mul(b.Do("Round", b.mul(x, b.div(b.constant(127, onnx.Float), most))), b.div(most, 127.0))
	return b.slice(b.reshape(x, append(shape[:n-1:n-1], -1)...), int64(n-1), 0, k)
}

// The numbers that the codes of four bits of the library bitsandbytes stand for, by quant_type.
var bnb4 = [2][16]float32{
	{0, 5.208333333e-03, 0.66666667, 1, 0.33333333, 0.5, 0.16666667, 0.25, 0, -5.208333333e-03, -0.66666667, -1, -0.33333333, -0.5, -0.16666667, -0.25},
	{-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0,
		0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1},
}

func matMulBnb4(b *Builder) []variable {
	k, n, size, kind := b.Op.Int("K", 0), b.Op.Int("N", 0), b.Op.Int("block_size", 0), b.Op.Int("quant_type", 0)
	if k < 1 || n < 1 || size < 1 || kind < 0 || kind > 1 {
		b.Fail("%d×%d numbers in blocks of %d of type %d", k, n, size, kind)
	}
	// Blocks don't end with rows here.
	many := (k*n + size - 1) / size
	// The first of two codes is in the high bits here.
	pairs := b.reshape(b.unpacked(b.reshape(b.x(1), -1), 4), -1, 2)
	high := b.concat(1, b.slice(pairs, 1, 1, 2), b.slice(pairs, 1, 0, 1))
	code := b.slice(b.reshape(high, -1), 0, 0, k*n)
	w := b.Do("Gather", vectorOf(bnb4[kind][:]...), b.cast(code, onnx.Int32), Int("axis", 0))
	scale := b.Do("Tile", b.reshape(b.x(2), many, 1), []int64{1, size})
	w = b.mul(w, b.slice(b.reshape(scale, -1), 0, 0, k*n))
	return []variable{b.Do("MatMul", b.x(0), b.transpose(b.reshape(w, n, k), 1, 0))}
}

// gatherBlocks takes codes of a tensor that is quantized in blocks, and makes numbers of those alone.
func gatherBlocks(b *Builder) []variable {
	rank, size, packed := b.rankOf(b.input(0)), b.Op.Int("block_size", 128), b.Elem(0) == onnx.Uint8
	gather, quantize := b.axis(b.Op.Int("gather_axis", 0), rank), b.axis(b.Op.Int("quantize_axis", 1), rank)
	if gather == quantize || size < 1 || packed && quantize != rank-1 {
		b.Fail("gather_axis %d and quantize_axis %d of %d dimensions in blocks of %d", gather, quantize, rank, size)
	}
	rows, at := b.input(1), int64(gather)
	one := b.rankOf(rows) == 0
	if one && !packed {
		// A scale that is left alone would be one for all: ONNX Runtime has no blocks then.
		rows = b.unsqueeze(rows, 0)
	}
	take := func(x variable) variable { return b.Do("Gather", x, rows, Int("axis", at)) }
	// ONNX has types of four bits, but its Gather takes none smaller than a byte. Bytes are packed by the operator.
	if !packed {
		elem := onnx.Int8
		if b.Elem(0) == onnx.Uint4 {
			elem = onnx.Uint8
		}
		// The dimensions of the indices take the place of the gathered one.
		if quantize > gather {
			quantize += b.rankOf(rows) - 1
		}
		var zero variable
		if b.has(3) {
			zero = take(b.cast(b.input(3), elem))
		}
		y := b.Do("DequantizeLinear", take(b.cast(b.input(0), elem)), take(b.x(2)), zero, Int("axis", int64(quantize)), Int("block_size", size))
		if one {
			y = b.Do("Squeeze", y, []int64{at})
		}
		return []variable{y}
	}
	bits := b.Op.Int("bits", 4)
	many := b.number(b.input(2), -1)
	q := b.unpacked(take(b.input(0)), bits)
	zero := scalarOf(float64(int64(1) << (bits - 1)))
	if b.has(3) {
		zero = b.unsqueeze(b.slice(b.unpacked(take(b.input(3)), bits), -1, 0, many), -1)
	}
	// Blocks are a dimension of their own; the last one may be short.
	n := b.number(q, -1)
	shape := slices.Repeat([]int64{0}, b.rankOf(q))
	if n != many*size {
		pads := make([]int64, 2*len(shape))
		pads[len(pads)-1] = many*size - n
		q = b.Do("Pad", q, pads)
	}
	shape[len(shape)-1] = many
	w := b.blocks(b.reshape(q, append(shape, size)...), zero, b.unsqueeze(take(b.x(2)), -1))
	shape[len(shape)-1] = many * size
	return []variable{b.slice(b.reshape(w, shape...), -1, 0, n)}
}
