package kernel

// ReLU sets dst to max(src, 0). NaN stays NaN.
func ReLU(dst, src Matrix) {
	onto(&dst, &src)
	for i := range dst.Rows {
		bestSet.relu(Row(dst, i), Row(src, i))
	}
}

// ReLUDeriv sets dx to dy where y > 0, and to 0 elsewhere.
func ReLUDeriv(dx, y, dy Matrix) {
	onto(&dx, &y)
	onto(&dx, &dy)
	for i := range dx.Rows {
		bestSet.reluDeriv(Row(dx, i), Row(y, i), Row(dy, i))
	}
}

// Signs say of the elements of a matrix which are positive, one bit an element.
type Signs struct {
	Rows, Cols int
	bits       []uint16 // of block columns; a row begins a new element
}

// words is how many elements of bits a row takes.
func (s *Signs) words() int { return (s.Cols + block - 1) / block }

// row returns the bits of row i.
func (s *Signs) row(i int) []uint16 { return s.bits[i*s.words() : (i+1)*s.words()] }

// resize makes room for a matrix, in the memory that is there if it is enough.
func (s *Signs) resize(rows, cols int) {
	s.Rows, s.Cols = rows, cols
	n := rows * s.words()
	if cap(s.bits) < n {
		s.bits = make([]uint16, n)
	}
	s.bits = s.bits[:n]
}

// ReLUSigns sets dst to max(src, 0), and signs to where that is positive, in rows first to first+rows. NaN stays NaN, and is not
// positive.
func ReLUSigns(dst, src Matrix, signs *Signs, first, rows int) {
	onto(&dst, &src)
	if first < 0 || rows < 0 || first > dst.Rows || rows > dst.Rows-first {
		panic(errShape)
	}
	signs.resize(rows, dst.Cols)
	for i := range dst.Rows {
		if k := i - first; 0 <= k && k < rows {
			bestSet.reluSigns(Row(dst, i), Row(src, i), signs.row(k))
		} else {
			bestSet.relu(Row(dst, i), Row(src, i))
		}
	}
}

// ReLUSignsDeriv sets dx to dy where signs says positive, and to 0 elsewhere. It adds the squares of dy to the elements of
// sumsq, one for each column, unless that is nil.
func ReLUSignsDeriv(dx, dy Matrix, signs *Signs, sumsq []float64) {
	onto(&dx, &dy)
	if dy.Rows != signs.Rows || dy.Cols != signs.Cols || !reaches(dy.Rows, signs.words(), len(signs.bits)) || sumsq != nil && len(sumsq) != dy.Cols {
		panic(errShape)
	}
	for i := range dx.Rows {
		if sumsq != nil {
			bestSet.squares(sumsq, Row(dy, i))
		}
		bestSet.signsDeriv(Row(dx, i), Row(dy, i), signs.row(i))
	}
}

// Sigmoid sets dst to 1/(1+exp(-src)).
func Sigmoid(dst, src Matrix) {
	onto(&dst, &src)
	for i := range dst.Rows {
		SigmoidVec(Row(dst, i), Row(src, i))
	}
}

// SigmoidVec is Sigmoid for vectors of one length.
func SigmoidVec(dst, src []float32) {
	bestSet.sigmoid(dst, src)
}

// SigmoidDeriv sets dx to dy·y·(1-y), where y is the sigmoid.
func SigmoidDeriv(dx, y, dy Matrix) {
	onto(&dx, &y)
	onto(&dx, &dy)
	for i := range dx.Rows {
		bestSet.sigmoidDeriv(Row(dx, i), Row(y, i), Row(dy, i))
	}
}

// SigmoidDerivVec is SigmoidDeriv for vectors of one length.
func SigmoidDerivVec(dx, y, dy []float32) { bestSet.sigmoidDeriv(dx, y, dy) }

// Tanh sets dst to the hyperbolic tangent of src.
func Tanh(dst, src Matrix) {
	onto(&dst, &src)
	for i := range dst.Rows {
		TanhVec(Row(dst, i), Row(src, i))
	}
}

// TanhVec is Tanh for vectors of one length.
func TanhVec(dst, src []float32) {
	bestSet.tanh(dst, src)
}

// TanhDeriv sets dx to dy·(1-y²), where y is the hyperbolic tangent.
func TanhDeriv(dx, y, dy Matrix) {
	onto(&dx, &y)
	onto(&dx, &dy)
	for i := range dx.Rows {
		bestSet.tanhDeriv(Row(dx, i), Row(y, i), Row(dy, i))
	}
}

// TanhDerivVec is TanhDeriv for vectors of one length.
func TanhDerivVec(dx, y, dy []float32) { bestSet.tanhDeriv(dx, y, dy) }

// ExpVec sets dst to e**(src-shift) and returns the sum. The vectors have one length.
func ExpVec(dst, src []float32, shift float32) (sum float32) {
	return float32(bestSet.exp(dst, src, shift))
}
