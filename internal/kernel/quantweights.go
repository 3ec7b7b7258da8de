package kernel

import (
	"math"
	"unsafe"
)

// QuantizedWeights is the factor W of quantized products, packed. Any number of goroutines may
// multiply with it.
type QuantizedWeights struct {
	n, k      int
	precision Precision
	set       quantSet
	quads     int       // steps of k, in fours
	column    int       // the bytes of a column
	memory    []float32 // of everything
	panels    []byte
	scale     []float32 // by column
	sum       []float32 // by column: the sum of its codes times its scale
	begin     []int32   // by column: what sums begin with, if the set needs it
	short     *shortBounds
}

// NewQuantizedWeights quantizes and packs w, which is W. Every column of y has a scale of its own.
// It reports false if w can't be quantized: if it has NaN, infinities, a row whose absolute values
// add up to 2⁶³ or more, one whose greatest element is so small that its scale is not a normal
// number, or one whose sums would overflow with levels fine enough for the precision, which takes
// more than 50,000 columns for Int8, and 1,300 for Int16.
func NewQuantizedWeights(p Precision, w Matrix) (*QuantizedWeights, bool) {
	return newQuantizedWeights(currentQuantSet(), p, w)
}

func newQuantizedWeights(set quantSet, p Precision, w Matrix) (*QuantizedWeights, bool) {
	if p != Int8 && p != Int16 {
		panic(errShape)
	}
	checkApart(&w)
	q := &QuantizedWeights{n: w.Rows, k: w.Cols, precision: p, set: set}
	q.place()
	codes := make([]int32, w.Cols)
	// The codes of a column depend on the column alone. Where they are stored depends on the strip.
	for i := range set.strips(w.Rows) {
		first, next := set.strip(w.Rows, i)
		for j := first * set.lanes(); j < min(next*set.lanes(), w.Rows); j++ {
			scale, sum, ok := quantizeColumn(p, codes, Row(w, j))
			if !ok {
				return nil, false
			}
			q.setColumn(first*set.lanes(), (next-first)*set.lanes(), j, codes, scale, sum)
		}
	}
	return q, true
}

// setColumn sets column j, of a strip that begins with column first, to codes that add up to sum.
func (q *QuantizedWeights) setColumn(first, width, j int, codes []int32, scale float64, sum int64) {
	q.scale[j] = float32(scale)
	q.sum[j] = float32(float64(sum) * scale)
	switch {
	// Signed bytes of x are 128 too small, in every term.
	case q.set == quantDot:
		q.begin[j] = int32(sum) << 7
	// See halved in internal/gen/quant.go: what a column contributes is subtracted once.
	case q.set.halves(q.precision):
		q.begin[j] = -halvedProducts(codes)
	}
	q.pack(first, width, j, codes)
}

// pack stores the codes of column j in its strip, which begins with column first.
func (q *QuantizedWeights) pack(first, width, j int, codes []int32) {
	if q.quads == 0 {
		return
	}
	step := q.set.columnStep(q.precision)
	at, apart := (j-first)*step, 2 // where the column begins, and how far two of its words are apart
	to := q.panels[first*q.column:]
	if !q.set.words(q.precision) || step < stepBytes {
		for l, c := range codes {
			to[at+l/step*width*step+l%step] = byte(c)
		}
		return
	}
	if q.set.arm() {
		// The first words of four columns come before the second ones.
		at, apart = at&^(4*stepBytes-1)+(j-first)%4*2, 8
	}
	for l, c := range codes {
		v := to[at+l/2*width*stepBytes+l%2*apart:]
		v[0], v[1] = byte(c), byte(c>>8)
	}
}

// halvedProducts returns the sum of the products of the codes that a kernel pairs in order to halve
// multiplications: each with the second one after it, of every four.
func halvedProducts(codes []int32) (sum int32) {
	for l := range codes {
		if l%4 < 2 && l+2 < len(codes) {
			sum += codes[l] * codes[l+2]
		}
	}
	return sum
}

// place makes room for everything.
func (q *QuantizedWeights) place() {
	perQuad := 4 * stepBytes
	if q.set.words(q.precision) || q.set.halves(q.precision) {
		perQuad /= 2
	}
	q.quads = (q.k + perQuad - 1) / perQuad
	q.column = q.quads * 4 * q.set.columnStep(q.precision)
	padded := (q.n + q.set.lanes() - 1) / q.set.lanes() * q.set.lanes()
	bytes := padded * q.column
	q.memory = alignedFloats(bytes/4 + 2*padded)
	if q.set == quantDot || q.set.halves(q.precision) {
		q.begin = make([]int32, padded)
	}
	if bytes > 0 {
		q.panels = unsafe.Slice((*byte)(unsafe.Pointer(&q.memory[0])), bytes)
	}
	q.scale, q.sum = q.memory[bytes/4:bytes/4+padded], q.memory[bytes/4+padded:]
}

// maxTotal bounds the sum of the absolute values of a column. With the range of a row at most 2⁶³,
// no product overflows.
const maxTotal = 1 << 63

// maxSum bounds the sums of integers, so that they can't overflow.
const maxSum = 1<<31 - 1

// columnScale returns the distance of the levels of a column of y: the least with which no sum can
// overflow.
func columnScale(p Precision, row []float32) (scale float64, ok bool) {
	largest, total := magnitudes(row)
	return scaleOf(p, len(row), largest, total)
}

