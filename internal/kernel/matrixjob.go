package kernel

import (
	"time"

	"github.com/nnopt/nnopt/internal/divide"
)

// matrixJob is a function of matrices with its arguments, of which rows or columns are divided.
// Threads have one, so that no call allocates.
type matrixJob struct {
	run      func(j *matrixJob, first, n int) // computes n rows or columns
	n, parts int
	unit     int // parts begin at multiples of it
	args
}

// args are the arguments of the functions, each of which uses some.
type args struct {
	dst, x, y Matrix
	alpha     float32
	u, v, w   []float32
	sums      []float64
	indexes   []int32
	ranges    [][2]int32
	f         func(dst, src []float32)
	f2        func(dst, x, y []float32)
	add       func(a *args, sumsq []float64, first, n int)
	signs     *Signs
	first     int
	packed    *Weights
	window    int
	rows      *QuantizedRows
}

// Part computes a part of the rows or columns.
func (j *matrixJob) Part(i int) {
	first, next := span(i, j.parts, j.n, j.unit)
	j.run(j, first, next-first)
}

// span returns the beginning and the end of part i of n things that are divided at multiples of a
// unit.
func span(i, parts, n, unit int) (first, next int) {
	units := (n + unit - 1) / unit
	return i * units / parts * unit, min((i+1)*units/parts*unit, n)
}

// What an element takes, in picoseconds: moved, computed by a function of the maps, and its
// exponential in a softmax.
const (
	moved    = 200
	computed = 400
	softened = 1000
)

// divide computes n rows or columns by run, unit by unit, where an element of m takes some
// picoseconds. It reports false, and does nothing, if that is not worth dividing.
func (t *Threads) divide(m *Matrix, n, unit int, each time.Duration, run func(j *matrixJob, first, n int), a args) bool {
	if t == nil {
		return false
	}
	parts := min(t.Parts(time.Duration(m.Rows)*time.Duration(m.Cols)*each/1000), (n+unit-1)/unit)
	if parts <= 1 {
		return false
	}
	// Short pieces of rows take longer, as processors don't foresee them.
	if n == m.Cols && unit > 1 {
		parts = min(parts, t.size)
	}
	t.share(parts, n, unit, run, a)
	return true
}

// share computes n rows or columns in some parts.
func (t *Threads) share(parts, n, unit int, run func(j *matrixJob, first, n int), a args) {
	t.matrix = matrixJob{run: run, n: n, parts: parts, unit: unit, args: a}
	t.Do(parts, &t.matrix)
	t.matrix.args = args{} // keep nothing alive
}

// minPiece is the least number of columns that a thread sums. Of narrower ones, two threads read the same
// cache lines, and took 1 to 1.2 times as long as one; with 128 each they took 0.7 times as long, and with
// 384 0.6 (Sapphire Rapids, 2026-11-26).
const minPiece = 128

// divideSums is divide for the columns of m, which are summed. Columns that don't fill a block have an
// order of their own, so that only whole blocks are divided.
func (t *Threads) divideSums(m *Matrix, each time.Duration, run func(j *matrixJob, first, n int), a args) bool {
	if t == nil || m.Cols%block != 0 {
		return false
	}
	piece := minPiece
	if divide.Always.Load() {
		piece = block
	}
	parts := min(t.Parts(time.Duration(m.Rows)*time.Duration(m.Cols)*each/1000), t.size, m.Cols/piece)
	if parts <= 1 {
		return false
	}
	t.share(parts, m.Cols, block, run, a)
	return true
}

// divideRows is divide for the rows of m.
func (t *Threads) divideRows(m *Matrix, each time.Duration, run func(j *matrixJob, first, n int), a args) bool {
	return t.divide(m, m.Rows, 1, each, run, a)
}

// The methods below compute what the functions of the same names do, exported or not.

// Fill is the function Fill.
func (t *Threads) Fill(m Matrix, v float32) {
	checkApart(&m)
	if !t.divideRows(&m, moved, func(j *matrixJob, i, n int) { Fill(Rows(j.dst, i, n), j.alpha) }, args{dst: m, alpha: v}) {
		Fill(m, v)
	}
}

