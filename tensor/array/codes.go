package array

import (
	"unsafe"

	"github.com/nnopt/nnopt/kernel"
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
	if !a.Contiguous() {
		t, err := ws.scratchCopy(a)
		if err != nil {
			return err
		}
		defer ws.Release(t)
		a = t
	}
	var done completion
	if err := ws.complete(&done, e, c, args, direct(c, w)); err != nil {
		return err
	}
	defer done.end()
	cols, terms := w.Shape()
	codes, signed := a.bytes()
	rows := c.Len() / cols
	most := done.mostRows(terms, cols)
	if ws.Threads != nil {
		// The threads share a block, and each of them should have as many rows as one thread alone.
		most *= ws.Threads.Size()
	}
	blocks := (rows + most - 1) / most
	for i := range blocks {
		first := i * rows / blocks
		n := (i+1)*rows/blocks - first
		ws.integersOf().rows.SetCodes(codes[first*terms:], signed, int(zero.Int(0)), n, terms)
		if err := done.multiplyCodes(c, w, first, n); err != nil {
			return err
		}
	}
	return nil
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
	if !x.Contiguous() {
		t, err := ws.scratchCopy(x)
		if err != nil {
			return err
		}
		defer ws.Release(t)
		x = t
	}
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
