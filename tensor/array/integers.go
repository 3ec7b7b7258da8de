package array

import (
	"sync"

	"github.com/nnopt/nnopt/internal/kernel"
)

// An IntegerFactor is the right-hand matrix of products of float32s, as integers: each column has a
// scale of its own. Any number of goroutines may use it.
type IntegerFactor struct {
	rows      int
	precision kernel.Precision
	weights   *kernel.QuantizedWeights
	exact     func() *Factor // for rows that no integers stand for
}

// NewIntegerFactor makes integers of a matrix of float32s, the last two dimensions of b, which must
// not change any more. It returns nil if there are several matrices, or if the matrix can't be quantized
// (see [kernel.NewQuantizedWeights]).
func NewIntegerFactor(b *Array, p kernel.Precision) *IntegerFactor {
	if b.dtype != Float32 || b.ndim < 2 || b.Len() == 0 || !b.oneMatrix() {
		return nil
	}
	m := b.matrixAt(b.offset)
	// The kernel scales rows, and here each column has a scale of its own.
	t := m.turned()
	if !rowsFit(t.shape[0], t.shape[1], t.strides[0], t.strides[1]) {
		t = t.Clone()
	}
	w, ok := kernel.NewQuantizedWeights(p, general32(t))
	if !ok {
		return nil
	}
	// The exact factor takes more memory than the integers. Most models never need it, so the first row that
	// does makes it.
	return &IntegerFactor{rows: m.shape[0], precision: p, weights: w, exact: sync.OnceValue(func() *Factor {
		if !m.fitsFactor() {
			m = *m.Clone()
		}
		return NewFactor(&m, nil, nil)
	})}
}

// integerBytes bounds the rows that are integers at a time: they stay in the second-level cache until
// they have been multiplied.
const integerBytes = 256 << 10

// integers is what products of integers need, once a workspace has computed one.
type integers struct {
	rows    kernel.QuantizedRows
	images  []kernel.QuantizedRows // by item
	segment [1]kernel.QuantizedSegment
}

func (ws *Workspace) integersOf() *integers {
	if ws.integers == nil {
		ws.integers = new(integers)
	}
	return ws.integers
}

// imagesOf returns as many images as there are items.
func (ws *Workspace) imagesOf(items int) []kernel.QuantizedRows {
	s := ws.integersOf()
	if len(s.images) < items {
		s.images = append(s.images, make([]kernel.QuantizedRows, items-len(s.images))...)
	}
	return s.images[:items]
}

// multiply sets y to the product of the rows, and completes it.
func (s *integers) multiply(w *kernel.QuantizedWeights, ep kernel.Epilogue, y *Array) {
	s.segment[0] = kernel.QuantizedSegment{Rows: &s.rows, Step: 1, W: w}
	kernel.MulQuantized(s.segment[:], ep, general32(y))
	s.segment[0].W = nil
}

// IntegerMatMul is BatchMatMul of float32s with integers: each row of a has a scale and an offset of its
// own. Rows that have NaN or infinities are multiplied as float32s. Without prepared, all are.
func (ws *Workspace) IntegerMatMul(c, a, b *Array, prepared *IntegerFactor, e *Epilogue, args []*Array) error {
	m := &ws.matrices // as in BatchMatMul
	rows := &m[1]
	var ok bool
	*rows, ok = a.asRows()
	if prepared == nil || !ok || c.Len() == 0 || !b.oneMatrix() || rows.shape[1] != prepared.rows || b.shape[b.ndim-2] != prepared.rows || !c.Contiguous() {
		return ws.BatchMatMul(c, a, b, nil, e, args)
	}
	var done completion
	if err := ws.complete(&done, e, c, args, true); err != nil {
		return err
	}
	defer done.end()
	c.ReshapeTo(&m[0], rows.shape[0], b.shape[b.ndim-1])
	return ws.integerRows(&done, &m[0], rows, prepared)
}

// sections calls f for some rows of so many terms and columns after others. All sections are about equal: a short last one
// would leave threads without work. The threads, if there are any, share a section, and each of them has as many rows as
// one thread alone, since each core has a cache.
func (c *completion) sections(rows, terms, cols int, t *kernel.Threads, f func(first, n int) error) error {
	most := max(integerBytes/max(terms, 1), minLastRows)
	if c.left != nil {
		most = min(most, max(epilogueBytes/(4*cols), minLastRows))
	}
	if t != nil {
		most *= t.Size()
	}
	blocks := (rows + most - 1) / most
	for i := range blocks {
		first := i * rows / blocks
		if err := f(first, (i+1)*rows/blocks-first); err != nil {
			return err
		}
	}
	return nil
}

