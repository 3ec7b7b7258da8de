// Package elementary has the elementary functions of float64s, one number at a time.
//
// The functions of package math have different bits on different processors: some are assembly,
// others are Go whose products and sums compilers fuse on some processors and not on others. Here
// every product is rounded explicitly or fused explicitly. kernel.Float64Map has the same
// functions, with the same bits, for vectors.
//
// Errors are at most about two units in the last place, and half of one in [Pow]; a table in
// docs/measurements.md has what was measured. Near the zeros of [Lgamma] and [Digamma] at negative
// numbers the absolute error is small. NaN, infinities and signs of zero are treated as in package
// math, which also serves for what rounds at most once: square roots, rounding to integers,
// remainders.
//
// Exponentials split x into n·ln 2 + r and take the Taylor series of r. Logarithms, the sine and
// the error function use the polynomials of FreeBSD's msun, the arc tangent that of Cephes. Powers
// go through a logarithm of twice the precision, which a table and a Taylor series give. The
// gamma function and its relatives use interpolating polynomials near 2, recurrences and asymptotic
// series; see DLMF, chapter 5. Inverse error functions are roots, found by Halley's method.
//
// All functions are safe for concurrent use.
package elementary

import "math"

// horner returns the value of a polynomial at z. The highest coefficient comes first.
func horner(z float64, coefficients []float64) float64 {
	p := coefficients[0]
	for _, c := range coefficients[1:] {
		p = math.FMA(p, z, c)
	}
	return p
}

// withSign returns v with the sign of x. v is not negative.
func withSign(v, x float64) float64 {
	return math.Float64frombits(math.Float64bits(v) | math.Float64bits(x)&(1<<63))
}