// scaleOf is columnScale for n elements of which the greatest absolute value and the sum of all are known.
func scaleOf(p Precision, n int, largest, total float64) (scale float64, ok bool) {
	const minScale = 1.0 / (1 << 120)
	// most bounds the sum of the absolute codes of a column: with the largest code of x, or the
	// largest absolute one of words, it gives maxSum.
	levels, fewest, most := 127.0, 100.0, maxSum/255.0
	if p == Int16 {
		levels, fewest, most = 32767, 400.0, maxSum/4096.0
	}
	// A code is at most half larger than the exact quotient.
	if most -= float64(float64(n) / 2); most < 1 || !(total < maxTotal) {
		return 0, false
	}
	if largest == 0 {
		return 0, true
	}
	scale = largest / levels
	// Long columns of large elements need coarser levels, or their sums could overflow. If that
	// leaves fewer levels than fewest, the product would not be worth its error.
	if s := total / most; s > scale {
		scale = s
	}
	// Rounding the scale to a float32 may make it smaller, and so codes larger. It is increased by
	// more than that before.
	return float64(float32(scale * (1 + 1e-6))), scale >= minScale && largest/scale >= fewest
}

// magnitudes returns the greatest absolute value of a row, and the sum of all, in four parts. It compares bits,
// which have the order of absolute values, NaN above infinity: comparing floats takes twice as long.
func magnitudes(row []float32) (largest, total float64) {
	const sign = 1 << 31
	var high, high1 uint32
	var sum0, sum1, sum2, sum3 float64
	for ; len(row) >= 4; row = row[4:] {
		a, b := math.Float32bits(row[0])&^sign, math.Float32bits(row[1])&^sign
		c, d := math.Float32bits(row[2])&^sign, math.Float32bits(row[3])&^sign
		high, high1 = max(high, a, b), max(high1, c, d)
		sum0 += float64(math.Float32frombits(a))
		sum1 += float64(math.Float32frombits(b))
		sum2 += float64(math.Float32frombits(c))
		sum3 += float64(math.Float32frombits(d))
	}
	for _, v := range row {
		a := math.Float32bits(v) &^ sign
		high = max(high, a)
		sum0 += float64(math.Float32frombits(a))
	}
	return float64(math.Float32frombits(max(high, high1))), sum0 + sum1 + (sum2 + sum3)
}

// quantizeColumn sets codes to those of a row of W, which is a column of y.
func quantizeColumn(p Precision, codes []int32, row []float32) (scale float64, sum int64, ok bool) {
	if scale, ok = columnScale(p, row); !ok || scale == 0 {
		clear(codes)
		return 0, 0, ok
	}
	for l, v := range row {
		// Halves are rounded away from zero: truncation after adding a half is the same on every
		// processor. Signs are not known in advance, so there is no branch.
		x := float64(v) / scale
		c := int32(x + math.Copysign(0.5, x))
		codes[l] = c
		sum += int64(c)
	}
	return scale, sum, true
}

// QuantizationSteps returns the mean squares, over the rows of w, of the distance of the levels
// that NewQuantizedWeights uses and of the length of the row. It reports false where
// NewQuantizedWeights does.
func QuantizationSteps(p Precision, w Matrix) (step, length float64, ok bool) {
	checkApart(&w)
	for i := range w.Rows {
		scale, ok := columnScale(p, Row(w, i))
		if !ok {
			return 0, 0, false
		}
		step += float64(scale * scale)
		length += rowSquares(Row(w, i))
	}
	n := float64(max(w.Rows, 1))
	return step / n, length / n, true
}

// Quantizable reports whether NewQuantizedWeights quantizes the transpose of w: the columns of w are those
// of y. A column at the very bound of what can be quantized may be taken for one beyond it, or not.
func Quantizable(p Precision, w Matrix) bool {
	checkApart(&w)
	high, sum := make([]float32, w.Cols), make([]float64, w.Cols)
	const sign = 1 << 31
	for i := range w.Rows {
		for j, v := range Row(w, i) {
			a := math.Float32frombits(math.Float32bits(v) &^ sign)
			high[j] = max(high[j], a)
			sum[j] += float64(a)
		}
	}
	for j, largest := range high {
		if _, ok := scaleOf(p, w.Rows, float64(largest), sum[j]); !ok {
			return false
		}
	}
	return true
}

// rowSquares returns the sum of the squares of a row, in four parts.
func rowSquares(row []float32) float64 {
	var sum [4]float64
	for len(row) >= 4 {
		for i := range 4 {
			v := float64(row[i])
			sum[i] += float64(v * v)
		}
		row = row[4:]
	}
	for _, v := range row {
		sum[0] += float64(float64(v) * float64(v))
	}
	return sum[0] + sum[1] + (sum[2] + sum[3])
}

// strips returns the number of strips of n columns.
func (s quantSet) strips(n int) int {
	panels := (n + s.lanes() - 1) / s.lanes()
	return (panels + s.stripPanels() - 1) / s.stripPanels()
}

// strip returns the first panel of strip i, and of the one after it. Strips are about equally wide.
func (s quantSet) strip(n, i int) (first, next int) {
	panels, strips := (n+s.lanes()-1)/s.lanes(), s.strips(n)
	return i * panels / strips, (i + 1) * panels / strips
}

// Shape returns the number of columns of y, and the length of the sums.
func (q *QuantizedWeights) Shape() (n, k int) { return q.n, q.k }
