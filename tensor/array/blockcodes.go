package array

import "github.com/nnopt/nnopt/kernel"

// NewBlockWeights prepares the right-hand factor of BlockMatMul. Codes are uint8s of shape [columns, blocks, bytes of a
// block], as [kernel.BlockCoding] has them, and scales a float for each block. Zeros are such, or one for all, or
// uint8s with so many bits for each block, those of a column from a byte of their own on. Threads, which may be nil,
// share the work.
func NewBlockWeights(t *kernel.Threads, bits, terms int, codes, scales, zeros *Array) *kernel.BlockWeights {
	inOrder := func(a *Array) *Array {
		if a.dtype.IsHalf() {
			a = a.Cast(Float32)
		}
		if a.Contiguous() {
			return a
		}
		return a.Clone()
	}
	c := kernel.BlockCoding{Rows: codes.Dim(0), Cols: terms, Bits: bits, Block: codes.Dim(2) * 8 / bits}
	c.Codes, c.Scales = Slice[uint8](inOrder(codes)), Slice[float32](inOrder(scales))
	if zeros = inOrder(zeros); zeros.dtype == Float32 {
		c.Zeros = Slice[float32](zeros)
		return kernel.NewBlockWeights(t, &c)
	}
	packed, blocks := Slice[uint8](zeros), codes.Dim(1)
	row := (blocks*bits + 7) / 8
	c.Zeros = make([]float32, c.Rows*blocks)
	for i := range c.Zeros {
		bit := i % blocks * bits
		c.Zeros[i] = float32(packed[i/blocks*row+bit/8] >> (bit % 8) & (1<<bits - 1))
	}
	return kernel.NewBlockWeights(t, &c)
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
