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

// dotDoubles is DGemm of a row and a column, which it reads where they are, with the same chains of fused
// multiply-adds. It returns c + alpha·(x·y).
func dotDoubles(alpha float64, x, y []float64, c float64) float64 {
	const n = dDepth
	for len(x) >= 4*n { // several chains at a time, because each step waits for the one before
		var s0, s1, s2, s3 float64
		x0, x1, x2, x3 := x[:n], x[n:][:n], x[2*n:][:n], x[3*n:][:n]
		y0, y1, y2, y3 := y[:n], y[n:][:n], y[2*n:][:n], y[3*n:][:n]
		for i := range n {
			s0 = math.FMA(x0[i], y0[i], s0)
			s1 = math.FMA(x1[i], y1[i], s1)
			s2 = math.FMA(x2[i], y2[i], s2)
			s3 = math.FMA(x3[i], y3[i], s3)
		}
		for _, s := range [4]float64{s0, s1, s2, s3} {
			c = math.FMA(s, alpha, c)
		}
		x, y = x[4*n:], y[4*n:]
	}
	for len(x) > 0 {
		part := x[:min(n, len(x))]
		s := 0.0
		for i, v := range part {
			s = math.FMA(v, y[i], s)
		}
		c = math.FMA(s, alpha, c)
		x, y = x[len(part):], y[len(part):]
	}
	return c
}
