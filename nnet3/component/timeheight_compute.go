package component

import "github.com/nnopt/nnopt/kernel"

// patchElems is the approximate number of elements of patches that are made at a time. It suits a
// second-level cache.
const patchElems = 1 << 15

// chunk returns the number of rows that are spread out into patches at a time.
func (c *timeHeightConvolutionComponent) chunk(rows int) int {
	return min(rows, max(1, patchElems/(c.heightOut*c.m.Cols)))
}

// patches fills p with the elements that the filters see. It has a row for each height of each
// output row, from row first on.
func (m *convolutionModel) patches(in kernel.Matrix, pre *offsetRows, first int, p kernel.Matrix) {
	for i := range p.Rows / m.heightOut {
		rows := pre.of(first + i)
		patches := kernel.Rows(p, i*m.heightOut, m.heightOut)
		for _, piece := range m.pieces {
			dst := kernel.Cols(patches, piece.column, piece.count*m.filtersIn)
			if row := rows[piece.time]; row >= 0 {
				m.copyPiece(dst, kernel.Row(in, int(row)), piece)
			} else {
				kernel.Fill(dst, 0)
			}
		}
	}
}

// copyPiece sets row h of dst to what the piece sees of an input row at height h of the output.
func (m *convolutionModel) copyPiece(dst kernel.Matrix, in []float32, piece patchPiece) {
	// Heights from lo to hi see the whole piece: they are copied in one go, at the first of them.
	// Only at the borders must it be cut and filled up with zeros.
	lo, hi := m.whole(piece)
	for h := range dst.Rows {
		if h == lo && lo < hi {
			first, step := (lo*m.heightSubsample+piece.height)*m.filtersIn, m.heightSubsample*m.filtersIn
			copyRuns(dst.Data[lo*dst.Stride:], dst.Stride, in[first:], step, dst.Cols, hi-lo)
		}
		if lo <= h && h < hi {
			continue
		}
		skip, from, n := m.inside(piece, h)
		row := kernel.Row(dst, h)
		clear(row[:skip])
		copy(row[skip:], in[from:from+n])
		clear(row[skip+n:])
	}
}

// whole returns the range of heights of the output for which a piece lies in the input as a whole.
func (m *convolutionModel) whole(piece patchPiece) (lo, hi int) {
	sub := m.heightSubsample
	lo = (max(0, -piece.height) + sub - 1) / sub
	if room := m.heightIn - piece.count - piece.height; room >= 0 {
		hi = min(room/sub+1, m.heightOut)
	}
	return lo, hi
}

// shortRun is the number of elements below which a loop copies faster than a call.
const shortRun = 8

// copyRuns copies a number of runs of n elements. dstStep and srcStep are the distances of their
// beginnings.
func copyRuns(dst []float32, dstStep int, src []float32, srcStep, n, count int) {
	for k := range count {
		d, s := dst[k*dstStep:][:n], src[k*srcStep:][:n]
		if n > shortRun {
			copy(d, s)
			continue
		}
		for j := range n {
			d[j] = s[j]
		}
	}
}

// inside returns the part of a piece that lies inside the input for height h of the output: the
// number of elements to skip, the beginning in the input, and the number of elements inside.
func (m *convolutionModel) inside(piece patchPiece, h int) (skip, from, n int) {
	lo := h*m.heightSubsample + piece.height
	hi := min(lo+piece.count, m.heightIn)
	at := min(max(lo, 0), max(hi, 0))
	if at >= hi {
		return piece.count * m.filtersIn, 0, 0
	}
	return (at - lo) * m.filtersIn, at * m.filtersIn, (hi - at) * m.filtersIn
}

// addPatches adds the derivatives of patches to those of rows [top, bottom) of the input.
func (m *convolutionModel) addPatches(inDeriv kernel.Matrix, pre *offsetRows, first int, p kernel.Matrix, top, bottom int) {
	for i := range p.Rows / m.heightOut {
		rows := pre.of(first + i)
		for h := range m.heightOut {
			patch := kernel.Row(p, i*m.heightOut+h)
			for _, piece := range m.pieces {
				if row := int(rows[piece.time]); top <= row && row < bottom {
					skip, to, n := m.inside(piece, h)
					kernel.AddVec(kernel.Row(inDeriv, row)[to:to+n], 1, patch[piece.column+skip:][:n])
				}
			}
		}
	}
}

// convolutionChunk is a part of the output, or of its derivative.
type convolutionChunk struct {
	first   int           // the number of its first row
	rows    kernel.Matrix // its rows
	patches kernel.Matrix // space for its patches
	y       kernel.Matrix // with a row for each height: a view of rows, or scratch memory
	view    bool
}

