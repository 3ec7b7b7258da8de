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
	s := Slice[int8](a)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)), true
}

// MatMulCodes sets c, int32s, to the exact products of the rows of a, int8s or uint8s of which zero means
// 0, and one matrix. Sums that need more bits wrap around.
func (ws *Workspace) MatMulCodes(c, a, zero *Array, w *kernel.IntegerWeights) error {
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
	cols, terms := w.Shape()
	rows := c.Len() / cols
	most := max(integerBytes/max(terms, 1), minLastRows)
	if ws.Threads != nil {
		// The threads share a block, and each of them should have as many rows as one thread alone.
		most *= ws.Threads.Size()
	}
	blocks := (rows + most - 1) / most
	scratch := new(Array)
	if err := ws.New(scratch, Float32, (rows+blocks-1)/blocks, cols); err != nil {
		return err
	}
	defer ws.Release(scratch)
	codes, signed := a.bytes()
	s := ws.integersOf()
	for i := range blocks {
		first := i * rows / blocks
		n := (i+1)*rows/blocks - first
		s.rows.SetCodes(w.Precision(), codes[first*terms:], signed, int(zero.Int(0)), n, terms)
		kernel.MulIntegers(Slice[int32](c)[first*cols:], &s.rows, w, general32(scratch.rowsAt(0, n, cols, cols)), ws.Threads)
	}
	return nil
}

// ConvLastCodes is ConvLast of int8s or uint8s, of which zero means 0, without groups: y has the exact sums,
// as int32s. Sums that need more bits wrap around. weights are those that w was made of.
func (ws *Workspace) ConvLastCodes(y, x, zero, weights *Array, w *kernel.IntegerWeights, window Window) error {
	if y.Len() == 0 {
		return nil
	}
	if x.Len() == 0 || weights.Len() == 0 {
		y.zero()
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
	c := &lastConvolution{ws: ws, x: x, w: weights, y: y, groups: 1, in: weights.shape[last-1], out: y.shape[last], rows: y.Len() / y.shape[last]}
	c.slide = newSlide(&window, x.Shape()[1:last], y.Shape()[1:last])
	c.terms = c.in * c.slide.window()
	codes, signed := x.bytes()
	lines, line := c.slide.in[0]*c.slide.in[1], c.slide.in[2]*c.in
	images := ws.imagesOf(x.shape[0])
	for i := range images {
		images[i].SetCodes(w.Precision(), codes[i*lines*line:], signed, int(zero.Int(0)), lines, line)
	}
	return c.divided(nil, nil, func(c *lastConvolution) error { return c.codePatches(images, w) })
}

// codePatches multiplies patches of items.
func (c *lastConvolution) codePatches(images []kernel.QuantizedRows, w *kernel.IntegerWeights) error {
	scratch := new(Array)
	if err := c.ws.New(scratch, Float32, min(c.rows-c.first, 2*max(integerBytes/c.terms, minLastRows)), c.out); err != nil {
		return err
	}
	defer c.ws.Release(scratch)
	y := Slice[int32](c.y)
	return c.eachItem(func(item int) error {
		return c.sections(c.terms, func(first, n int) error {
			s := c.ws.integersOf()
			s.rows.SetPatches(&images[item], n, c.terms)
			c.setPatches(&s.rows, &images[item], first, n)
			kernel.MulIntegers(y[first*c.out:], &s.rows, w, general32(scratch.rowsAt(0, n, c.out, c.out)), c.ws.Threads)
			return nil
		})
	})
}
