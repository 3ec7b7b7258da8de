package kernel

// Packed weights are a sequence of panels. A panel holds panelCols rows of W, the last one the
// remaining rows, padded with zeros to whole vectors. In a panel, the first elements of all rows
// come first, then the second ones, and so on. Sums of the padding are never stored.

//
// The panels of a tall factor are stripes of it, whose steps are rows. If it is multiplied only
// once, they are read in place, except for a last one that ends within a vector.

// size is the number of elements of all forms.
func (p *Weights) size() int {
	_, k := p.shape()
	rows, cols := p.laneShape()
	return p.packedCols()*k + rows*cols
}

// packedCols is the number of columns of all packed panels.
func (p *Weights) packedCols() int {
	n, _ := p.shape()
	if p.inPlace {
		if n %= p.set.panelCols(); n%p.set.lanes() == 0 {
			return 0
		}
	}
	return p.set.padded(n)
}

// place divides size elements among the forms.
func (p *Weights) place(v []float32) {
	_, k := p.shape()
	p.panels, p.lanes = v, v[p.packedCols()*k:]
}

// readBytes is about how much of a matrix is packed before its reader is told, see SetOnce.
const readBytes = 1 << 23

// pack fills all forms, and tells read of rows of which it is done.
func (p *Weights) pack(t *Threads, read func(first, n int)) {
	p.packLanes()
	if p.inPlace {
		if len(p.panels) > 0 {
			rest := p.w.Cols % p.set.panelCols()
			packTransposed(p.set, p.panels, Cols(p.w, p.w.Cols-rest, rest), 0, p.w.Rows)
		}
		return
	}
	some, unit := p.w.Rows, p.set.panelCols()
	if read != nil {
		some = max(readBytes/4/max(p.w.Cols, 1)/unit, 1) * unit
	}
	for i := 0; i < p.w.Rows; i += some {
		w := Rows(p.w, i, min(some, p.w.Rows-i))
		n := w.Rows
		if p.tall {
			n = w.Cols
		}
		part := func(j *matrixJob, first, n int) { j.packed.packPart(&j.x, j.first, first, n) }
		if !t.divide(&w, n, unit, moved, part, args{packed: p, x: w, first: i}) {
			p.packPart(&w, i, 0, n)
		}
		if read != nil {
			read(i, w.Rows)
		}
	}
}

// packPart packs n columns of products, from one on, of w, rows of the matrix from row i on.
func (p *Weights) packPart(w *Matrix, i, first, n int) {
	_, k := p.shape()
	if !p.tall {
		pack(p.set, p.panels[(i+first)*k:], Rows(*w, first, n))
		return
	}
	packTransposed(p.set, p.panels[first*k:], Cols(*w, first, n), i, k)
}

// packWindows fills the panels of n columns from column j on with rows of w, see SetWindows.
func (p *Weights) packWindows(w *Matrix, j, n, window int) {
	if window == 1 {
		pack(p.set, p.panels[j*w.Cols:], Rows(*w, j, n))
		return
	}
	// Some steps of a panel are made in the order of w, and go to their places from the cache.
	width := p.set.panelCols()
	steps := make([]float32, transposeCols*width)
	channels := w.Cols / window
	for ; n > 0; j, n = j+width, n-width {
		rows := Rows(*w, j, min(n, width))
		if rows.Rows < width {
			width = p.set.padded(rows.Rows)
			clear(steps) // padding
		}
		panel := p.panels[j*w.Cols:][:w.Cols*width]
		for l := 0; l < w.Cols; l += transposeCols {
			some := min(transposeCols, w.Cols-l)
			transpose(p.set, steps, width, Cols(rows, l, some))
			c, e := l/window, l%window
			for k := range some {
				copy(panel[(e*channels+c)*width:][:width], steps[k*width:])
				if e++; e == window {
					c, e = c+1, 0
				}
			}
		}
	}
}

// windowsLast returns the transpose of w with its rows in the order of SetWindows.
func windowsLast(w Matrix, window int) Matrix {
	t := New(w.Cols, w.Rows)
	channels := w.Cols / window
	for i := range w.Rows {
		for l, x := range Row(w, i) {
			t.Data[(l%window*channels+l/window)*t.Stride+i] = x
		}
	}
	return t
}

// panel returns the address of a step of the panel that begins at column j and has the given number
// of columns, and the distances, in bytes, to the next step, and from the end of a number of steps
// to the first of them in the next panel.
func (p *Weights) panel(j, width, first, steps int) (w *float32, step, skip uintptr) {
	n, k := p.shape()
	if p.inPlace && j+width <= n {
		step = uintptr(p.w.Stride) * 4
		return &p.w.Data[first*p.w.Stride+j], step, uintptr(width)*4 - uintptr(steps)*step
	}
	if p.inPlace {
		j = 0 // of the one panel that is packed
	}
	step = uintptr(width) * 4
	return &p.panels[j*k+first*width], step, uintptr(k-steps) * step
}