// Scale is the function Scale.
func (t *Threads) Scale(m Matrix, alpha float32) {
	checkApart(&m)
	if alpha == 1 || !t.divideRows(&m, moved, func(j *matrixJob, i, n int) { Scale(Rows(j.dst, i, n), j.alpha) }, args{dst: m, alpha: alpha}) {
		Scale(m, alpha)
	}
}

// Copy is the function Copy.
func (t *Threads) Copy(dst, src Matrix) { t.CopyScaled(dst, 1, src) }

// CopyScaled is the function CopyScaled.
func (t *Threads) CopyScaled(dst Matrix, alpha float32, src Matrix) {
	onto(&dst, &src)
	if !t.divideRows(&dst, moved, func(j *matrixJob, i, n int) { CopyScaled(Rows(j.dst, i, n), j.alpha, Rows(j.x, i, n)) }, args{dst: dst, alpha: alpha, x: src}) {
		CopyScaled(dst, alpha, src)
	}
}

// Add is the function Add.
func (t *Threads) Add(dst Matrix, alpha float32, src Matrix) {
	onto(&dst, &src)
	if !t.divideRows(&dst, moved, func(j *matrixJob, i, n int) { Add(Rows(j.dst, i, n), j.alpha, Rows(j.x, i, n)) }, args{dst: dst, alpha: alpha, x: src}) {
		Add(dst, alpha, src)
	}
}

// MapRows is the function MapRows. A closure is allocated for each call.
func (t *Threads) MapRows(dst, src Matrix, f func(dst, src []float32)) {
	onto(&dst, &src)
	if !t.divideRows(&dst, computed, func(j *matrixJob, i, n int) { MapRows(Rows(j.dst, i, n), Rows(j.x, i, n), j.f) }, args{dst: dst, x: src, f: f}) {
		MapRows(dst, src, f)
	}
}

// MapRows2 sets each row of dst to f of the rows of x and y.
// A closure is allocated for each call.
func (t *Threads) MapRows2(dst, x, y Matrix, f func(dst, x, y []float32)) {
	onto(&dst, &x)
	onto(&dst, &y)
	part := func(j *matrixJob, i, n int) { mapRows2(Rows(j.dst, i, n), Rows(j.x, i, n), Rows(j.y, i, n), j.f2) }
	if !t.divideRows(&dst, computed, part, args{dst: dst, x: x, y: y, f2: f}) {
		mapRows2(dst, x, y, f)
	}
}

// CopyRows sets row i of dst to row indexes[i] of src, or to zero where the index is -1.
func (t *Threads) CopyRows(dst, src Matrix, indexes []int32) {
	checkRows(dst, src, len(indexes))
	part := func(j *matrixJob, i, n int) { copyRows(Rows(j.dst, i, n), j.x, j.indexes[i:i+n]) }
	if !t.divideRows(&dst, moved, part, args{dst: dst, x: src, indexes: indexes}) {
		copyRows(dst, src, indexes)
	}
}

// AddRows adds alpha times row indexes[i] of src to row i of dst, and nothing where the index is
// -1.
func (t *Threads) AddRows(dst Matrix, alpha float32, src Matrix, indexes []int32) {
	checkRows(dst, src, len(indexes))
	part := func(j *matrixJob, i, n int) { addRows(Rows(j.dst, i, n), j.alpha, j.x, j.indexes[i:i+n]) }
	if !t.divideRows(&dst, moved, part, args{dst: dst, alpha: alpha, x: src, indexes: indexes}) {
		addRows(dst, alpha, src, indexes)
	}
}

// ScaleCols sets dst to src with column j multiplied by scale[j].
func (t *Threads) ScaleCols(dst, src Matrix, scale []float32) {
	onto(&dst, &src)
	part := func(j *matrixJob, i, n int) { scaleCols(Rows(j.dst, i, n), Rows(j.x, i, n), j.u) }
	if !t.divideRows(&dst, moved, part, args{dst: dst, x: src, u: scale}) {
		scaleCols(dst, src, scale)
	}
}

