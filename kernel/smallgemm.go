package kernel

import "math"

// maxSmallSteps is the number of fused multiply-adds up to which a product takes less time than
// packing its factors: with 64 steps a fifth to a half of the time, with 125 between a fifth and a
// fifth more (EPYC with AVX-512, 2026-11).
const maxSmallSteps = 100

// smallProduct reports whether smallDGemm is to compute a product.
func smallProduct(rows, cols, depth int) bool {
	const most = maxSmallSteps
	return rows <= most && cols <= most && depth <= most && rows*cols*depth <= most
}

// smallDGemm is DGemm without packing, with the same chains of fused multiply-adds.
func smallDGemm(alpha float64, a, b *Strided, c []float64, stride int) {
	for i := range a.Rows {
		row := c[i*stride:][:b.Cols]
		first := a.First + i*a.Row
		j := 0
		for ; j+4 <= len(row); j += 4 { // several at a time, because each step waits for the one before
			var s0, s1, s2, s3 float64
			left, right := first, b.First+j*b.Col
			for range a.Cols {
				x := a.Data[left]
				s0 = math.FMA(x, b.Data[right], s0)
				s1 = math.FMA(x, b.Data[right+b.Col], s1)
				s2 = math.FMA(x, b.Data[right+2*b.Col], s2)
				s3 = math.FMA(x, b.Data[right+3*b.Col], s3)
				left, right = left+a.Col, right+b.Row
			}
			row[j] = math.FMA(s0, alpha, row[j])
			row[j+1] = math.FMA(s1, alpha, row[j+1])
			row[j+2] = math.FMA(s2, alpha, row[j+2])
			row[j+3] = math.FMA(s3, alpha, row[j+3])
		}
		for ; j < len(row); j++ {
			var sum float64
			left, right := first, b.First+j*b.Col
			for range a.Cols {
				sum = math.FMA(a.Data[left], b.Data[right], sum)
				left, right = left+a.Col, right+b.Row
			}
			row[j] = math.FMA(sum, alpha, row[j])
		}
	}
}
