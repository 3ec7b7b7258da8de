package array

import "github.com/nnopt/nnopt/kernel"

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
		f := NewFactor(&part, t)
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
