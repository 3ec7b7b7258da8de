package kernel

// Release drops the matrix that p was made of: products need the packed form only. The matrix that
// NewWeights was given is then free for others. Release does nothing, and returns false, if p needs
// the matrix, as the weights of a backward pass and those for a foreign BLAS do, or if it is empty.
func (p *Weights) Release() bool {
	if p.set == blasSet || p.tall || p.w.Rows == 0 || p.w.Cols == 0 {
		return false
	}
	p.w.Data = nil
	return true
}

// Matrix returns W, or its transpose for the weights of a backward pass and SetWindows: the matrix that p was
// made of or, after Release and SetWindows, a copy with the same bits.
func (p *Weights) Matrix() Matrix {
	if p.w.Data != nil || p.w.Rows == 0 || p.w.Cols == 0 { // kept, or empty
		return p.w
	}
	w := New(p.w.Rows, p.w.Cols)
	cols, k := p.shape()
	row, step := w.Stride, 1
	if p.tall {
		row, step = step, row
	}
	for j := 0; j < cols; j += p.set.panelCols() {
		n := min(p.set.panelCols(), cols-j)
		width := p.set.padded(n)
		panel := p.panels[j*k : (j+width)*k]
		for i := range n {
			for l := range k {
				w.Data[(j+i)*row+l*step] = panel[l*width+i]
			}
		}
	}
	return w
}
