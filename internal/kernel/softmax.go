package kernel

import "github.com/nnopt/nnopt/internal/kernel/elementary"

// SoftmaxVec sets dst to the exponentials of src divided by their sum, and values below floor to
// floor. NaN stays NaN.
func SoftmaxVec(dst, src []float32, floor float32) { SoftmaxRows(dst, src, len(src), floor) }

// SoftmaxRows is SoftmaxVec for rows of n elements, one behind the other, which src consists of.
func SoftmaxRows(dst, src []float32, n int, floor float32) {
	dst = head(dst, len(src))
	if len(src) == 0 {
		return
	}
	if n <= 0 || len(src)%n != 0 {
		panic(errShape)
	}
	if n < block && len(src) >= block*n {
		softmaxColumns(dst, src, n, floor)
		return
	}
	// Each step needs all of what the one before finds out about a row. So a few rows take one step
	// after the other together, and the processor need not wait for the end of each. They stay in its
	// first-level cache meanwhile.
	var most [softmaxRows]float32
	for rows := max(1, min(softmaxRows, softmaxElements/n)); len(src) > 0; {
		k := min(rows, len(src)/n)
		for i := range k {
			most[i] = maxVec(src[i*n:][:n])
		}
		if n%block == 0 || n > raggedRow {
			for i := range k {
				most[i] = 1 / ExpVec(dst[i*n:][:n], src[i*n:][:n], most[i])
			}
		} else {
			// The end of each row would take as long as several blocks. Behind each other, rows have one end.
			for i := range k {
				addNumber(dst[i*n:][:n], src[i*n:][:n], -most[i])
			}
			ExpVec(dst[:k*n], dst[:k*n], 0)
			for i := range k {
				most[i] = 1 / sumOfBlocks(dst[i*n:][:n])
			}
		}
		for i := range k {
			scaleFloor(dst[i*n:][:n], dst[i*n:][:n], most[i], floor)
		}
		dst, src = dst[k*n:], src[k*n:]
	}
}

// sumOfBlocks returns the sum that ExpVec returns of what it stores.
func sumOfBlocks(x []float32) float32 {
	var sums [block]float64
	n := wholeBlocks(len(x))
	switch { // not wide, with which sums would be on the heap
	case n == 0:
	case bestSet == avx512Set:
		floatSumsAVX512(&x[0], n, &sums)
	default:
		floatSumsBlocks(&x[0], n, &sums)
	}
	for j, v := range x[n*block:] {
		sums[j%block] += float64(v)
	}
	return float32(total(&sums))
}

// softmaxColumns is SoftmaxRows for many rows of less than a block, with the bits of that. Rows become columns, so that some of
// them take each step together, in whole vectors: 4096 rows of 8 take half the time (Zen 4, 2026-11-30).
func softmaxColumns(dst, src []float32, n int, floor float32) {
	ws := getWorkspace()
	defer ws.put()
	rows := min(softmaxRowsAside, len(src)/n)
	e, most, sums := ws.floats(n*rows), ws.floats(n*rows), ws.doubles(n*rows)
	sub, add := float32Maps["sub"], float64Maps["add"]
	// halves calls f for the second half of what is left of n numbers, which meets the first.
	halves := func(k int, f func(to, from int)) {
		for half, left := block/2, n; half > 0; half /= 2 {
			if left > half {
				f((left-half)*k, half*k)
				left = half
			}
		}
	}
	for ; len(src) > 0; dst, src = dst[rows*n:], src[rows*n:] {
		rows = min(rows, len(src)/n)
		k := rows
		e, most, sums := e[:n*k], most[:n*k], sums[:n*k]
		transpose(bestSet, e, k, Matrix{Rows: k, Cols: n, Stride: n, Data: src[:n*k]})
		copy(most, e)
		halves(k, func(to, from int) { largerVec(most[:to], most[:to], most[from:]) })
		for j := range n {
			sub(e[j*k:][:k], e[j*k:][:k], most[:k])
		}
		ExpVec(e, e, 0)
		clear(sums)
		AddVecToDoubles(sums, e)
		halves(k, func(to, from int) { add(sums[:to], sums[:to], sums[from:]) })
		for i, v := range sums[:k] {
			most[i] = 1 / float32(v)
		}
		for j := range n {
			MulVec(e[j*k:][:k], e[j*k:][:k], most[:k])
		}
		transpose(bestSet, dst, n, Matrix{Rows: n, Cols: k, Stride: k, Data: e})
		scaleFloor(dst[:n*k], dst[:n*k], 1, floor)
	}
}

