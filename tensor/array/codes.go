package array

import (
	"unsafe"

	"github.com/nnopt/nnopt/internal/kernel"
)

// NewCodeWeights prepares the right-hand factor of MatMulCodes and ConvLastCodes, an array of int8s or
// uint8s, whose last dimension is the columns of the result and whose others are its terms. zero, a number
// or one for each column, is what means 0.
func NewCodeWeights(w, zero *Array) *kernel.IntegerWeights {
	n := w.shape[w.ndim-1]
	k := 0
	if n > 0 {
		k = w.Len() / n
	}
	// The difference of two bytes takes nine bits, so codes without their zeros are int16s.
	zeros := make([]int16, n)
	for j := range zeros {
		zeros[j] = int16(zero.Int(j % zero.Len()))
	}
	codes := make([]int16, n*k)
	bytes, signed := w.inRows().bytes()
	// Some terms of all columns at a time, whose places stay in a cache.
	const some = 32
	for first := 0; first < k; first += some {
		for i := first; i < min(first+some, k); i++ {
			for j, b := range bytes[i*n:][:n] {
				c := int16(b)
				if signed {
					c = int16(int8(b))
				}
				codes[j*k+i] = c - zeros[j]
			}
		}
	}
	return kernel.NewIntegerWeights(codes, n, k)
}

// bytes returns the elements of a contiguous array of int8s or uint8s.
func (a *Array) bytes() (b []byte, signed bool) {
	if a.dtype == Uint8 {
		return Slice[uint8](a), false
	}
	return bytesOf(Slice[int8](a)), true
}

// bytesOf returns the memory of int8s.
func bytesOf(s []int8) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// MatMulCodes sets c to the products of the rows of a, int8s or uint8s of which zero means 0, and one matrix.
// If c has int32s, they are exact, and sums that need more bits wrap around. If it has float32s, sums are
// those of int32s, rounded once, and an epilogue may follow.
func (ws *Workspace) MatMulCodes(c, a, zero *Array, w *kernel.IntegerWeights, e *Epilogue, args []*Array) error {
	if c.Len() == 0 {
		return nil
	}
	a, release, err := ws.contiguous(a)
	if err != nil {
		return err
	}
	defer release()
	var done completion
	if err := ws.complete(&done, e, c, args, direct(c, w)); err != nil {
		return err
	}
	defer done.end()
	cols, terms := w.Shape()
	codes, signed := a.bytes()
	return done.sections(c.Len()/cols, terms, cols, ws.Threads, func(first, n int) error {
		ws.integersOf().rows.SetCodes(codes[first*terms:], signed, int(zero.Int(0)), n, terms)
		return done.multiplyCodes(c, w, first, n)
	})
}

// direct reports whether products with w set y without int32s between.
func direct(y *Array, w *kernel.IntegerWeights) bool { return y.dtype == Float32 && w.Exact() }

// multiplyCodes sets n rows of y, from one on, to the products of rows of the workspace, and completes them.
func (c *completion) multiplyCodes(y *Array, w *kernel.IntegerWeights, first, n int) error {
	x, at, all := &c.ws.integersOf().rows, first*c.cols, n*c.cols
	if direct(y, w) {
		kernel.MulExact(x, w, *c.of(first, n, 0, c.cols), general32(y.rowsAt(at, n, c.cols, c.cols)))
	} else if err := c.ws.multiplyIntegers(y.rowsAt(at, n, c.cols, c.cols), x, w); err != nil {
		return err
	}
	c.run(at, all)
	return nil
}

// multiplyIntegers sets y to products by way of int32s.
func (ws *Workspace) multiplyIntegers(y *Array, x *kernel.QuantizedRows, w *kernel.IntegerWeights) error {
	scratch, sums := new(Array), y
	if err := ws.New(scratch, Float32, y.Shape()...); err != nil {
		return err
	}
	defer ws.Release(scratch)
	if y.dtype != Int32 {
		sums = new(Array)
		if err := ws.New(sums, Int32, y.Shape()...); err != nil {
			return err
		}
		defer ws.Release(sums)
	}
	kernel.MulIntegers(Slice[int32](sums), x, w, general32(scratch), ws.Threads)
	if sums != y {
		castBlock(Slice[float32](y), Slice[int32](sums))
	}
	return nil
}

// ConvLastCodes is ConvLast of int8s or uint8s, of which zero means 0, without groups: y has the sums as
// those of MatMulCodes are. weights are those that w was made of.
func (ws *Workspace) ConvLastCodes(y, x, zero, weights *Array, w *kernel.IntegerWeights, window Window, e *Epilogue, args []*Array) error {
	if y.Len() == 0 {
		return nil
	}
	x, release, err := ws.contiguous(x)
	if err != nil {
		return err
	}
	defer release()
	last := int(x.ndim) - 1
	c := &lastConvolution{ws: ws, x: x, w: weights, y: y, codes: w, groups: 1, in: weights.shape[last-1], out: y.shape[last], rows: y.Len() / y.shape[last]}
	nothing := x.Len() == 0 || weights.Len() == 0
	if err := ws.complete(&c.complete, e, y, args, c.completes(e) && !nothing); err != nil {
		return err
	}
	defer c.complete.end()
	if nothing { // a sum of nothing
		y.zero()
		c.complete.run(0, y.Len())
		return nil
	}
	c.slide = newSlide(&window, x.Shape()[1:last], y.Shape()[1:last])
	c.terms = c.in * c.slide.window()
	codes, signed := x.bytes()
	lines, line := c.slide.in[0]*c.slide.in[1], c.slide.in[2]*c.in
	images := ws.imagesOf(x.shape[0])
	for i := range images {
		images[i].SetCodes(codes[i*lines*line:], signed, int(zero.Int(0)), lines, line)
	}
	return c.divided(e, args, func(c *lastConvolution) error { return c.codePatches(images) })
}

// codePatches multiplies patches of items.
func (c *lastConvolution) codePatches(images []kernel.QuantizedRows) error {
	return c.eachItem(func(item int) error {
		return c.sections(c.terms, func(first, n int) error {
			s := c.ws.integersOf()
			s.rows.SetPatches(&images[item], n, c.terms)
			c.setPatches(&s.rows, &images[item], first, n)
			return c.complete.multiplyCodes(c.y, c.codes, first, n)
		})
	})
}

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
