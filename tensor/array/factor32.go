package array

import "github.com/nnopt/nnopt/internal/kernel"

// A Factor is the right-hand matrix of products of float32s, prepared for them once. Any number of
// goroutines may use it.
type Factor struct {
	weights    kernel.Weights
	rows, cols int
}

// NewFactor prepares a matrix, the last two dimensions of b, which must not change any more. The
// result is nil if its elements are not float32s, if neither its rows nor its columns are contiguous,
// or if there are several matrices. Threads share the work, unless t is nil. Parts of b are told to read,
// unless that is nil, once they are prepared.
func NewFactor(b *Array, t *kernel.Threads, read func(part *Array)) *Factor {
	if b.dtype != Float32 || b.ndim < 2 || b.Len() == 0 || !b.oneMatrix() {
		return nil
	}
	m := b.matrixAt(b.offset)
	if b = &m; !b.fitsFactor() {
		return nil
	}
	f := new(Factor)
	f.become(b, t, read)
	return f
}

// become prepares a matrix of which the rows or the columns are contiguous. Nobody may use f meanwhile.
func (f *Factor) become(b *Array, t *kernel.Threads, read func(part *Array)) {
	f.rows, f.cols = b.shape[0], b.shape[1]
	// The form decides the order of long sums: it is that of Gemm.
	tall := rowsFit(b.shape[0], b.shape[1], b.strides[0], b.strides[1])
	if !tall {
		b = b.turned()
	}
	var rows func(first, n int)
	if read != nil {
		rows = func(first, n int) { part := b.stretch(0, first, first+n); read(&part) }
	}
	t.SetOnce(&f.weights, general32(b), tall, rows)
}

// MulRows sets c, a matrix, to a·b, and completes it, if there is an epilogue, whose other inputs are
// args. b may have been prepared; otherwise prepared is nil.
func (ws *Workspace) MulRows(c, a, b *Array, prepared *Factor, e *Epilogue, args []*Array) error {
	if !prepared.fits(a, c) {
		prepared = nil
	}
	if prepared != nil && e == nil {
		ws.meet(&prepared.weights)
		return ws.mulFactor(c, a, prepared, &kernel.Epilogue{Threads: ws.Threads, Next: ws.Next})
	}
	var done completion
	if err := ws.complete(&done, e, c, args, prepared != nil); err != nil {
		return err
	}
	defer done.end()
	return ws.rowBlocks(&done, c, a, b, prepared)
}

// fits reports whether the factor computes c from a, whose columns are the terms. A single term is not added to 0.
func (f *Factor) fits(a, c *Array) bool {
	return f != nil && a.shape[1] == f.rows && f.rows > 1 && a.shape[0] == c.shape[0] && c.Len() > 0
}

// rowBlocks is MulRows for what completes the elements of c, perhaps in another shape.
func (ws *Workspace) rowBlocks(done *completion, c, a, b *Array, prepared *Factor) error {
	rows, cols := c.shape[0], c.shape[1]
	blocks := 1
	if done.left != nil {
		blocks = max(rows/max(epilogueBytes/max(cols*c.dtype.Size(), 1), minLastRows), 1)
	}
	if blocks == 1 {
		if err := ws.mulBlock(c, a, b, prepared, done, 0); err != nil {
			return err
		}
		done.run(0, rows*cols)
		return nil
	}
	part := &ws.rowParts // since headers of a loop would be on the heap
	for i := range blocks {
		first := i * rows / blocks
		n := (i+1)*rows/blocks - first
		part[0], part[1] = c.stretch(0, first, first+n), a.stretch(0, first, first+n)
		if err := ws.mulBlock(&part[0], &part[1], b, prepared, done, first); err != nil {
			return err
		}
		done.run(first*cols, n*cols)
	}
	return nil
}

// mulBlock sets c, some rows of a product from one on, to a·b.
func (ws *Workspace) mulBlock(c, a, b *Array, prepared *Factor, done *completion, first int) error {
	if prepared == nil {
		return ws.MatMul(c, a, b)
	}
	ws.meet(&prepared.weights)
	return ws.mulFactor(c, a, prepared, done.of(first, c.shape[0], 0, c.shape[1]))
}

// meet notes the weights of a product for Met.
func (ws *Workspace) meet(w *kernel.Weights) {
	if ws.Met != nil && len(*ws.Met) == 0 {
		*ws.Met = append(*ws.Met, w)
	}
}

