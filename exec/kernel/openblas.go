package kernel

import (
	"os"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// OpenBLAS is gonum's implementation of BLAS, except that C = A·Bᵀ has the bits that OpenBLAS 0.3.21 gives it on processors with
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
	// Products of few elements, of many factors each, have sums in lanes: every 16th product belongs to the same one.
	sumLanes        = 16
	maxLaneElements = 1200
	minLaneSteps    = sumLanes * 2
	maxLaneProducts = 1_000_000
	// In the corner that is left of blocks of 4 rows and 4 columns, the lanes are added up in another order.
	laneBlock = 4
	// Other sums are chains of so many products at most, which are added one after the other.
	maxChain   = 320
	chainRound = 16
)

// Sgemm computes C = alpha·A·B + beta·C as gonum's does, but for the order of sums where only B is transposed.
func (b OpenBLAS) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, bb []float32, ldb int, beta float32, c []float32, ldc int) {
	aTall, aKnown := transposes(tA)
	bRows, bKnown := transposes(tB)
	x, w, y := general(m, k, false, a, lda), general(n, k, false, bb, ldb), general(m, n, false, c, ldc)
	if !aKnown || !bKnown || aTall || !bRows || m <= 0 || n <= 0 || k <= 0 || alpha == 0 || !valid(x) || !valid(w) || !valid(y) {
		b.Implementation.Sgemm(tA, tB, m, n, k, alpha, a, lda, bb, ldb, beta, c, ldc)
		return
	}
	inLanes := m*n <= maxLaneElements && k >= minLaneSteps && m*n*k <= maxLaneProducts
	for i := range m {
		xi, yi := Row(x, i), Row(y, i)
		for j := range yi {
			sum := float32(0)
			if beta != 0 {
				sum = float32(beta * yi[j])
			}
			wj := Row(w, j)
			if inLanes {
				corner := i >= m-m%laneBlock && j >= n-n%laneBlock
				sum = fma32(alpha, dotInLanes(xi, wj, corner), sum)
			} else {
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
