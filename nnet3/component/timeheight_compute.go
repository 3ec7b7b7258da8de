package component

import "github.com/nnopt/nnopt/kernel"

// patchElems is about how many elements of patches are made at a time: as many as the second-level cache likes.
const patchElems = 1 << 15

// chunk is how many rows are spread out into patches at a time.
func (c *timeHeightConvolutionComponent) chunk(rows int) int {
	return min(rows, max(1, patchElems/(c.model.heightOut*c.m.Cols)))
}

// patches fills p, which has a row for each row from first on and each height of the output, with what the filters see.
func (m *convolutionModel) patches(in kernel.Matrix, pre *convolutionRows, first int, p kernel.Matrix) {
	for i := range p.Rows / m.heightOut {
		for h := range m.heightOut {
			patch := kernel.Row(p, i*m.heightOut+h)
			for _, piece := range m.pieces {
				dst := patch[piece.column : piece.column+piece.count*m.filtersIn]
				row := pre.rows[piece.time][first+i]
				if row < 0 {
					clear(dst)
					continue
				}
				skip, from, n := m.clip(piece, h)
				clear(dst[:skip])
				copy(dst[skip:], kernel.Row(in, int(row))[from:from+n])
				clear(dst[skip+n:])
			}
		}
	}
}

// clip returns which part of a piece lies inside the input for height h of the output: how many elements lie before it, where
// it begins in the input, and how many there are.
func (m *convolutionModel) clip(piece patchPiece, h int) (skip, from, n int) {
	lo := h*m.heightSubsample + piece.height
	hi := min(lo+piece.count, m.heightIn)
	at := min(max(lo, 0), max(hi, 0))
	if at >= hi {
		return piece.count * m.filtersIn, 0, 0
	}
	return (at - lo) * m.filtersIn, at * m.filtersIn, (hi - at) * m.filtersIn
}

// addPatches adds the derivatives of patches to those of the input.
func (m *convolutionModel) addPatches(inDeriv kernel.Matrix, pre *convolutionRows, first int, p kernel.Matrix) {
	for i := range p.Rows / m.heightOut {
		for h := range m.heightOut {
			patch := kernel.Row(p, i*m.heightOut+h)
			for _, piece := range m.pieces {
				if row := pre.rows[piece.time][first+i]; row >= 0 {
					skip, to, n := m.clip(piece, h)
					kernel.AddVec(kernel.Row(inDeriv, int(row))[to:to+n], 1, patch[piece.column+skip:][:n])
				}
			}
		}
	}
}

// byHeight returns rows of an output (or its derivative) as a matrix with a row for each height. It reports false if that
// is not a view, and then returns scratch memory.
func (c *timeHeightConvolutionComponent) byHeight(w *Workspace, rows kernel.Matrix) (kernel.Matrix, bool) {
	if y, ok := kernel.Reshape(rows, c.model.filtersOut); ok {
		return y, true
	}
	return w.Matrix(rows.Rows*c.model.heightOut, c.model.filtersOut), false
}

// Propagate computes the convolution, a few rows at a time, as a product of patches and filters.
func (c *timeHeightConvolutionComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkDims(c, in, out); err != nil {
		return nil, err
	}
	x, err := c.indexes(pre, in.Rows, out.Rows)
	if err != nil {
		return nil, err
	}
	mark := w.Mark()
	defer w.Release(mark)
	step := c.chunk(out.Rows)
	buffer := w.Matrix(step*c.model.heightOut, c.m.Cols)
	for first := 0; first < out.Rows; first += step {
		n := min(step, out.Rows-first)
		inner := w.Mark()
		p := kernel.Rows(buffer, 0, n*c.model.heightOut)
		c.model.patches(in, x, first, p)
		rows := kernel.Rows(out, first, n)
		y, view := c.byHeight(w, rows)
		c.propagate(p, y)
		if !view {
			copyByHeight(rows, y, false)
		}
		w.Release(inner)
	}
	return nil, nil
}

// copyByHeight copies from y, which has a row for each height, to rows, or back.
func copyByHeight(rows, y kernel.Matrix, back bool) {
	for i := range rows.Rows {
		row := kernel.Row(rows, i)
		part := y.Data[i*len(row) : (i+1)*len(row)]
		if back {
			copy(part, row)
		} else {
			copy(row, part)
		}
	}
}

// Backprop computes the derivatives of the input and of the filters.
func (c *timeHeightConvolutionComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil {
		return err
	}
	x, err := c.indexes(pre, inValue.Rows, outDeriv.Rows)
	if err != nil {
		return err
	}
	if wanted(inDeriv) && inDeriv.Rows != inValue.Rows {
		return shapeError(c, "backprop", inDeriv, outDeriv)
	}
	u, update := toUpdate.(*timeHeightConvolutionComponent)
	mark := w.Mark()
	defer w.Release(mark)
	step := c.chunk(outDeriv.Rows)
	buffer := w.Matrix(step*c.model.heightOut, c.m.Cols)
	for first := 0; first < outDeriv.Rows; first += step {
		n := min(step, outDeriv.Rows-first)
		inner := w.Mark()
		p := kernel.Rows(buffer, 0, n*c.model.heightOut)
		rows := kernel.Rows(outDeriv, first, n)
		dy, view := c.byHeight(w, rows)
		if !view {
			copyByHeight(rows, dy, true)
		}
		if update {
			c.model.patches(inValue, x, first, p)
			u.update(u.learningRate, p, dy)
		}
		if wanted(inDeriv) {
			kernel.MulNN(1, dy, c.m, 0, p)
			c.model.addPatches(inDeriv, x, first, p)
		}
		w.Release(inner)
	}
	return nil
}
