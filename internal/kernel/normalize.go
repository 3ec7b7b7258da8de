package kernel

import "math"

// normFloor is the least mean square that NormalizeRow divides by. Its square root is a float32.
const normFloor = 1.0 / (1 << 33) / (1 << 33)

// NormalizeRow sets y to f·x and returns f, which makes the root mean square of y equal to rms. A
// mean square of x below 2^-66·rms² counts as that. x and y may be the same.
func NormalizeRow(y, x []float32, rms float32) (f float32) {
	y = head(y, len(x))
	_, f = normFactor(x, rms)
	ScaleVec(y, f, x)
	return f
}

// normFactor returns p, the mean square of x divided by rms², and the factor f of NormalizeRow.
func normFactor(x []float32, rms float32) (p, f float32) {
	p = Dot(x, x) / (float32(len(x)) * rms * rms)
	return p, float32(1 / math.Sqrt(float64(max(p, normFloor))))
}

// NormalizeRowDeriv adds the derivative of NormalizeRow to dx, or sets dx to it if dx and dy are
// the same:
//
//	f·dy - f³/(D·rms²)·(dy·x)·x
//
// where D is the length. The second term is missing if the mean square is floored.
func NormalizeRowDeriv(dx, x, dy []float32, rms float32) {
	dx, dy = head(dx, len(x)), head(dy, len(x))
	p, f := normFactor(x, rms)
	g := float32(0)
	if !(p <= normFloor) {
		g = -f * f * f / (float32(len(x)) * rms * rms) * Dot(dy, x)
	}
	if len(x) > 0 && &dx[0] == &dy[0] {
		ScaleVec(dx, f, dy)
	} else {
		addScaled(dx, dy, f)
	}
	addScaled(dx, x, g)
}

// standardizeRows is [Threads.Standardize] of a thread.
func standardizeRows(y, x Matrix, mean, scale []float32) {
	MapRows(y, x, func(y, x []float32) { SubMulVec(y, x, mean, scale) })
}

// standardizeDeriv is [Threads.StandardizeDeriv] of a thread.
func standardizeDeriv(dx, dy, y Matrix, mean, scale, slope []float32) {
	mapRows2(dx, dy, y, func(dx, dy, y []float32) { centreDeriv(dx, dy, y, mean, scale, slope) })
}