// ScaleOffset sets dst to src with column j multiplied by scale[j] and offset[j] added.
func (t *Threads) ScaleOffset(dst, src Matrix, scale, offset []float32) {
	onto(&dst, &src)
	part := func(j *matrixJob, i, n int) { scaleOffset(Rows(j.dst, i, n), Rows(j.x, i, n), j.u, j.v) }
	if !t.divideRows(&dst, moved, part, args{dst: dst, x: src, u: scale, v: offset}) {
		scaleOffset(dst, src, scale, offset)
	}
}

// Standardize sets y to (x - mean)·scale. mean and scale have an element per column.
func (t *Threads) Standardize(y, x Matrix, mean, scale []float32) {
	onto(&y, &x)
	part := func(j *matrixJob, i, n int) { standardizeRows(Rows(j.dst, i, n), Rows(j.x, i, n), j.u, j.v) }
	if !t.divideRows(&y, moved, part, args{dst: y, x: x, u: mean, v: scale}) {
		standardizeRows(y, x, mean, scale)
	}
}

// StandardizeDeriv sets dx to scale·(dy - mean) + slope·y. mean, scale and slope have an element
// per column. The last step is fused.
func (t *Threads) StandardizeDeriv(dx, dy, y Matrix, mean, scale, slope []float32) {
	onto(&dx, &dy)
	onto(&dx, &y)
	part := func(j *matrixJob, i, n int) {
		standardizeDeriv(Rows(j.dst, i, n), Rows(j.x, i, n), Rows(j.y, i, n), j.u, j.v, j.w)
	}
	if !t.divideRows(&dx, computed, part, args{dst: dx, x: dy, y: y, u: mean, v: scale, w: slope}) {
		standardizeDeriv(dx, dy, y, mean, scale, slope)
	}
}

// LogSoftmax is the function LogSoftmax.
func (t *Threads) LogSoftmax(dst, src Matrix) {
	onto(&dst, &src)
	part := func(j *matrixJob, i, n int) { LogSoftmax(Rows(j.dst, i, n), Rows(j.x, i, n)) }
	if !t.divideRows(&dst, softened, part, args{dst: dst, x: src}) {
		LogSoftmax(dst, src)
	}
}

// LogSoftmaxDeriv is the function LogSoftmaxDeriv.
func (t *Threads) LogSoftmaxDeriv(dx, y, dy Matrix) {
	onto(&dx, &y)
	onto(&dx, &dy)
	part := func(j *matrixJob, i, n int) { LogSoftmaxDeriv(Rows(j.dst, i, n), Rows(j.x, i, n), Rows(j.y, i, n)) }
	if !t.divideRows(&dx, softened, part, args{dst: dx, x: y, y: dy}) {
		LogSoftmaxDeriv(dx, y, dy)
	}
}

// SoftmaxDeriv is the function SoftmaxDeriv.
func (t *Threads) SoftmaxDeriv(dx, y, dy Matrix) {
	onto(&dx, &y)
	onto(&dx, &dy)
	part := func(j *matrixJob, i, n int) { SoftmaxDeriv(Rows(j.dst, i, n), Rows(j.x, i, n), Rows(j.y, i, n)) }
	if !t.divideRows(&dx, computed, part, args{dst: dx, x: y, y: dy}) {
		SoftmaxDeriv(dx, y, dy)
	}
}

// ReLUSigns sets dst to max(src, 0), and signs to the signs of the given number of rows, from row
// first on. NaN stays NaN, and is not positive.
func (t *Threads) ReLUSigns(dst, src Matrix, signs *Signs, first, rows int) {
	onto(&dst, &src)
	signs.resizeFor(&dst, first, rows)
	part := func(j *matrixJob, i, n int) { reluSignsRows(j.dst, j.x, j.signs, j.first, i, n) }
	if !t.divideRows(&dst, moved, part, args{dst: dst, x: src, signs: signs, first: first}) {
		reluSignsRows(dst, src, signs, first, 0, dst.Rows)
	}
}

