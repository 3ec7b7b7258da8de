package component

import "github.com/nnopt/nnopt/kernel"

// prepare makes the prepared form.
func (w *weights) prepare() {
	if w.released() && w.prepared != nil {
		return // it is all there is
	}
	w.prepared = kernel.NewWeights(w.elements())
	if w.lean {
		w.release()
	}
}

func (w *weights) prepareOnce() {
	if w.prepared == nil {
		w.prepare()
	}
}

// ready returns the prepared form, or a temporary one if Prepare was not called.
func (w *weights) ready() *kernel.Weights {
	if w.prepared != nil {
		return w.prepared
	}
	return kernel.NewWeights(w.elements())
}

// released reports whether the elements of the matrix are dropped.
func (w *weights) released() bool { return w.m.Data == nil && w.m.Rows > 0 && w.m.Cols > 0 }

// elements returns the matrix, or a copy of it if its elements are released. It may be called while
// others multiply.
func (w *weights) elements() kernel.Matrix {
	switch {
	case !w.released():
		return w.m
	case w.prepared != nil:
		return w.prepared.Matrix()
	case w.whole != nil:
		return kernel.Cols(w.whole.elements(), w.col, w.m.Cols)
	}
	m := kernel.New(w.m.Rows, w.m.Cols)
	for i := range w.pieces {
		kernel.Copy(w.piece(m, i), w.pieces[i].elements())
	}
	return m
}

// piece returns the place of a piece in m, which has the shape of w: pieces are side by side or
// one below the other.
func (w *weights) piece(m kernel.Matrix, i int) kernel.Matrix {
	rows, cols := w.pieces[i].m.Rows, w.pieces[i].m.Cols
	if cols < m.Cols {
		return kernel.Cols(m, i*cols, cols)
	}
	return kernel.Rows(m, i*rows, rows)
}

// release drops the elements of the matrix, of its parts and of its compounds, as far as they can
// be had from prepared forms, and has those that are prepared later do the same. It returns the
// memory of the matrix.
func (w *weights) release() (spare []float32) {
	if w.prepared == nil || !w.prepared.Release() {
		return nil
	}
	spare, w.lean, w.m.Data = w.m.Data, true, nil
	if w.parts == nil {
		return spare
	}
	for _, p := range w.parts.list {
		p.lean, p.m.Data = true, nil
		p.release()
	}
	for _, c := range w.parts.compounds {
		c.second.Data = nil
		c.weights.lean = true
		c.weights.release()
	}
	return spare
}

// restore reverses release. No product may be running.
func (w *weights) restore() {
	if !w.released() {
		return
	}
	m := w.elements()
	for i := range w.pieces {
		w.pieces[i].own(w.piece(m, i))
	}
	w.pieces = nil
	w.own(m)
}

// own makes m, which has the elements of w, the matrix of w.
func (w *weights) own(m kernel.Matrix) {
	w.lean, w.m = false, m
	if w.prepared != nil {
		w.prepared = kernel.NewWeights(m)
	}
	if w.parts == nil {
		return
	}
	for _, p := range w.parts.list {
		p.own(kernel.Cols(m, p.col, p.m.Cols))
	}
	for _, c := range w.parts.compounds {
		c.second = m
		c.weights.restore()
	}
}
