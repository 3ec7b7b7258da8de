package kernel

import (
	"encoding/binary"
	"unsafe"
)

// SetCodes makes q rows of integers that are given: bytes, cols for each row, one row after the other,
// which are signed or not, and of which zero means 0. It reuses the memory of q.
func (q *QuantizedRows) SetCodes(p Precision, codes []byte, signed bool, zero int, rows, cols int) {
	q.setCodes(currentQuantSet(), p, codes, signed, zero, rows, cols)
}

func (q *QuantizedRows) setCodes(set quantSet, p Precision, codes []byte, signed bool, zero int, rows, cols int) {
	if p != Int8 && p != Int16 || rows < 0 || cols < 0 || cols > 0 && len(codes)/cols < rows {
		panic(errShape)
	}
	q.place(set, p, cols, rows, cols)
	q.clearGaps()
	// What is signed is 128 more as a code, and so is its zero.
	flip := byte(0)
	if signed {
		flip, zero = 1<<7, zero+1<<7
	}
	for i := range rows {
		q.params[2*i], q.params[2*i+1] = 1, -float32(zero)
	}
	words := set.words(p)
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
		const each = 0x0101010101010101
		for len(row) >= 8 {
			binary.LittleEndian.PutUint64(to, binary.LittleEndian.Uint64(row)^each*uint64(flip))
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
	n, k      int
	precision Precision
	parts     []*QuantizedWeights // of the terms, such that sums of each are exact as float32s
}

// NewIntegerWeights packs W, n rows of k elements between -255 and 255, one row after the other.
func NewIntegerWeights(w []int16, n, k int) *IntegerWeights {
	return newIntegerWeights(currentQuantSet(), w, n, k)
}

func newIntegerWeights(set quantSet, w []int16, n, k int) *IntegerWeights {
	if n < 0 || k < 0 || n > 0 && len(w)/n < k {
		panic(errShape)
	}
	p := Int8
	for _, v := range w[:n*k] {
		if v < -255 || v > 255 {
			panic(errShape)
		}
		if v < -128 || v > 127 {
			p = Int16
		}
	}
	q := &IntegerWeights{n: n, k: k, precision: p}
	totals := make([]int, n)
	for first := 0; first < k || first == 0 && k == 0; {
		next := first
		clear(totals)
		// Products are at most 255 times a weight. A float32 has all integers below 2²⁴.
		for ; next < k; next++ {
			fits := true
			for j := range n {
				v := int(w[j*k+next])
				totals[j] += max(v, -v)
				fits = fits && 255*totals[j] < 1<<24
			}
			if !fits {
				break
			}
		}
		q.parts = append(q.parts, weightsOf(set, p, w, n, k, first, next))
		if first = next; k == 0 {
			break
		}
	}
	return q
}

// weightsOf packs terms [first, next) of W, with scales of 1.
func weightsOf(set quantSet, p Precision, w []int16, n, k, first, next int) *QuantizedWeights {
	q := &QuantizedWeights{n: n, k: next - first, precision: p, set: set}
	q.place()
	codes := make([]int32, q.k)
	for i := range set.strips(n) {
		from, to := set.strip(n, i)
		for j := from * set.lanes(); j < min(to*set.lanes(), n); j++ {
			sum := int64(0)
			for l := range codes {
				codes[l] = int32(w[j*k+first+l])
				sum += int64(codes[l])
			}
			q.setColumn(from*set.lanes(), (to-from)*set.lanes(), j, codes, 1, sum)
		}
	}
	return q
}

// Precision returns the precision that rows need.
func (w *IntegerWeights) Precision() Precision { return w.precision }

// Shape returns the number of columns of a product, and the length of the sums.
func (w *IntegerWeights) Shape() (n, k int) { return w.n, w.k }

// MulIntegers sets y, a row after the other, to the product of rows from SetCodes, or of patches of
// them, and Wᵀ. Elements of x count from the zero of their row. Sums that need more than 32
// bits wrap around. A scratch matrix has the shape of the product. Threads may be nil.
func MulIntegers(y []int32, x *QuantizedRows, w *IntegerWeights, scratch Matrix, threads *Threads) {
	if x.cols != w.k || x.precision != w.precision || scratch.Rows != x.rows || scratch.Cols != w.n || scratch.Stride != w.n || len(y) < x.rows*w.n {
		panic(errShape)
	}
	if x.rows == 0 || w.n == 0 {
		return
	}
	y = y[:x.rows*w.n]
	col := 0
	for i, part := range w.parts {
		MulQuantized([]QuantizedSegment{{Rows: x, Step: 1, Col: col, W: part}}, Epilogue{Threads: threads}, scratch)
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
		col += part.k
	}
}
