package kernel

// Packed weights are a sequence of panels. A panel holds panelCols rows of W, the last one the
// remaining rows, padded with zeros to whole vectors. In a panel, the first elements of all rows
// come first, then the second ones, and so on. Sums of the padding are never stored.

// size is the number of elements of all forms.
func (p *Weights) size() int {
	n, k := p.shape()
	rows, cols := p.laneShape()
	return p.set.padded(n)*k + rows*cols
}

// place divides size elements among the forms.
func (p *Weights) place(v []float32) {
	n, k := p.shape()
	p.panels, p.lanes = v, v[p.set.padded(n)*k:]
}

// pack fills all forms.
func (p *Weights) pack() {
	p.packLanes()
	if p.tall {
		packTransposed(p.set, p.panels, p.w)
	} else {
		pack(p.set, p.panels, p.w)
	}
}

// pack fills panels with w.
func pack(set kernelSet, panels []float32, w Matrix) {
	for j := 0; j < w.Rows; j += set.panelCols() {
		n := min(set.panelCols(), w.Rows-j)
		width := set.padded(n)
		panel := panels[j*w.Cols : (j+width)*w.Cols]
		transpose(set, panel, width, Rows(w, j, n))
		if n < width {
			for l := range w.Cols {
				clear(panel[l*width+n : (l+1)*width])
			}
		}
	}
}

// packRows is how many rows packTransposed takes at a time. It reads them as parallel streams, and
// writes short runs of every panel.
const packRows = 8

// packTransposed fills panels with the transpose of w.
func packTransposed(set kernelSet, panels []float32, w Matrix) {
	for first := 0; first < w.Rows; first += packRows {
		last := min(first+packRows, w.Rows)
		for j := 0; j < w.Cols; j += set.panelCols() {
			n := min(set.panelCols(), w.Cols-j)
			width := set.padded(n)
			dst := panels[j*w.Rows+first*width:]
			for l := first; l < last; l++ {
				copy(dst[:n], w.Data[l*w.Stride+j:l*w.Stride+j+n])
				clear(dst[n:width])
				dst = dst[width:]
			}
		}
	}
}

// transposeCols is how many columns of some rows are transposed before the next rows, so that cache
// lines are not evicted before they are complete.
const transposeCols = 64

// transpose sets column i of dst, whose rows are stride elements apart, to row i of src.
func transpose(set kernelSet, dst []float32, stride int, src Matrix) {
	for l := 0; l < src.Cols; l += transposeCols {
		n := min(transposeCols, src.Cols-l)
		i := 0
		for ; i+8 <= src.Rows; i += 8 {
			at := i*src.Stride + l
			done := set.transpose8(dst[l*stride+i:], stride, src.Data[at:], src.Stride, n)
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