// mulFactor sets c, whose rows are contiguous, to a·b. It has the bits of Gemm.
func (ws *Workspace) mulFactor(c, a *Array, b *Factor, e *kernel.Epilogue) error {
	if a.shape[1] > 1 && a.strides[1] != 1 || a.shape[0] > 1 && a.strides[0] < 0 {
		t, err := ws.scratchCopy(a)
		if err != nil {
			return err
		}
		defer ws.Release(t)
		a = t
	}
	var x, y kernel.Matrix
	a.header32(&x)
	c.header32(&y)
	e.Mul(&x, &b.weights, &y)
	return nil
}

// NewFactors prepares parts of a matrix, the last two dimensions of b, for SpliceMatMul: of some rows
// each. It returns nil if NewFactor does for one. Threads share the work, unless t is nil.
func NewFactors(b *Array, rows []int, t *kernel.Threads) []*Factor {
	if b.ndim < 2 || !b.oneMatrix() {
		return nil
	}
	m := b.matrixAt(b.offset)
	// Longer sums are made piece by piece. Those of parts would be other pieces, with other bits.
	if m.shape[0] > maxTerms {
		return nil
	}
	var list []*Factor
	for _, n := range rows {
		part := m
		part.shape[0] = min(n, m.shape[0])
		f := NewFactor(&part, t, nil)
		// Sums in lanes can't be continued.
		if f == nil || m.strides[1] != 1 || !f.weights.Divisible() {
			return nil
		}
		list = append(list, f)
		m.offset += n * m.strides[0]
		m.shape[0] -= min(n, m.shape[0])
	}
	return list
}

// SpliceMatMul sets c to the product of x, side by side in the last dimension, and the one matrix of
// b, and completes it as BatchMatMul does. The parts of b may have been prepared.
func (ws *Workspace) SpliceMatMul(c *Array, x []*Array, b *Array, prepared []*Factor, e *Epilogue, args []*Array) error {
	var p Array
	if prepared == nil || c.Len() == 0 || !c.ReshapeTo(&p, c.Len()/c.shape[c.ndim-1], c.shape[c.ndim-1]) || !spliceable(x) {
		return ws.joinedMatMul(c, x, b, e, args)
	}
	var done completion
	if err := ws.complete(&done, e, c, args, true); err != nil {
		return err
	}
	defer done.end()
	segments := ws.segments[:0]
	for i, a := range x {
		m, _ := a.asRows()
		segments = append(segments, kernel.Segment{X: general32(&m), W: &prepared[i].weights, Continue: i > 0})
	}
	ws.segments = segments
	if ws.Met != nil && len(*ws.Met) == 0 {
		for i := range segments {
			*ws.Met = append(*ws.Met, segments[i].W)
		}
	}
	kernel.MulSegments(segments, *done.of(0, p.shape[0], 0, p.shape[1]), general32(&p))
	clear(segments)
	done.run(0, c.Len())
	return nil
}

// spliceable reports whether products can read the rows of all where they are.
func spliceable(x []*Array) bool {
	for _, a := range x {
		m, ok := a.asRows()
		if !ok || m.shape[1] == 0 || m.shape[1] > 1 && m.strides[1] != 1 || m.shape[0] > 1 && m.strides[0] < 0 {
			return false
		}
	}
	return true
}

// asRows returns an array as a matrix of all rows, which is a view.
func (a *Array) asRows() (Array, bool) {
	if a.oneMatrix() {
		return a.matrixAt(a.offset), true
	}
	return a.stacked()
}

// joinedMatMul is SpliceMatMul of a copy.
func (ws *Workspace) joinedMatMul(c *Array, x []*Array, b *Array, e *Epilogue, args []*Array) error {
	shape := x[0].shape
	d := x[0].ndim - 1
	shape[d] = b.shape[d-1]
	t := new(Array)
	if err := ws.New(t, x[0].dtype, shape[:d+1]...); err != nil {
		return err
	}
	defer ws.Release(t)
	at := 0
	for _, a := range x {
		part := *t
		part.offset, part.shape[d] = t.offset+at, a.shape[d]
		ws.Copy(&part, a)
		at += a.shape[d]
	}
	return ws.BatchMatMul(c, t, b, nil, e, args)
}