const (
	softmaxRows      = 16   // at most
	softmaxElements  = 4096 // of those rows, at most
	softmaxRowsAside = 64   // of less than a block
	// raggedRow is how long a row may be, if it is no whole blocks, whose elements share blocks with those of other
	// rows. Rows of 17, 50, 100 and 300 take 0.36, 0.47, 0.80 and 0.87 times as long as each by itself, those of 500
	// 1.16 times (Zen 4, 2026-11-30).
	raggedRow = 384
)

// SoftmaxDeriv sets dx to y∘(dy - Σy·dy) row by row, where y is the softmax.
func SoftmaxDeriv(dx, y, dy Matrix) {
	mapRows2(dx, y, dy, func(d, v, g []float32) {
		dot := Dot(v, g)
		v, g = head(v, len(d)), head(g, len(d))
		for j := range d {
			d[j] = v[j] * (g[j] - dot)
		}
	})
}

// fewClasses is the largest number of columns whose exponentials are rounded (nearly) correctly and
// added one after the other, as Kaldi does it. Short sums cost little, and this way they have
// Kaldi's bits.
const fewClasses = 128

// LogSoftmax sets each row of dst to x - log(Σ exp(x)), where x is the row of src minus its largest
// element.
func LogSoftmax(dst, src Matrix) {
	MapRows(dst, src, func(d, s []float32) {
		if len(s) <= fewClasses {
			logSoftmaxRow(d, s, expSumInOrder)
		} else {
			logSoftmaxRow(d, s, expSum)
		}
	})
}

// LogSoftmaxRows is LogSoftmax for rows of n elements, one behind the other. If one of them is NaN, all of its row become that.
func LogSoftmaxRows(dst, src []float32, n int) {
	dst = head(dst, len(src))
	if len(src) == 0 {
		return
	}
	if n <= 0 || len(src)%n != 0 {
		panic(errShape)
	}
	for ; len(src) > 0; dst, src = dst[n:], src[n:] {
		logSoftmaxRow(dst[:n], src[:n], expSum)
	}
}

// logSoftmaxRow computes a row. Neither of the two numbers that are added at the end is above 0, so no digits are lost.
func logSoftmaxRow(d, s []float32, sum func(x []float32, shift float32) float64) {
	m := maxVec(s)
	log := elementary.Log(sum(s, m)) // before d, which may be s
	addNumber(d, s, -m)
	addNumber(d, d, -float32(log))
}

// expSumInOrder returns the sum of exp(x-shift) in single precision.
func expSumInOrder(x []float32, shift float32) float64 {
	sum := float32(0)
	for _, v := range x {
		sum += roundedExp(v - shift)
	}
	return float64(sum)
}

// roundedExp returns e**x rounded to single precision.
func roundedExp(x float32) float32 { return float32(elementary.Exp(float64(x))) }

// LogSoftmaxDeriv sets dx to dy - exp(y)·Σdy row by row, where y is the logarithm of the softmax.
func LogSoftmaxDeriv(dx, y, dy Matrix) {
	mapRows2(dx, y, dy, func(d, v, g []float32) {
		if len(g) > fewClasses {
			logSoftmaxDeriv(d, v, g, Sum(g))
			return
		}
		sum := 0.0
		for _, x := range g {
			sum += float64(x)
		}
		v, g = head(v, len(d)), head(g, len(d))
		for j := range d {
			d[j] = g[j] - float32(roundedExp(v[j])*float32(sum))
		}
	})
}
