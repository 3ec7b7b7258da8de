// Package elementary has the elementary functions of float64s that computations are made of, one number at a time.
//
// It is there because those of package math have other bits on other processors: some are assembly, others are Go whose products and sums
// compilers fuse on some processors and not on others. Here every product is rounded explicitly or fused explicitly. The maps of
// package kernel compute the same bits for whole vectors, in assembly where there is some.
//
// Errors are a few units in the last place, except for [Pow] of very large and very small numbers. NaN, infinities and signs of zero are
// treated as by package math. What rounds once, or not at all, is left to that package: square roots, rounding to whole numbers,
// remainders.
//
// Exponentials split x into n·ln 2 + r and take the Taylor series of r. Logarithms, the sine and the error function use the polynomials of
// FreeBSD's msun, the arc tangent that of Cephes.
package elementary

import "math"

// horner returns the value at z of a polynomial, whose highest coefficient comes first.
func horner(z float64, coefficients []float64) float64 {
	p := coefficients[0]
	for _, c := range coefficients[1:] {
		p = math.FMA(p, z, c)
	}
	return p
}

// withSign returns v, which is not negative, with the sign of x.
func withSign(v, x float64) float64 {
	return math.Float64frombits(math.Float64bits(v) | math.Float64bits(x)&(1<<63))
}
