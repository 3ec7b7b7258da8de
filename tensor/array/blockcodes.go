package array

import "github.com/nnopt/nnopt/kernel"

// NewBlockWeights prepares the right-hand factor of BlockMatMul. Codes are uint8s of shape [columns, blocks, bytes of a
// block], as [kernel.BlockCoding] has them, and scales a float for each block. Zeros are such, or one for all, or
// uint8s with so many bits for each block, those of a column from a byte of their own on. Or codes are uint8s or int8s
// of shape [terms, columns], and scales and zeros one for each column, or for all. Threads, which may be nil, share the
// work. With ints, rows of the other factor may be rounded.
func NewBlockWeights(t *kernel.Threads, bits, terms int, ints bool, codes, scales, zeros *Array) *kernel.BlockWeights {
	if codes.ndim == 2 {
		return newColumnWeights(t, codes, scales, zeros)
	}
	c := kernel.BlockCoding{Rows: codes.Dim(0), Cols: terms, Bits: bits, Block: codes.Dim(2) * 8 / bits, Ints: ints}
	c.Codes, c.Scales = Slice[uint8](codes.inRows()), floatsOf(scales)
	if zeros.dtype != Uint8 {
		c.Zeros = floatsOf(zeros)
		return kernel.NewBlockWeights(t, &c)
	}
	packed, blocks := Slice[uint8](zeros.inRows()), codes.Dim(1)
	row := (blocks*bits + 7) / 8
	c.Zeros = make([]float32, c.Rows*blocks)
	for i := range c.Zeros {
		bit := i % blocks * bits
		c.Zeros[i] = float32(packed[i/blocks*row+bit/8] >> (bit % 8) & (1<<bits - 1))
	}
	return kernel.NewBlockWeights(t, &c)
}

// newColumnWeights is NewBlockWeights for a matrix of codes of 8 bits. What int8s mean is what uint8s mean that are
// larger by 128, as their zeros are.
func newColumnWeights(t *kernel.Threads, codes, scales, zeros *Array) *kernel.BlockWeights {
	terms, columns := codes.Dim(0), codes.Dim(1)
	block := kernel.LeastBlock
	// All blocks of a column have one scale, so they may be as long as they like, if none is filled up with
	// codes.
	for block < kernel.LargestBlock/4 && terms%(2*block) == 0 {
		block *= 2
	}
	blocks := (terms + block - 1) / block
	c := kernel.BlockCoding{Rows: columns, Cols: terms, Bits: 8, Block: block, Codes: make([]byte, columns*blocks*block)}
	bytes, signed := codes.Transpose(1, 0).inRows().bytes()
	flip, shift := byte(0), float32(0)
	if signed {
		flip, shift = 0x80, 128
	}
	scale, zero := floatsOf(scales), floatsOf(zeros)
	for j := range columns {
		row := c.Codes[j*blocks*block:]
		for l, b := range bytes[j*terms:][:terms] {
			row[l] = b ^ flip
		}
		for range blocks {
			c.Scales = append(c.Scales, scale[j%len(scale)])
			c.Zeros = append(c.Zeros, zero[j%len(zero)]+shift)
		}
	}
	if len(zero) == 1 {
		c.Zeros = c.Zeros[:1]
	}
	return kernel.NewBlockWeights(t, &c)
}

// inRows returns an array whose elements follow each other: a copy, unless they do already.
func (a *Array) inRows() *Array {
	if a.Contiguous() {
		return a
	}
	return a.Clone()
}

// floatsOf returns the elements of an array as float32s.
func floatsOf(a *Array) []float32 {
	if a.dtype != Float32 {
		a = a.Cast(Float32)
	}
	return Slice[float32](a.inRows())
}

// BlockMatMul sets c to the products of the rows of a, along its last dimension, and weights, and completes them.
func (ws *Workspace) BlockMatMul(c, a *Array, w *kernel.BlockWeights, e *Epilogue, args []*Array) error {
	var done completion
	if err := ws.complete(&done, e, c, args, true); err != nil {
		return err
	}
	defer done.end()
	if c.Len() == 0 {
		return nil
	}
	rows, ok := a.asRows()
	if !ok || rows.shape[1] > 1 && rows.strides[1] != 1 || rows.shape[0] > 1 && rows.strides[0] < rows.shape[1] {
		t, err := ws.scratchCopy(a)
		if err != nil {
			return err
		}
		defer ws.Release(t)
		rows, _ = t.asRows()
	}
	n, _ := w.Shape()
	var x kernel.Matrix
	rows.header32(&x)
	w.Mul(x, *done.of(0, x.Rows, 0, n), kernel.Matrix{Rows: x.Rows, Cols: n, Stride: n, Data: Slice[float32](c)})
	done.run(0, c.Len())
	return nil
}
