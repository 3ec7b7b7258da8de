package kernel

// MapRows sets each row of dst to f of the row of src.
func MapRows(dst, src Matrix, f func(dst, src []float32)) {
	onto(&dst, &src)
	for i := range dst.Rows {
		f(Row(dst, i), Row(src, i))
	}
}

// mapRows2 is [Threads.MapRows2] of a thread.
func mapRows2(dst, x, y Matrix, f func(dst, x, y []float32)) {
	onto(&dst, &x)
	onto(&dst, &y)
	for i := range dst.Rows {
		f(Row(dst, i), Row(x, i), Row(y, i))
	}
}

// Signs tell which elements of a matrix are positive, with one bit per element.
type Signs struct {
	Rows, Cols int
	bits       []uint16 // of block columns; a row begins a new element
}

// words is the number of elements of bits per row.
func (s *Signs) words() int { return (s.Cols + block - 1) / block }

// row returns the bits of row i.
func (s *Signs) row(i int) []uint16 { return s.bits[i*s.words() : (i+1)*s.words()] }

// resize makes room for a matrix. It reuses memory.
func (s *Signs) resize(rows, cols int) {
	s.Rows, s.Cols = rows, cols
	n := rows * s.words()
	if cap(s.bits) < n {
		s.bits = make([]uint16, n)
	}
	s.bits = s.bits[:n]
}

// resizeFor makes room for the signs of some rows of m, from row first on.
func (s *Signs) resizeFor(m *Matrix, first, rows int) {
	if first < 0 || rows < 0 || first > m.Rows || rows > m.Rows-first {
		panic(errShape)
	}
	s.resize(rows, m.Cols)
}

// reluSignsRows is ReLUSigns for n rows of dst, from row i on.
func reluSignsRows(dst, src Matrix, signs *Signs, first, i, n int) {
	for end := i + n; i < end; i++ {
		if k := i - first; 0 <= k && k < signs.Rows {
			reluSigns(Row(dst, i), Row(src, i), signs.row(k))
		} else {
			ReLUVec(Row(dst, i), Row(src, i))
		}
	}
}

// checkSigns panics unless the arguments of ReLUSignsDeriv fit.
func checkSigns(dx, dy Matrix, signs *Signs, sumsq []float64) {
	onto(&dx, &dy)
	if dy.Rows != signs.Rows || dy.Cols != signs.Cols || !reaches(dy.Rows, signs.words(), len(signs.bits)) || sumsq != nil && len(sumsq) != dy.Cols {
		panic(errShape)
	}
}

// reluSignsDerivRows is ReLUSignsDeriv for n rows from row first on.
func reluSignsDerivRows(dx, dy Matrix, signs *Signs, sumsq []float64, first, n int) {
	for i := first; i < first+n; i++ {
		d := Row(dy, i)
		if sumsq != nil {
			addSquares(sumsq, d)
		}
		signsDeriv(Row(dx, i), d, signs.row(i))
	}
}
