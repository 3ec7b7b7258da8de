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

// Matrix returns W: the matrix that p was made of or, after Release, a copy with the same bits.
func (p *Weights) Matrix() Matrix {
	if p.w.Data != nil || p.w.Rows == 0 || p.w.Cols == 0 { // kept, or empty
		return p.w
	}
	w := New(p.w.Rows, p.w.Cols)
	for j := 0; j < w.Rows; j += p.set.panelCols() {
		n := min(p.set.panelCols(), w.Rows-j)
		width := p.set.padded(n)
		panel := p.panels[j*w.Cols : (j+width)*w.Cols]
		for i := range n {
			row := Row(w, j+i)
			for l := range row {
				row[l] = panel[l*width+i]
			}
		}
	}
	return w
}
