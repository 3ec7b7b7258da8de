package kernel

import (
	"os"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// OpenBLAS returns gonum's implementation of BLAS, with products that have the bits of OpenBLAS
// 0.3.21 on processors with AVX-512, for
//
//	blas32.Use(kernel.OpenBLAS())
//
// It is slow. It serves comparisons with programs that use that library: differences then are not
// due to rounding. Unlike those of this package, its sums depend on the number of rows. Their order
// was found out from results alone.
func OpenBLAS() blas.Float32 { return openBLAS{} }

type openBLAS struct{ gonum.Implementation }

// likeOpenBLAS reports whether the environment asks for OpenBLAS.
var likeOpenBLAS = os.Getenv("NNOPT_KERNELS") == "openblas"

// The order of a sum depends on the size of the product.
const (
	// A·Bᵀ with few elements, but long sums, has sums in lanes: every 16th product belongs to the
	// same lane.
	sumLanes        = 16
	maxLaneElements = 1200
	minLaneSteps    = sumLanes * 2
	// A product with at most that many multiplications is small, and its other sums are not divided
	// either.
	maxSmall = 1_000_000
	// In the corner outside of blocks of 4 rows and 4 columns, the lanes are added in another
	// order.
	laneBlock = 4
	// The last columns of small products A·B have sums in lanes, too, if they fill half a vector at
	// most.
	laneCols = sumLanes / 2
	// Other sums are chains of at most that many products, which are added one after the other.
	maxChain   = 320
	chainRound = 16
)

// Sgemm computes C = alpha·A·B + beta·C like gonum's, except for the order of sums.
func (b openBLAS) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, bb []float32, ldb int, beta float32, c []float32, ldc int) {
	f, y, ok := parse(tA, tB, m, n, k, a, lda, bb, ldb, c, ldc)
	if !ok || alpha == 0 {
		b.Implementation.Sgemm(tA, tB, m, n, k, alpha, a, lda, bb, ldb, beta, c, ldc)
		return
	}
	// Every element is computed by itself, because its order of sums may depend on its place.
	x, w := f.a, f.b // rows of both are multiplied
	if f.aTall {
		x = transposed(x)
	}
	if f.bTall {
		w = transposed(w)
	}
	small := m*n*k <= maxSmall
	inOne := small && (f.aTall || f.bTall) // a sum is one chain
	chains := n                            // the number of columns before those in lanes
	// Small products A·Bᵀ with few elements are in lanes altogether, small products A·B only in
	// their last columns. A transposed A, large products and short sums never are.
	switch {
	case !small || f.aTall || k < minLaneSteps:
	case f.bTall && n%sumLanes <= laneCols:
		chains = n - n%sumLanes
	case !f.bTall && m*n <= maxLaneElements:
		chains = 0
	}
	for i := range m {
		xi, yi := Row(x, i), Row(y, i)
		for j := range yi {
			sum := float32(0)
			// With beta 0 the result is not read: it may be NaN.
			if beta != 0 {
				sum = float32(beta * yi[j])
			}
			wj := Row(w, j)
			switch {
			case j >= chains:
				corner := i >= m-m%laneBlock && j >= n-n%laneBlock
				sum = fma32(alpha, dotInLanes(xi, wj, corner), sum)
			case inOne:
				sum = fma32(alpha, dotChain(xi, wj), sum)
			default:
				// Chains are multiplied by alpha and added to the element one after the other, each
				// with one rounding.
				for first := 0; first < k; {
					last := first + chainLength(k-first)
					sum = fma32(alpha, dotChain(xi[first:last], wj[first:last]), sum)
					first = last
				}
			}
			yi[j] = sum
		}
	}
}

// transposed returns the transpose of m.
func transposed(m Matrix) Matrix {
	t := New(m.Cols, m.Rows)
	transpose(goSet, t.Data, t.Stride, m)
	return t
}

// chainLength returns the length of the next chain of a sum with the given number of remaining
// products.
func chainLength(left int) int {
	switch {
	case left >= 2*maxChain:
		return maxChain
	case left > maxChain:
		return (left/2 + chainRound - 1) / chainRound * chainRound
	}
	return left
}

// dotChain returns the sum of the products in order.
func dotChain(x, w []float32) (sum float32) {
	for l, v := range w {
		sum = fma32(x[l], v, sum)
	}
	return sum
}

// dotInLanes returns a sum in lanes. In the end they are added in pairs: neighbours first, or, in
// the corner, the lower half and the upper half first.
func dotInLanes(x, w []float32, corner bool) float32 {
	var sums [sumLanes]float32
	for l, v := range w {
		sums[l%sumLanes] = fma32(x[l], v, sums[l%sumLanes])
	}
	if !corner {
		return addPairs(&sums)
	}
	for n := sumLanes / 2; n > 0; n /= 2 {
		for i := range n {
			sums[i] += sums[i+n]
		}
	}
	return sums[0]
}
