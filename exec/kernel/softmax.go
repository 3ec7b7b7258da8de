package kernel

import "math"

// Softmax sets each row of dst to the exponentials of the row of src divided by their sum, and values below floor to
// floor. NaN stays NaN.
func Softmax(dst, src Matrix, floor float32) {
	sameShape(dst, src)
	for i := range dst.Rows {
		SoftmaxVec(Row(dst, i), Row(src, i), floor)
	}
}

// SoftmaxVec is Softmax for vectors of one length.
func SoftmaxVec(dst, src []float32, floor float32) {
	dst = dst[:len(src)]
	f := 1 / ExpVec(dst, src, bestSet.max(src))
	bestSet.scaleFloor(dst, dst, f, floor)
}

// SoftmaxDeriv sets dx to y∘(dy - Σy·dy) row by row, where y is the softmax.
func SoftmaxDeriv(dx, y, dy Matrix) {
	sameShape(dx, y)
	sameShape(dx, dy)
	for i := range dx.Rows {
		d, v, g := Row(dx, i), Row(y, i), Row(dy, i)
		dot := Dot(v, g)
		v, g = v[:len(d)], g[:len(d)]
		for j := range d {
			d[j] = v[j] * (g[j] - dot)
		}
	}
}

// LogSoftmax sets each row of dst to the row of src minus the logarithm of the sum of its exponentials.
func LogSoftmax(dst, src Matrix) {
	sameShape(dst, src)
	for i := range dst.Rows {
		d, s := Row(dst, i), Row(src, i)
		m := bestSet.max(s)
		shift := m + float32(math.Log(bestSet.expSum(s, m)))
		bestSet.addNumber(d, s, -shift)
	}
}

// LogSoftmaxDeriv sets dx to dy - exp(y)·Σdy row by row, where y is the logarithm of the softmax.
func LogSoftmaxDeriv(dx, y, dy Matrix) {
	sameShape(dx, y)
	sameShape(dx, dy)
	for i := range dx.Rows {
		g := Row(dy, i)
		bestSet.logSoftmaxDeriv(Row(dx, i), Row(y, i), g, Sum(g))
	}
}