// eachChunk calls f with each chunk of the output.
func (c *timeHeightConvolutionComponent) eachChunk(w *Workspace, out kernel.Matrix, f func(convolutionChunk)) {
	defer w.Release(w.Mark())
	step := c.chunk(out.Rows)
	// Patches repeat each input element once per place of the filter that sees it. All at once they
	// would be many times the input; a chunk of them stays in the cache between being made and
	// being multiplied.
	buffer := w.Matrix(step*c.heightOut, c.m.Cols)
	inner := w.Mark()
	for first := 0; first < out.Rows; first += step {
		rows := kernel.Rows(out, first, min(step, out.Rows-first))
		// The product has a row for each height, and the output one for each time. Without gaps
		// between its rows, the output is both.
		y, view := kernel.Reshape(rows, c.filtersOut)
		if !view {
			y = w.Matrix(rows.Rows*c.heightOut, c.filtersOut)
		}
		f(convolutionChunk{first, rows, kernel.Rows(buffer, 0, y.Rows), y, view})
		w.Release(inner)
	}
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

// Propagate computes the convolution, a chunk at a time, as a product of patches and filters.
func (c *timeHeightConvolutionComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	x, ok := pass.Pre.(*offsetRows)
	if !ok || !x.fits(len(c.times), in.Rows, out.Rows) {
		return nil, misfit(c, in.Rows, out.Rows)
	}
	// Each thread makes the patches that it multiplies.
	w.conv = convolutionPass{c: c, what: convolve, in: in, out: out, pre: x}
	rows := out.Rows * c.heightOut
	w.divide(&w.conv, out.Rows, 1, kernel.ProductTime(rows, c.m.Rows, c.m.Cols)+took(rows, c.m.Cols, patched))
	w.conv = convolutionPass{}
	return nil, nil
}

// patched is what it takes to make an element of a patch, in picoseconds.
const patched = 250

// convolutionPass is a part of a pass that threads divide.
type convolutionPass struct {
	c       *timeHeightConvolutionComponent
	what    convolutionWork
	in, out kernel.Matrix // the input or its derivative; the output
	pre     *offsetRows
	first   int           // row of the output
	patches kernel.Matrix // from that row on
}

type convolutionWork uint8

const (
	convolve      convolutionWork = iota // rows of the output
	gatherPatches                        // of rows of the output
	spreadPatches                        // to rows of the input
)

func (p *convolutionPass) part(w *Workspace, first, next int) {
	c := p.c
	switch p.what {
	case gatherPatches:
		c.patches(p.in, p.pre, p.first+first, kernel.Rows(p.patches, first*c.heightOut, (next-first)*c.heightOut))
	case spreadPatches:
		c.addPatches(p.in, p.pre, p.first, p.patches, first, next)
	default:
		c.eachChunk(w, kernel.Rows(p.out, first, next-first), func(k convolutionChunk) {
			c.patches(p.in, p.pre, first+k.first, k.patches)
			c.mul(k.patches, kernel.Epilogue{Bias: c.bias, Threads: w.Threads}, k.y)
			if !k.view {
				copyByHeight(k.rows, k.y, false)
			}
		})
	}
}

// Backprop computes the derivatives of the input and of the filters.
func (c *timeHeightConvolutionComponent) Backprop(w *Workspace, pass BackwardPass) error {
	x, ok := pass.Pre.(*offsetRows)
	if !ok || !x.fits(len(c.times), pass.InValue.Rows, pass.OutDeriv.Rows) {
		return misfit(c, pass.InValue.Rows, pass.OutDeriv.Rows)
	}
	u, update := pass.ToUpdate.(*timeHeightConvolutionComponent)
	c.eachChunk(w, pass.OutDeriv, func(k convolutionChunk) {
		if !k.view {
			copyByHeight(k.rows, k.y, true)
		}
		elements := took(k.patches.Rows, k.patches.Cols, patched)
		if update {
			w.conv = convolutionPass{c: c, what: gatherPatches, in: pass.InValue, pre: x, first: k.first, patches: k.patches}
			w.divide(&w.conv, k.patches.Rows/c.heightOut, 1, elements)
			u.update(w, u.learningRate, k.patches, k.y)
		}
		if wanted(pass.InDeriv) {
			// The patches of the input are no longer needed, so their derivatives take their place.
			// This has to come after the update.
			w.Threads.MulNN(1, k.y, c.elements(), 0, k.patches)
			w.conv = convolutionPass{c: c, what: spreadPatches, in: pass.InDeriv, pre: x, first: k.first, patches: k.patches}
			w.divide(&w.conv, pass.InDeriv.Rows, 1, elements)
		}
	})
	w.conv = convolutionPass{}
	return nil
}
