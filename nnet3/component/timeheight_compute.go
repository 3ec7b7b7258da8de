package component

import (
	"time"

	"github.com/nnopt/nnopt/internal/kernel"
)

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
	in, out kernel.Matrix // the input and the output, or their derivatives
	pre     *offsetRows

	rate       float32
	blocks     int           // of the rows of the output
	filters    kernel.Matrix // the sums of the derivatives of filters, block by block
	bias       kernel.Matrix // those of the bias, a row for each block
	transposed *kernel.Weights
}

type convolutionWork uint8

const (
	convolve     convolutionWork = iota // rows of the output
	sumFilters                          // blocks
	deriveInputs                        // rows of the input
)

func (p *convolutionPass) part(w *Workspace, first, next int) {
	switch p.what {
	case convolve:
		p.convolve(w, first, next)
	case sumFilters:
		for block := first; block < next; block++ {
			p.sumFilters(w, block)
		}
	case deriveInputs:
		p.deriveInputs(w, first, next)
	}
}

// convolve computes some rows of the output.
func (p *convolutionPass) convolve(w *Workspace, first, next int) {
	c := p.c
	c.eachChunk(w, kernel.Rows(p.out, first, next-first), func(k convolutionChunk) {
		c.patches(p.in, p.pre, first+k.first, k.patches)
		c.mul(k.patches, kernel.Epilogue{Bias: c.bias, Threads: w.Threads}, k.y)
		if !k.view {
			copyByHeight(k.rows, k.y, false)
		}
	})
}

// sumFilters computes the sums of the derivatives of the filters and the bias of a block.
func (p *convolutionPass) sumFilters(w *Workspace, block int) {
	c := p.c
	filters, bias := kernel.Rows(p.filters, block*c.m.Rows, c.m.Rows), p.bias
	if bias.Rows > 0 {
		bias = kernel.Rows(p.bias, block, 1)
	}
	if p.blocks > 1 {
		kernel.Fill(filters, 0)
		kernel.Fill(bias, 0)
	}
	step := c.chunk(p.out.Rows)
	chunks := (p.out.Rows + step - 1) / step
	first, next := block*chunks/p.blocks*step, min((block+1)*chunks/p.blocks*step, p.out.Rows)
	c.eachChunk(w, kernel.Rows(p.out, first, next-first), func(k convolutionChunk) {
		k.load()
		c.patches(p.in, p.pre, first+k.first, k.patches)
		w.Threads.MulTN(p.rate, k.y, k.patches, 1, filters)
		if bias.Rows > 0 {
			w.Threads.AddColSums(bias.Data, p.rate, k.y)
		}
	})
}

// deriveInputs computes the derivatives of rows [top, bottom) of the input. Threads with other rows make
// the derivatives of some of the same patches, of which each adds up what belongs to its own rows. So
// nothing is written by two of them, and every row is summed in the same order.
func (p *convolutionPass) deriveInputs(w *Workspace, top, bottom int) {
	c := p.c
	c.eachChunk(w, p.out, func(k convolutionChunk) {
		if !p.pre.reach(k.first, k.rows.Rows, top, bottom) {
			return
		}
		k.load()
		p.transposed.Mul(k.y, kernel.Epilogue{Threads: w.Threads}, k.patches)
		c.addPatches(p.in, p.pre, k.first, k.patches, top, bottom)
	})
}

// load copies the rows of the derivative of an output to y, if that is not a view of them.
func (k *convolutionChunk) load() {
	if !k.view {
		copyByHeight(k.rows, k.y, true)
	}
}

const (
	// maxBlocks is in how many blocks of rows the derivatives of filters are summed at most, and
	// blockElems the number of their elements for which there are several. It does not depend on threads.
	maxBlocks  = 16
	blockElems = 1 << 20
)

// Backprop computes the derivatives of the input and of the filters.
func (c *timeHeightConvolutionComponent) Backprop(w *Workspace, pass BackwardPass) error {
	x, ok := pass.Pre.(*offsetRows)
	if !ok || !x.fits(len(c.times), pass.InValue.Rows, pass.OutDeriv.Rows) {
		return misfit(c, pass.InValue.Rows, pass.OutDeriv.Rows)
	}
	rows := pass.OutDeriv.Rows * c.heightOut
	takes := kernel.ProductTime(rows, c.m.Rows, c.m.Cols) + took(rows, c.m.Cols, patched)
	// The component to update may be this one, so the filters are used before they change.
	if wanted(pass.InDeriv) {
		w.conv = convolutionPass{c: c, what: deriveInputs, in: pass.InDeriv, out: pass.OutDeriv, pre: x, transposed: w.transposed(0, &c.weights)}
		// As few parts as possible have borders, at which patches are made twice.
		w.divide(&w.conv, pass.InDeriv.Rows, max(1, pass.InDeriv.Rows/w.Threads.Size()), takes)
	}
	if u, ok := pass.ToUpdate.(*timeHeightConvolutionComponent); ok && rows > 0 {
		c.updateFilters(w, u, x, pass, takes)
	}
	w.conv = convolutionPass{}
	return nil
}

// updateFilters adds the derivatives of the filters and the bias to those of u.
func (c *timeHeightConvolutionComponent) updateFilters(w *Workspace, u *timeHeightConvolutionComponent, x *offsetRows, pass BackwardPass, takes time.Duration) {
	defer w.Release(w.Mark())
	u.restore()
	p := &w.conv
	*p = convolutionPass{c: c, what: sumFilters, in: pass.InValue, out: pass.OutDeriv, pre: x, rate: u.learningRate, blocks: 1, filters: u.m}
	if len(u.bias) > 0 {
		p.bias = kernel.Matrix{Rows: 1, Cols: len(u.bias), Stride: len(u.bias), Data: u.bias}
	}
	// Few filters are summed in blocks. Many make products that are worth dividing by themselves.
	step := c.chunk(pass.OutDeriv.Rows)
	blocks := min(maxBlocks, blockElems/(u.m.Rows*u.m.Cols), pass.OutDeriv.Rows/step)
	if blocks <= 1 {
		p.sumFilters(w, 0)
		u.changed()
		return
	}
	p.blocks, p.filters = blocks, w.Matrix(blocks*u.m.Rows, u.m.Cols)
	if len(u.bias) > 0 {
		p.bias = w.Matrix(blocks, len(u.bias))
	}
	w.divide(p, blocks, 1, takes)
	for b := range blocks {
		kernel.Add(u.m, 1, kernel.Rows(p.filters, b*u.m.Rows, u.m.Rows))
		if len(u.bias) > 0 {
			kernel.AddVec(u.bias, 1, kernel.Row(p.bias, b))
		}
	}
	u.changed()
}
