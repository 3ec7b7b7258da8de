package kernel

import (
	"encoding/binary"
	"unsafe"
)

// SetCodes makes q rows of integers that are given: bytes, cols for each row, one row after the other,
// which are signed or not, and of which zero means 0. It reuses the memory of q.
func (q *QuantizedRows) SetCodes(codes []byte, signed bool, zero int, rows, cols int) {
	q.setCodes(currentQuantSet(), codes, signed, zero, rows, cols)
}

func (q *QuantizedRows) setCodes(set quantSet, codes []byte, signed bool, zero int, rows, cols int) {
	if rows < 0 || cols < 0 || cols > 0 && len(codes)/cols < rows {
		panic(errShape)
	}
	q.place(set, Int8, cols, rows, cols)
	// What is signed is 128 more as a code, and so is its zero.
	flip := byte(0)
	if signed {
		flip, zero = 1<<7, zero+1<<7
	}
	for i := range rows {
		q.params[2*i], q.params[2*i+1] = 1, -float32(zero)
	}
	words := set.words(Int8)
	if set == quantDot && !words {
		flip ^= 1 << 7
	}
	for i := range rows {
		row := codes[i*cols:][:cols]
		if words {
			to := unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(q.codes[i*q.stride:]))), cols)
			for l, c := range row {
				to[l] = uint16(c ^ flip)
			}
			continue
		}
		to := q.codes[i*q.stride:][:cols]
		if flip == 0 {
			copy(to, row)
			continue
		}
		for len(row) >= 8 {
			binary.LittleEndian.PutUint64(to, binary.LittleEndian.Uint64(row)^eachByte*uint64(flip))
			to, row = to[8:], row[8:]
		}
		for l, c := range row {
			to[l] = c ^ flip
		}
	}
}

// IntegerWeights is the factor W of products of integers, packed. Any number of goroutines may multiply
// with it.
type IntegerWeights struct {
	n, k  int
	parts []integerPart
}

// An integerPart is some terms of W, such that sums are exact as float32s. Elements of a column whose zero
// is far from the middle of the bytes, such as 0 or 146, are no bytes, but they are once they are shifted:
//
//	Σ x·w = Σ x·(w - shift) + shift·Σ x
type integerPart struct {
	codes *QuantizedWeights
	shift *QuantizedWeights // of no terms: its sums of columns are the shifts; nil if all are 0
}

// NewIntegerWeights packs W, n rows of k elements, one row after the other. An element is between -255
// and 255, and those of a row are at most 255 apart.
func NewIntegerWeights(w []int16, n, k int) *IntegerWeights {
	return newIntegerWeights(currentQuantSet(), w, n, k)
}

func newIntegerWeights(set quantSet, w []int16, n, k int) *IntegerWeights {
	if n < 0 || k < 0 || n > 0 && len(w)/n < k {
		panic(errShape)
	}
	q := &IntegerWeights{n: n, k: k}
	shifts := make([]int16, n)
	for j := range shifts {
		shifts[j] = shiftOf(w[j*k:][:k])
	}
	for first := 0; first < k || first == 0 && k == 0; {
		next := k
		for j, shift := range shifts {
			next = first + exactTerms(w[j*k:][first:next], shift)
		}
		q.parts = append(q.parts, partOf(set, w, shifts, k, first, next))
		if first = next; k == 0 {
			break
		}
	}
	return q
}

// exactTerms returns the number of terms of a column, from its first one on, whose products with bytes add up to what a
// float32 has exactly.
func exactTerms(w []int16, shift int16) int {
	total := 0
	for i, v := range w {
		// Products are at most 255 times a weight. A float32 has all integers below 2²⁴.
		if total += magnitude(v-shift) + magnitude(shift); 255*total >= 1<<24 {
			return i
		}
	}
	return len(w)
}

func magnitude(v int16) int { return int(max(v, -v)) }

// shiftOf returns the number closest to 0 that elements are larger than bytes.
func shiftOf(w []int16) int16 {
	low, high := int16(0), int16(0)
	for i, v := range w {
		if i == 0 {
			low, high = v, v
		}
		low, high = min(low, v), max(high, v)
	}
	if low < -255 || high > 255 || high-low > 255 {
		panic(errShape)
	}
	return max(high-127, 0) + min(low+128, 0)
}

// partOf packs terms [first, next) of W, with scales of 1.
func partOf(set quantSet, w, shifts []int16, k, first, next int) integerPart {
	n := len(shifts)
	q := &QuantizedWeights{n: n, k: next - first, precision: Int8, set: set}
	q.place()
	q.placeBounds()
	codes := make([]int32, q.k)
	for i := range set.strips(n) {
		from, to := set.strip(n, i)
		for j := from * set.lanes(); j < min(to*set.lanes(), n); j++ {
			sum := int64(0)
			for l := range codes {
				codes[l] = int32(w[j*k+first+l] - shifts[j])
				sum += int64(codes[l])
			}
			q.setColumn(from*set.lanes(), (to-from)*set.lanes(), j, codes, 1, sum)
			q.bound(i, j, codes, sum)
		}
		q.boundStrip(i)
	}
	part := integerPart{codes: q}
	for j, shift := range shifts {
		if shift == 0 {
			continue
		}
		if part.shift == nil {
			part.shift = &QuantizedWeights{n: n, precision: Int8, set: set}
			part.shift.place()
		}
		part.shift.sum[j] = float32(shift)
	}
	return part
}

