package kernel

import (
	"os"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// OpenBLAS is gonum's implementation of BLAS, except that products have the bits that OpenBLAS 0.3.21 gives them on processors with
// AVX-512, for
//
//	blas32.Use(kernel.OpenBLAS{})
//
// It is slow, and there to compare with others who computed with that library: roundings then are no excuse for a difference.
// Unlike those of this package, its sums depend on how many rows there are. It was found out from results alone.
type OpenBLAS struct{ gonum.Implementation }

// likeOpenBLAS says that the environment asks for OpenBLAS.
var likeOpenBLAS = os.Getenv("NNOPT_KERNELS") == "openblas"

// Which order a sum has, depends on the size of the product.
const (
	// A·Bᵀ of few elements, of many factors each, has sums in lanes: every 16th product belongs to the same one.
	sumLanes        = 16
	maxLaneElements = 1200
	minLaneSteps    = sumLanes * 2
	// With so many multiplications at most a product is small, and other sums are not divided either.
	maxSmall = 1_000_000
	// In the corner that is left of blocks of 4 rows and 4 columns, the lanes are added up in another order.
	laneBlock = 4
	// So have the last columns of small products A·B, where they fill half a vector at most.
	laneCols = sumLanes / 2
	// Other sums are chains of so many products at most, which are added one after the other.
	maxChain   = 320
	chainRound = 16
)

// Sgemm computes C = alpha·A·B + beta·C as gonum's does, but for the order of sums.
func (b OpenBLAS) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, bb []float32, ldb int, beta float32, c []float32, ldc int) {
	aTall, aKnown := transposes(tA)
	bRows, bKnown := transposes(tB)
	if !aKnown || !bKnown || m <= 0 || n <= 0 || k <= 0 || alpha == 0 {
		b.Implementation.Sgemm(tA, tB, m, n, k, alpha, a, lda, bb, ldb, beta, c, ldc)
		return
	}
	x, w, y := general(m, k, aTall, a, lda), general(k, n, bRows, bb, ldb), general(m, n, false, c, ldc)
	checkApart(&x)
	checkApart(&w)
	checkApart(&y)
	small := m*n*k <= maxSmall
	inOne := small && (aTall || !bRows) // a sum is one chain
	chains := n                         // how many columns come before those in lanes
	switch {
	case !small || aTall || k < minLaneSteps:
	case !bRows && n%sumLanes <= laneCols:
		chains = n - n%sumLanes
	case bRows && m*n <= maxLaneElements:
		chains = 0
	}
	if aTall {
		x = transposed(x)
	}
	if !bRows {
		w = transposed(w)
	}
	for i := range m {
		xi, yi := Row(x, i), Row(y, i)
		for j := range yi {
			sum := float32(0)
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

// chainLength is the length of the next chain of a sum, of which so many products are left.
func chainLength(left int) int {
	switch {
	case left >= 2*maxChain:
		return maxChain
	case left > maxChain:
		return (left/2 + chainRound - 1) / chainRound * chainRound
	}
	return left
}

// dotChain is the sum of products from the first one to the last.
func dotChain(x, w []float32) (sum float32) {
	for l, v := range w {
		sum = fma32(x[l], v, sum)
	}
	return sum
}

// dotInLanes is a sum in lanes, which at the end are added up in pairs: neighbours first, or, in the corner, those first that are
// farthest apart.
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
