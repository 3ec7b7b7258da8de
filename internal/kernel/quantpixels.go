package kernel

import (
	"math"
	"unsafe"
)

// SetTogether quantizes the rows of m with one scale and one offset for all, such that zero is a
// level: what is zero, or padded with zeros, has no error. There is a level less than [Precision.Levels]
// says. If there are NaN or infinities, or the range is too wide or too narrow, all rows are marked.
func (t *Threads) SetTogether(q *QuantizedRows, p Precision, m Matrix) {
	q.together(currentQuantSet(), t, p, m)
}

func (q *QuantizedRows) together(set quantSet, threads *Threads, p Precision, m Matrix) {
	if p != Int8 && p != Int16 {
		panic(errShape)
	}
	checkData(&m)
	q.place(set, p, m.Cols, m.Rows, m.Cols)
	if m.Rows == 0 || m.Cols == 0 {
		clear(q.params)
		return
	}
	q.each(threads, m, searchStep)
	scale, low, perUnit := q.commonParameters()
	if scale != scale {
		q.marked = m.Rows
		for i := range q.params {
			q.params[i] = scale // NaN
		}
		return
	}
	q.low, q.perUnit = low, perUnit
	q.each(threads, m, encodeStep)
	offset := float32(scale*float32(p.middle())) + low
	for i := range m.Rows {
		q.params[2*i], q.params[2*i+1] = scale, offset
	}
}

// each does a step for all rows.
func (q *QuantizedRows) each(threads *Threads, m Matrix, step uint8) {
	q.step = step
	part := func(j *matrixJob, i, n int) { j.rows.fill(Rows(j.x, i, n), i) }
	if !threads.divideRows(&m, moved, part, args{x: m, rows: q}) {
		q.fill(m, 0)
	}
	q.step = allSteps
}

// commonParameters returns the scale of all rows, the value of code 0 (of the least code, of words) and the
// number of levels per unit, given the extremes of each row. The scale is NaN if there is none.
func (q *QuantizedRows) commonParameters() (scale, low, perUnit float32) {
	least, most := float32(0), float32(0) // so that zero is between them
	for i := range q.rows {
		// The functions min and max of Go give NaN if one of the two is NaN.
		least, most = min(least, q.params[2*i]), max(most, q.params[2*i+1])
	}
	spread := most - least
	if spread == 0 {
		return 0, 0, 0
	}
	// With a level less than there are codes, zero can be moved to the next level and all still fit.
	levels := float32(q.precision.Levels() - 1)
	perUnit = levels / spread
	if !(spread < maxTotal) || perUnit > math.MaxFloat32 {
		return float32(math.NaN()), 0, 0
	}
	scale = spread / levels
	zero := float32(math.Ceil(float64(-float32(least * perUnit))))
	return scale, -float32(zero * scale), perUnit
}

// SetPatches makes q some rows of cols elements, which SetRun and SetZeros set, with the scale and the
// offset of rows that SetTogether has quantized. It reuses the memory of q.
func (q *QuantizedRows) SetPatches(from *QuantizedRows, rows, cols int) {
	if rows < 0 || cols < 0 || from == q || from.rows == 0 {
		panic(errShape)
	}
	q.place(from.set, from.precision, cols, rows, cols)
	for i := range rows {
		q.params[2*i], q.params[2*i+1] = from.params[0], from.params[1]
	}
	if from.marked > 0 {
		q.marked = rows
	}
	// Kernels invert a bit of signed bytes, and a code that is zero in every one of them has its value too.
	q.zero = from.zeroCode()
}

// zeroCode returns the code of zero, with its bytes as they are in memory.
func (q *QuantizedRows) zeroCode() uint16 {
	code := 0
	if scale, offset := q.params[0], q.params[1]; scale > 0 {
		// The offset is a multiple of the scale, up to rounding.
		code = -int(math.RoundToEven(float64(offset / scale)))
	} else {
		code = -q.precision.middle()
	}
	if q.set == quantDot && !q.set.words(q.precision) {
		code ^= 1 << 7
	}
	return uint16(code)
}

// SetRun sets n elements of a row, from column col on, to those of a row of from, from column first on. It
// must be what SetPatches was given.
func (q *QuantizedRows) SetRun(row, col int, from *QuantizedRows, line, first, n int) {
	size := q.set.codeSize(q.precision)
	to := q.codes[row*q.stride:][:q.cols*size]
	copy(to[col*size:][:n*size], from.codes[line*from.stride:][:from.cols*size][first*size:][:n*size])
}

// SetZeros sets n elements of a row, from column col on, to zero.
func (q *QuantizedRows) SetZeros(row, col, n int) {
	size := q.set.codeSize(q.precision)
	to := q.codes[row*q.stride:][:q.cols*size][col*size:][:n*size]
	if size == 1 {
		for i := range to {
			to[i] = byte(q.zero)
		}
		return
	}
	words := unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(to))), n)
	for i := range words {
		words[i] = q.zero
	}
}