// Shape returns the number of columns of a product, and the length of the sums.
func (w *IntegerWeights) Shape() (n, k int) { return w.n, w.k }

// Exact reports whether all sums are exact as float32s.
func (w *IntegerWeights) Exact() bool { return len(w.parts) == 1 }

// MulExact sets y to ep of the product of rows from SetCodes, or of patches of them, and Wᵀ, which must be
// exact. Elements of x count from the zero of their row. It changes what x remembers of its sums, so that
// only one goroutine may multiply x at a time.
func MulExact(x *QuantizedRows, w *IntegerWeights, ep Epilogue, y Matrix) {
	if !w.Exact() || x.cols != w.k || y.Rows != x.rows || y.Cols != w.n {
		panic(errShape)
	}
	w.parts[0].multiply(x, 0, ep, y)
}

// multiply computes the product of columns of x from col on.
func (p *integerPart) multiply(x *QuantizedRows, col int, ep Epilogue, y Matrix) {
	segments := [2]QuantizedSegment{{Rows: x, Step: 1, Col: col, W: p.codes}}
	if p.shift == nil {
		MulQuantized(segments[:1], ep, y)
		return
	}
	sums := x.sumsOf(col, p.codes.k)
	if x.rows == 0 || ep.Bias != nil || ep.Accumulate {
		segments[1] = QuantizedSegment{Rows: sums, Step: 1, W: p.shift}
		MulQuantized(segments[:], ep, y)
		return
	}
	// A second term would take a quarter as long as the first one, if that is of one row, and an eighth if it is of
	// 300 rows of 384 elements (Zen 4, 2026-11-29). A kernel adds a number of a row times one of a column, and that is
	// all that the second term is. What the first one needs that for, what means 0 in x, is the same in all rows: a
	// number of a column, as a bias is. All are integers, and their sums exact in any order.
	if cap(x.added) < y.Cols {
		x.added = alignedFloats(y.Cols)
	}
	ep.Bias = x.added[:y.Cols]
	ScaleVec(ep.Bias, x.params[1], p.codes.sum[:y.Cols])
	x.shifted = *p.codes
	x.shifted.sum, segments[0].W = p.shift.sum, &x.shifted
	x.params, sums.params = sums.params, x.params
	MulQuantized(segments[:1], ep, y)
	x.params, sums.params = sums.params, x.params
	x.shifted = QuantizedWeights{}
}

// sumsOf returns rows without elements, whose offsets are the sums of k elements of each row of x.
func (q *QuantizedRows) sumsOf(col, k int) *QuantizedRows {
	if q.sums == nil {
		q.sums = new(QuantizedRows)
	}
	q.sums.place(q.set, q.precision, 0, q.rows, 0)
	size := q.set.codeSize(q.precision)
	flip := uint64(0)
	if q.set == quantDot {
		flip = eachByte * 1 << 7
	}
	for i := range q.rows {
		sum := q.set.byteSum(q.codes[i*q.stride+col*size:][:k*size], flip)
		q.sums.params[2*i], q.sums.params[2*i+1] = 1, float32(sum)+float32(float32(k)*q.params[2*i+1])
	}
	return q.sums
}

// eachByte times a byte has it eight times.
const eachByte = 0x0101010101010101

// byteSum returns the sum of bytes of which some bits are inverted. The sum of words that are as small as
// bytes is the same.
func (s quantSet) byteSum(b []byte, flip uint64) int {
	const low = 0x00ff00ff00ff00ff
	sum := uint64(0)
	if blocks := len(b) / 32; s != quantGo && !s.arm() && blocks > 0 {
		first := 0
		quantByteSumAVX2(&b[0], blocks, &first)
		sum, b = uint64(first), b[blocks*32:]
	}
	for len(b) >= 8 {
		// Four sums of words, of at most 128 pairs of bytes.
		words := uint64(0)
		for range min(len(b)/8, 128) {
			v := binary.LittleEndian.Uint64(b) ^ flip
			words += v&low + v>>8&low
			b = b[8:]
		}
		sum += words&0xffff + words>>16&0xffff + words>>32&0xffff + words>>48
	}
	for _, c := range b {
		sum += uint64(c ^ byte(flip))
	}
	return int(sum)
}

// MulIntegers sets y, a row after the other, to the product of rows from SetCodes, or of patches of
// them, and Wᵀ. Elements of x count from the zero of their row. Sums that need more than 32
// bits wrap around. A scratch matrix has the shape of the product. Threads may be nil. Only one goroutine
// may multiply x at a time.
func MulIntegers(y []int32, x *QuantizedRows, w *IntegerWeights, scratch Matrix, threads *Threads) {
	if x.cols != w.k || scratch.Rows != x.rows || scratch.Cols != w.n || scratch.Stride != w.n || len(y) < x.rows*w.n {
		panic(errShape)
	}
	if x.rows == 0 || w.n == 0 {
		return
	}
	y = y[:x.rows*w.n]
	col := 0
	for i, part := range w.parts {
		part.multiply(x, col, Epilogue{Threads: threads}, scratch)
		sums := scratch.Data[:len(y)]
		if i == 0 {
			for l, v := range sums {
				y[l] = int32(v)
			}
		} else {
			for l, v := range sums {
				y[l] += int32(v)
			}
		}
		col += part.codes.k
	}
}