// integerRows sets the rows of c to those of a times a factor, some at a time.
func (ws *Workspace) integerRows(done *completion, c, a *Array, f *IntegerFactor) error {
	if !rowsFit(a.shape[0], a.shape[1], a.strides[0], a.strides[1]) {
		t, err := ws.scratchCopy(a)
		if err != nil {
			return err
		}
		defer ws.Release(t)
		a = t
	}
	cols := c.shape[1]
	return done.sections(c.shape[0], a.shape[1], cols, ws.Threads, func(first, n int) error {
		return ws.integerBlock(done, c.rowsAt(first*c.strides[0], n, cols, c.strides[0]), a.rowsAt(first*a.strides[0], n, a.shape[1], a.strides[0]), first, f)
	})
}

// integerBlock is integerRows for rows that are completed at once, of which the first one has a number.
func (ws *Workspace) integerBlock(done *completion, c, a *Array, first int, f *IntegerFactor) error {
	s := ws.integersOf()
	n, cols := c.shape[0], c.shape[1]
	ws.Threads.SetGroups(&s.rows, f.precision, a.shape[1], general32(a))
	s.multiply(f.weights, *done.of(first, n, 0, cols), c)
	if s.rows.Marked() > 0 {
		for i := range n {
			if !s.rows.IsMarked(i) {
				continue
			}
			if err := ws.mulFactor(c.rowsAt(i*c.strides[0], 1, cols, cols), a.rowsAt(i*a.strides[0], 1, a.shape[1], a.shape[1]), f.exact(), done.of(first+i, 1, 0, cols)); err != nil {
				return err
			}
		}
	}
	done.run(first*cols, n*cols)
	return nil
}

// IntegerWeights are weights of convolutions with channels last, as integers.
type IntegerWeights struct {
	patches *IntegerFactor
	exact   func() *LastWeights // for what can't be integers
}

// NewIntegerWeights makes integers of weights, [window…, C, M], which must not change any more: each
// channel of the result has a scale of its own. It returns nil if NewIntegerFactor does.
func NewIntegerWeights(weights *Array, p kernel.Precision) *IntegerWeights {
	if !PreparesLastWeights(weights, 1) {
		return nil
	}
	// A row for each channel, whose terms are in the order of patches.
	n := int(weights.ndim)
	order := []int{n - 1}
	for d := range n - 1 {
		order = append(order, d)
	}
	rows := weights.Transpose(order...).inRows()
	out := weights.shape[n-1]
	terms := weights.Len() / out
	w, ok := kernel.NewQuantizedWeights(p, general32(rows.rowsAt(0, out, terms, terms)))
	if !ok {
		return nil
	}
	exact := sync.OnceValue(func() *LastWeights { return NewLastWeights(weights, 1, nil) })
	return &IntegerWeights{exact: exact, patches: &IntegerFactor{
		rows: terms, precision: p, weights: w, exact: func() *Factor { return exact().groups[0] },
	}}
}

// IntegerConvLast is ConvLast of float32s with integers, without groups. A position has a scale and an
// offset of its own if the window has one element. Otherwise all elements of an item have the same, since
// each is in several patches: it is made an integer once, and patches are of integers. What can't be
// integers, because of NaN or infinities, is computed in float32s: such a position, or such an item.
func (ws *Workspace) IntegerConvLast(y, x, weights *Array, prepared *IntegerWeights, w Window, e *Epilogue, args []*Array) error {
	if prepared == nil || y.Len() == 0 || x.Len() == 0 {
		return ws.ConvLast(y, x, weights, nil, w, 1, e, args)
	}
	x, release, err := ws.contiguous(x)
	if err != nil {
		return err
	}
	defer release()
	last := int(x.ndim) - 1
	c := &lastConvolution{ws: ws, x: x, w: weights, y: y, integers: prepared, groups: 1,
		in: weights.shape[last-1], out: y.shape[last], rows: y.Len() / y.shape[last]}
	c.slide = newSlide(&w, x.Shape()[1:last], y.Shape()[1:last])
	c.terms = c.in * c.slide.window()
	if err := ws.complete(&c.complete, e, y, args, true); err != nil {
		return err
	}
	defer c.complete.end()
	switch {
	// Nothing has to be gathered: the positions are the rows of x.
	case c.slide.plain():
		return ws.integerRows(&c.complete, y.rowsAt(0, c.rows, c.out, c.out), x.rowsAt(0, c.rows, c.in, c.in), prepared.patches)
	case c.slide.window() == 1:
		return c.divided(e, args, func(c *lastConvolution) error { return c.integerPositions(prepared.patches) })
	}
	images := ws.imagesOf(x.shape[0])
	lines, line := c.slide.in[0]*c.slide.in[1], c.slide.in[2]*c.in
	for i := range images {
		ws.Threads.SetTogether(&images[i], prepared.patches.precision, general32(x.rowsAt(i*lines*line, lines, line, line)))
	}
	return c.divided(e, args, func(c *lastConvolution) error { return c.integerPatches(images) })
}

