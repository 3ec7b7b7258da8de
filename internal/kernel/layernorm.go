package kernel

import "math"

// LayerNormRows sets each row of n elements of dst to (x - m)·f, where x is the row of src, m is the sum of
// its elements divided by divisor, and f is 1/√(v + eps), with v the sum of the squares of x - m divided by
// divisor. With gain and bias, which go together and have n elements, each element is then multiplied with
// that of gain, and that of bias is added. Sums are made in double precision; their order depends on n
// alone. Dst may be src.
func LayerNormRows(dst, src []float32, n int, gain, bias []float32, divisor, eps float32) {
	dst = head(dst, len(src))
	if len(src) == 0 {
		return
	}
	if n <= 0 || len(src)%n != 0 || (gain == nil) != (bias == nil) {
		panic(errShape)
	}
	if gain != nil {
		gain, bias = head(gain, n), head(bias, n)
	}
	for len(src) > 0 {
		rows := min(len(src)/n, rowsAtOnce)
		var means, scales [rowsAtOnce]float32
		layerSums(&means, src, n, rows, nil)
		for r := range rows {
			means[r] /= divisor
		}
		layerSums(&scales, src, n, rows, &means)
		for r := range rows {
			scales[r] = 1 / float32(math.Sqrt(float64(scales[r]/divisor+eps)))
		}
		for r := range rows {
			standardize(dst[r*n:][:n], src[r*n:][:n], gain, bias, means[r], scales[r])
		}
		dst, src = dst[rows*n:], src[rows*n:]
	}
}

// RowSums sets sums to those of the rows of x, of n elements each. They are made in double precision; their
// order depends on n alone.
func RowSums(sums, x []float32, n int) {
	if n <= 0 || len(x)%n != 0 {
		panic(errShape)
	}
	sums = head(sums, len(x)/n)
	for len(sums) > 0 {
		var some [rowsAtOnce]float32
		rows := min(len(sums), rowsAtOnce)
		layerSums(&some, x, n, rows, nil)
		copy(sums, some[:rows])
		sums, x = sums[rows:], x[rows*n:]
	}
}

// rowsAtOnce is how many rows are summed up side by side.
const rowsAtOnce = 4

// layerSums sets sums to those of the elements of some rows, or of the squares of what they differ by from
// means. Eight sums side by side, of elements whose indexes have the same remainder, are added in pairs,
// and then the rest of a row, fewer than eight elements. Short rows are added one after the other.
func layerSums(sums *[rowsAtOnce]float32, x []float32, n, rows int, means *[rowsAtOnce]float32) {
	var parts [8 * rowsAtOnce]float64
	done := block * wholeBlocks(n)
	switch {
	case done == 0:
	case rows == rowsAtOnce:
		sumBlocksOf(x, n, done/block, means, &parts)
	default:
		// Each row takes the places of all.
		for r := range rows {
			var of [8 * rowsAtOnce]float64
			if means != nil {
				sumBlocksOf(x[r*n:], 0, done/block, &[rowsAtOnce]float32{means[r]}, &of)
			} else {
				sumBlocksOf(x[r*n:], 0, done/block, nil, &of)
			}
			copy(parts[8*r:][:8], of[:])
		}
	}
	for r := range rows {
		row, p := x[r*n:][:n], parts[8*r:][:8]
		term := func(v float32) float64 {
			if means != nil {
				v -= means[r]
				v = float32(v * v)
			}
			return float64(v)
		}
		sum, at := 0.0, 0
		if n >= 2*len(p) {
			for at = done; at+len(p) <= n; at += len(p) {
				for j, v := range row[at:][:len(p)] {
					p[j] += term(v)
				}
			}
			sum += (p[0] + p[1]) + (p[2] + p[3]) + ((p[4] + p[5]) + (p[6] + p[7]))
		}
		for _, v := range row[at:] {
			sum += term(v)
		}
		sums[r] = float32(sum)
	}
}

// sumBlocksOf sets parts to eight sums for each of the rows, which are so many elements apart.
func sumBlocksOf(x []float32, apart, blocks int, means *[rowsAtOnce]float32, parts *[8 * rowsAtOnce]float64) {
	stride := 4 * uintptr(apart)
	if means != nil {
		rowSquaresBlocks(&x[0], stride, blocks, parts, means)
	} else {
		rowSumsBlocks(&x[0], stride, blocks, parts)
	}
}

// standardize sets dst to (x - mean)·scale, and then to that times gain plus bias, if there are such.
func standardize(dst, x, gain, bias []float32, mean, scale float32) {
	n := wholeBlocks(len(x))
	switch {
	case n == 0:
	case gain != nil:
		standardizeToBlocks(&dst[0], &x[0], &gain[0], &bias[0], n, mean, scale)
	default:
		standardizeBlocks(&dst[0], &x[0], n, mean, scale)
	}
	for i := n * block; i < len(x); i++ {
		v := float32((x[i] - mean) * scale)
		if gain != nil {
			v = float32(v*gain[i]) + bias[i]
		}
		dst[i] = v
	}
}
