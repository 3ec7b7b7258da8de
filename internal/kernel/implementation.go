package kernel

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// BLAS is gonum's implementation of BLAS with the matrix product of this package, for
//
//	blas32.Use(kernel.BLAS{})
//
// Unlike gonum's, its product runs in the calling goroutine alone, and does not skip zeros, so that
// NaN and infinities propagate.
type BLAS struct{ gonum.Implementation }

// Sgemm computes C = alpha·A·B + beta·C, where A is m×k, B is k×n, or the transposes of such, and C
// is m×n. It panics where gonum's does.
func (b BLAS) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, bb []float32, ldb int, beta float32, c []float32, ldc int) {
	f, cc, ok := parse(tA, tB, m, n, k, a, lda, bb, ldb, c, ldc)
	if bestSet == blasSet || !ok || alpha == 0 {
		b.Implementation.Sgemm(tA, tB, m, n, k, alpha, a, lda, bb, ldb, beta, c, ldc)
		return
	}
	f.inChains(bestSet, alpha, beta, cc)
}

// parse returns the factors and the result of a product in the terms of BLAS. It reports false, and
// checks nothing, if the product is empty or a transpose is unknown.
func parse(tA, tB blas.Transpose, m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int) (f factors, cc Matrix, ok bool) {
	aTall, aKnown := transposes(tA)
	bRows, bKnown := transposes(tB) // a B that is not transposed has k rows: it is tall
	f = factors{a: general(m, k, aTall, a, lda), b: general(k, n, bRows, b, ldb), aTall: aTall, bTall: !bRows}
	cc = general(m, n, false, c, ldc)
	if ok = aKnown && bKnown && m > 0 && n > 0 && k > 0; ok {
		f.check(cc)
	}
	return f, cc, ok
}

// transposes reports whether t is a transpose, and whether it is known at all.
func transposes(t blas.Transpose) (is, known bool) {
	is = t == blas.Trans || t == blas.ConjTrans
	return is, is || t == blas.NoTrans
}

// general returns a matrix, which is rows×cols unless it is transposed.
func general(rows, cols int, transposed bool, data []float32, stride int) Matrix {
	if transposed {
		rows, cols = cols, rows
	}
	return Matrix{Rows: rows, Cols: cols, Stride: stride, Data: data}
}