// integerPositions gathers the positions of the input for a window of one element.
func (c *lastConvolution) integerPositions(f *IntegerFactor) error {
	memory := new(Array)
	if err := c.ws.New(memory, Float32, min(c.rows-c.first, 2*max(integerBytes/c.in, minLastRows)), c.in); err != nil {
		return err
	}
	defer c.ws.Release(memory)
	return c.sections(c.in, func(first, n int) error {
		p := memory.rowsAt(0, n, c.in, c.in)
		lastPatches(Slice[float32](p), Slice[float32](c.x), c, 0, first, n)
		return c.ws.integerBlock(&c.complete, c.y.rowsAt(first*c.out, n, c.out, c.out), p, first, f)
	})
}

// sections calls f for some positions after others, whose patches have so many elements.
func (c *lastConvolution) sections(terms int, f func(first, n int) error) error {
	return c.complete.sections(c.rows-c.first, terms, c.out, nil, func(first, n int) error { return f(c.first+first, n) })
}

// integerPatches gathers patches of items that are integers.
func (c *lastConvolution) integerPatches(images []kernel.QuantizedRows) error {
	f := c.integers.patches
	return c.eachItem(func(item int) error {
		image := &images[item]
		if image.Marked() > 0 {
			c.prepared = c.integers.exact()
			return c.gathered()
		}
		return c.sections(c.terms, func(first, n int) error {
			s := c.ws.integersOf()
			s.rows.SetPatches(image, n, c.terms)
			c.setPatches(&s.rows, image, first, n)
			s.multiply(f.weights, *c.complete.of(first, n, 0, c.out), c.y.rowsAt(first*c.out, n, c.out, c.out))
			c.complete.run(first*c.out, n*c.out)
			return nil
		})
	})
}

// eachItem calls f for each item, while c is the positions of that alone.
func (c *lastConvolution) eachItem(f func(item int) error) error {
	for end := c.rows; c.first < end; c.first = c.rows {
		item := c.first / c.slide.positions()
		c.rows = min((item+1)*c.slide.positions(), end)
		if err := f(item); err != nil {
			return err
		}
	}
	return nil
}

// setPatches is lastPatches of integers, for positions of an item whose lines are the rows of image.
func (c *lastConvolution) setPatches(dst, image *kernel.QuantizedRows, first, n int) {
	s := c.slide
	run := s.size[2] * c.in
	for row := range n {
		at := (first + row) % s.positions()
		k := at % s.out[2]
		i, j := at/s.out[2]/s.out[1], at/s.out[2]%s.out[1]
		lo, hi := s.covered(k)
		left, to := k*s.stride[2]-s.before[2], 0
		for a := range s.size[0] {
			y, ok := s.place(0, i, a)
			for b := range s.size[1] {
				z, ok2 := s.place(1, j, b)
				switch {
				case !ok || !ok2 || lo == hi:
					dst.SetZeros(row, to, run)
				// Most windows lie inside, where a line of theirs is one run.
				case lo == 0 && hi == s.size[2] && s.dilation[2] == 1:
					dst.SetRun(row, to, image, y*s.in[1]+z, left*c.in, run)
				default:
					dst.SetZeros(row, to, lo*c.in)
					if s.dilation[2] == 1 {
						dst.SetRun(row, to+lo*c.in, image, y*s.in[1]+z, (left+lo)*c.in, (hi-lo)*c.in)
					} else {
						for e := lo; e < hi; e++ {
							dst.SetRun(row, to+e*c.in, image, y*s.in[1]+z, (left+e*s.dilation[2])*c.in, c.in)
						}
					}
					dst.SetZeros(row, to+hi*c.in, (s.size[2]-hi)*c.in)
				}
				to += run
			}
		}
	}
}