// pack fills panels with w.
func pack(set kernelSet, panels []float32, w Matrix) {
	for j := 0; j < w.Rows; j += set.panelCols() {
		n := min(set.panelCols(), w.Rows-j)
		width := set.padded(n)
		panel := panels[j*w.Cols : (j+width)*w.Cols]
		transpose(set, panel, width, Rows(w, j, n))
		// The padding is multiplied, though its sums are never stored, and memory that is used
		// again may hold anything.
		if n < width {
			for l := range w.Cols {
				clear(panel[l*width+n : (l+1)*width])
			}
		}
	}
}

// packTransposed fills panels with the transpose of w, which is k rows from row i on.
func packTransposed(set kernelSet, panels []float32, w Matrix, i, k int) {
	width := set.panelCols()
	whole := w.Cols / width * width
	if whole > 0 {
		packStripes(set, panels[i*width:], w.Data, 0, w.Stride, w.Rows, k, whole, width)
	}
	rest := w.Cols - whole
	if rest == 0 {
		return
	}
	width = set.padded(rest)
	dst := panels[whole*k+i*width:]
	// A last stripe of whole vectors is like the others, only narrower. Any other one is padded row
	// by row.
	if rest == width {
		packStripes(set, dst, w.Data, whole, w.Stride, w.Rows, k, rest, width)
		return
	}
	for l := range w.Rows {
		row := dst[l*width : (l+1)*width]
		clear(row[copy(row, Row(w, l)[whole:]):])
	}
}

// packRows is how many rows packStripes takes at a time. It reads them as parallel streams, and
// writes short runs of every stripe. With 4 or 16 packing takes 1.02 to 1.6 times as long (Zen 3,
// November 2026).
const packRows = 8

// packStripes packs n columns of some rows of src, the first of which begins at at, stripe by
// stripe of width columns. The rows of a stripe follow each other; a stripe has k of them.
func packStripes[T float32 | float64](s kernelSet, dst, src []T, at, stride, rows, k, n, width int) {
	if n == 0 {
		return
	}
	for first := 0; first < rows; first += packRows {
		count := min(packRows, rows-first)
		from, to := at+first*stride, dst[first*width:]
		if stripes(s, to, k*width, src, from, stride, count, n/width, width) {
			continue
		}
		// Without assembly, runs are copied one by one, in the same order.
		for i := 0; i < n; i += width {
			for l := range count {
				copy(to[i*k+l*width:][:width], src[from+l*stride+i:])
			}
		}
	}
}

// transposeCols is how many columns of some rows are transposed before the next rows, so that cache
// lines are not evicted before they are complete.
const transposeCols = 64

// fetchRows is how many rows are fetched ahead of those that are transposed, because processors
// don't foresee short pieces of rows. Cold factors are packed in three quarters of the time, and
// transposed in two thirds (Zen 5, November 2026).
const fetchRows = 16

// Transpose sets column i of dst, whose rows are stride elements apart, to row i of src.
func Transpose(dst []float32, stride int, src Matrix) {
	checkData(&src)
	if src.Rows > 0 && src.Cols > 0 && (stride < src.Rows || !reaches(src.Cols-1, stride, len(dst)-src.Rows)) {
		panic(errShape)
	}
	transpose(bestSet, dst, stride, src)
}

// transpose is Transpose with a set of kernels.
func transpose(set kernelSet, dst []float32, stride int, src Matrix) {
	last := src.Rows &^ 7
	for l := 0; l < src.Cols; l += transposeCols {
		n := min(transposeCols, src.Cols-l)
		i := 0
		for ; i+8 <= src.Rows; i += 8 {
			at := i*src.Stride + l
			// Fetched is what will be read when fetchRows more rows are done: a row further below
			// or, behind the last whole rows, one of the first in the next columns.
			ahead := fetchRows * src.Stride
			if i+fetchRows >= last {
				ahead += transposeCols - last*src.Stride
			}
			// The assembly takes squares of eight. Columns that are no whole square, and rows below
			// the last square, are copied one by one.
			done := set.transpose8(dst[l*stride+i:], stride, src.Data[at:], src.Stride, n, ahead)
			for r := i; r < i+8; r++ {
				scatter(dst, stride, l+done, src.Data[r*src.Stride+l+done:r*src.Stride+l+n], r)
			}
		}
		for ; i < src.Rows; i++ {
			scatter(dst, stride, l, src.Data[i*src.Stride+l:i*src.Stride+l+n], i)
		}
	}
}

// scatter copies v to a column of dst, from the given row on.
func scatter(dst []float32, stride, row int, v []float32, col int) {
	for l, x := range v {
		dst[(row+l)*stride+col] = x
	}
}