// ownSums are the sums of some columns in memory of the thread that adds to them. A processor foresees
// that a row of sums goes on where a part of them ends, and takes the next ones away from the one that
// adds to them: threads that shared one row took 1.8 times as long as one (Sapphire Rapids, 2026-11-26).
type ownSums struct {
	ws           *workspace
	u, toU       []float32
	sums, toSums []float64
}

// ownSums copies u and sums for n columns from column col on, if there are any.
func (j *matrixJob) ownSums(col, n int) ownSums {
	own := ownSums{ws: getWorkspace()}
	if j.u != nil {
		own.toU = j.u[col : col+n]
		own.u = own.ws.floats(n + foreseen)[:n]
		copy(own.u, own.toU)
	}
	if j.sums != nil {
		own.toSums = j.sums[col : col+n]
		own.sums = own.ws.doubles(n + foreseen)[:n]
		copy(own.sums, own.toSums)
	}
	return own
}

// foreseen is how many elements behind a row a processor may fetch.
const foreseen = 256

// store copies the sums back.
func (own *ownSums) store() {
	copy(own.toU, own.u)
	copy(own.toSums, own.sums)
	own.ws.put()
}

// ReLUSignsDeriv sets dx to dy where signs are positive, and to 0 elsewhere. It adds the squares of
// dy to sumsq, as AddColSquares does, unless sumsq is nil.
func (t *Threads) ReLUSignsDeriv(dx, dy Matrix, signs *Signs, sumsq []float64) {
	checkSigns(dx, dy, signs, sumsq)
	t.eachSquares(sumsq, &dy, args{dst: dx, signs: signs}, func(a *args, sumsq []float64, first, n int) {
		reluSignsDerivRows(a.dst, a.x, a.signs, sumsq, first, n)
	})
}

// AddColSquares adds the column sums of the squares of m to sumsq, which has an element per column. Each
// squareRows rows have sums of their own, which are added in their order.
func (t *Threads) AddColSquares(sumsq []float64, m Matrix) {
	if len(sumsq) != m.Cols {
		panic(errShape)
	}
	checkData(&m)
	t.eachSquares(sumsq, &m, args{}, func(a *args, sumsq []float64, first, n int) {
		for i := range n {
			addSquares(sumsq, Row(a.x, first+i))
		}
	})
}

// AddColSums is the function AddColSums.
func (t *Threads) AddColSums(dst []float32, alpha float32, m Matrix) {
	part := func(j *matrixJob, col, n int) {
		own := j.ownSums(col, n)
		defer own.store()
		AddColSums(own.u, j.alpha, Cols(j.x, col, n))
	}
	if len(dst) != m.Cols || !t.divideSums(&m, moved, part, args{u: dst, alpha: alpha, x: m}) {
		AddColSums(dst, alpha, m)
	}
}

// AddColMoments adds alpha times the column sums of x to sum, and the column sums of x∘y to
// product. The products of two rows, the first and the second, the third and the fourth, are added
// in single precision with one rounding, and those sums in double precision. x and y may be the
// same.
func (t *Threads) AddColMoments(sum []float32, alpha float32, product []float64, x, y Matrix) {
	sameShape(&x, &y)
	part := func(j *matrixJob, col, n int) {
		own := j.ownSums(col, n)
		defer own.store()
		addColMoments(own.u, j.alpha, own.sums, Cols(j.x, col, n), Cols(j.y, col, n))
	}
	if len(sum) != x.Cols || len(product) != x.Cols || !t.divideSums(&x, computed, part, args{u: sum, alpha: alpha, sums: product, x: x, y: y}) {
		addColMoments(sum, alpha, product, x, y)
	}
}

// AddRowRanges is AddRowRanges for threads, which may be nil.
func (t *Threads) AddRowRanges(dst Matrix, alpha float32, src Matrix, ranges [][2]int32) {
	checkRows(dst, src, len(ranges))
	part := func(j *matrixJob, i, n int) { AddRowRanges(Rows(j.dst, i, n), j.alpha, j.x, j.ranges[i:i+n]) }
	if !t.divideRows(&dst, computed, part, args{dst: dst, alpha: alpha, x: src, ranges: ranges}) {
		AddRowRanges(dst, alpha, src, ranges)
	}
}
