package array

import (
	"sync"

	"github.com/nnopt/nnopt/kernel"
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
		return NewFactor(&m, nil)
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

// mostRows returns how many rows of so many terms and columns to compute at a time.
func (c *completion) mostRows(terms, cols int) int {
	most := max(integerBytes/max(terms, 1), minLastRows)
	if c.left != nil {
		most = min(most, max(epilogueBytes/(4*cols), minLastRows))
	}
	return most
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
	rows, cols := c.shape[0], c.shape[1]
	most := done.mostRows(a.shape[1], cols)
	if ws.Threads != nil {
		// Threads divide a block among themselves, and each core has a cache.
		most *= ws.Threads.Size()
	}
	blocks := (rows + most - 1) / most
	for i := range blocks {
		// All blocks are about equal. A short last one would leave threads without work.
		first := i * rows / blocks
		n := (i+1)*rows/blocks - first
		if err := ws.integerBlock(done, c.rowsAt(first*c.strides[0], n, cols, c.strides[0]), a.rowsAt(first*a.strides[0], n, a.shape[1], a.strides[0]), first, f); err != nil {
			return err
		}
	}
	return nil
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
