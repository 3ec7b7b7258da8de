package array

import (
	"time"

	"github.com/nnopt/nnopt/kernel"
)

// A product of few elements with long sums, such as the scalar product of two vectors, is made in
// chains of maxTerms terms, as are all long sums of float32s in products: each chain is a product by
// itself, and they are added in order. So several threads may make them, and the bits don't depend on
// their number.

// mostChained is the number of elements up to which a product is made so. Larger ones are divided by
// elements.
const mostChained = 256

// chained reports whether a product is made in chains.
func chained(c *Array, terms int) bool {
	return terms > maxTerms && c.Len() <= mostChained && !otherBLAS(c.dtype)
}

// gemmInChains is Gemm of a product that is made in chains.
func (ws *Workspace) gemmInChains(alpha float64, a, b *Array, beta float64, c *Array) error {
	n := a.shape[1]
	chains := (n + maxTerms - 1) / maxTerms
	sums := new(Array)
	if err := ws.New(sums, c.dtype, chains, c.shape[0], c.shape[1]); err != nil {
		return err
	}
	defer ws.Release(sums)
	takes := max(int(kernel.ProductTime(c.shape[0], c.shape[1], n)/time.Nanosecond)*1000, (c.shape[0]+c.shape[1])*n*packed)
	err := ws.tryPieces(takes, chains, 1, func(ws *Workspace, first, next int) error {
		for i := first; i < next; i++ {
			lo, hi := i*maxTerms, min((i+1)*maxTerms, n)
			left, right, sum := a.stretch(1, lo, hi), b.stretch(0, lo, hi), sums.stretch(0, i, i+1)
			sum.ndim = 2
			copy(sum.shape[:2], c.shape[:2])
			copy(sum.strides[:2], []int{c.shape[1], 1})
			if err := ws.Gemm(alpha, &left, &right, 0, &sum); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if c.dtype == Float32 {
		kernel.Scale(general32(c), float32(beta))
		addChains[float32](c, sums)
	} else {
		scale64(beta, c)
		addChains[float64](c, sums)
	}
	return nil
}

// packed is what an element of a factor takes, in picoseconds, where there is little to multiply it with.
const packed = 1000

// addChains adds matrices, one after the other, to c, whose rows are contiguous.
func addChains[T float](c, sums *Array) {
	s := Slice[T](sums)
	for len(s) > 0 {
		for i := range c.shape[0] {
			row := dataOf[T](c)[c.offset+i*c.strides[0]:][:c.shape[1]]
			for j := range row {
				row[j] += s[j]
			}
			s = s[len(row):]
		}
	}
}
