package kernel

import (
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"
)

// Precision says how many bits the factors of a quantized product have.
type Precision uint8

const (
	// Float32 is the precision of a product that is not quantized.
	Float32 Precision = iota
	// Int8 gives an element of x 256 levels between the least and the greatest of its row, and an
	// element of W at most 127 levels on either side of zero.
	Int8
	// Int16 gives an element of x 8192 levels, and one of W as many as the sums allow, up to 32767
	// on either side.
	Int16
)

var precisionNames = [...]string{"float32", "int8", "int16"}

// String returns float32, int8 or int16.
func (p Precision) String() string {
	if int(p) >= len(precisionNames) {
		return fmt.Sprintf("Precision(%d)", uint8(p))
	}
	return precisionNames[p]
}

// Levels returns the number of steps between the least and the greatest element of a row.
func (p Precision) Levels() int {
	if p == Int8 {
		return 1<<8 - 1
	}
	return 1<<13 - 1
}

// middle is what a level is less than its code. The codes of words are around zero, so that their
// sums are small.
func (p Precision) middle() int {
	if p == Int8 {
		return 0
	}
	return 1 << 12
}

// QuantizedRows holds the rows of a matrix as integers. An element is code·scale + offset, where
// the scale and the offset are the row's, or those of a group of its columns. A row depends on
// nothing but its own elements. The zero value is empty.
type QuantizedRows struct {
	rows, cols int
	group      int // columns that share a scale
	precision  Precision
	set        quantSet
	stride     int       // of codes, in bytes
	memory     []float32 // of the codes and the parameters
	codes      []byte    // with codeSlack bytes behind the last row
	params     []float32 // a scale and an offset for each row and group
	marked     int
	count      atomic.Int64 // of marked rows while they are being found

	low, perUnit float32          // for encodeStep
	step         uint8            // of SetTogether
	zero         uint16           // the code of zero, after SetPatches
	sums         *QuantizedRows   // see sumsOf
	shifted      QuantizedWeights // see multiply, whose sums these are
	added        []float32
}

// codeSlack is how far kernels read beyond the last code of a row. Weights are zero there.
const codeSlack = 64

// quantizing is the argument of the functions that quantize rows.
type quantizing struct {
	x              *float32
	xRow           uintptr // distances are in bytes
	rows, k        int
	codes          *byte
	codesRow       uintptr
	params         *float32
	levels, middle float32
	magic          float32 // adding it rounds to an integer
	base           uint32  // the bits of the sum for a code of zero
	flip           uint32  // bits of bytes that are inverted, to make them signed
	wide           float32 // times a range that is too wide, it is infinite
	marked         int     // is increased for every row that can't be quantized
	low, perUnit   float32 // given, for encodeStep
	step           uint8
}

// What is done for a row.
const (
	allSteps   = iota
	searchStep // only finds the least and the greatest element, which are its parameters; the least is NaN if an element is not finite
	encodeStep // only stores codes, with parameters that are given
)

// Set quantizes the rows of m. It reuses the memory of q.
//
// A row with NaN or infinities is marked: its products are NaN before the epilogue. So is a row
// whose range is at least 2⁶³, because products with the largest weights could overflow before they
// add up to less, and a row so close to constant that the inverse of its range is infinite.
func (q *QuantizedRows) Set(p Precision, m Matrix) { q.SetGroups(p, m.Cols, m) }

// SetGroups is Set with a scale and an offset for each group of consecutive columns of a row;
// the last group may be narrower. A row with a marked group is marked.
func (q *QuantizedRows) SetGroups(p Precision, group int, m Matrix) {
	(*Threads)(nil).SetGroups(q, p, group, m)
}

// SetGroups is the method QuantizedRows.SetGroups.
func (t *Threads) SetGroups(q *QuantizedRows, p Precision, group int, m Matrix) {
	q.quantize(currentQuantSet(), t, p, group, m)
}

func (q *QuantizedRows) quantize(set quantSet, threads *Threads, p Precision, group int, m Matrix) {
	if p != Int8 && p != Int16 || group < 1 && m.Cols > 0 {
		panic(errShape)
	}
	checkData(&m)
	q.place(set, p, group, m.Rows, m.Cols)
	if m.Rows == 0 || m.Cols == 0 {
		clear(q.params)
		return
	}
	part := func(j *matrixJob, i, n int) { j.rows.fill(Rows(j.x, i, n), i) }
	if !threads.divideRows(&m, moved, part, args{x: m, rows: q}) {
		q.fill(m, 0)
	}
	// Kernels count groups, and a row may have several that are marked.
	if q.marked = int(q.count.Swap(0)); q.groups() > 1 && q.marked > 0 {
		q.marked = 0
		for i := range q.rows {
			if q.IsMarked(i) {
				q.marked++
			}
		}
	}
}

// quantizing returns what kernels need to know, apart from rows.
func (q *QuantizedRows) quantizing() quantizing {
	// A float32 of that size has no fraction: adding it rounds to an integer, halves to even, and
	// leaves that integer in the last bits. The half above 2^23 keeps negative integers in the same
	// binade.
	const round = 1<<23 + 1<<22 // its last bit counts ones
	t := quantizing{
		levels: float32(q.precision.Levels()), middle: float32(q.precision.middle()),
		magic: float32(round - q.precision.middle()), base: math.Float32bits(round), wide: 1 << 65,
		low: q.low, perUnit: q.perUnit, step: q.step,
	}
	// The dot products of arm64 take signed bytes. Inverting the highest bit subtracts 128, which
	// what sums begin with makes up for.
	if q.set == quantDot {
		t.flip = 1 << 7
	}
	return t
}

// fill quantizes all groups of some rows, from row first on. Groups without gaps between them are
// like rows.
func (q *QuantizedRows) fill(m Matrix, first int) {
	t := q.quantizing()
	size, groups := q.set.codeSize(q.precision), q.groups()
	codes, params := q.codes[first*q.stride:], q.params[2*first*groups:]
	defer func() { q.count.Add(int64(t.marked)) }()
	if groups == 1 {
		t.x, t.xRow, t.rows, t.k = &m.Data[0], uintptr(m.Stride)*4, m.Rows, m.Cols
		t.codes, t.codesRow, t.params = &codes[0], uintptr(q.stride), &params[0]
		q.set.quantize(&t, q.set.words(q.precision))
		return
	}
	whole, rest := m.Cols/q.group, m.Cols%q.group
	t.xRow, t.codesRow = uintptr(q.group)*4, uintptr(q.group*size)
	// If all groups are as wide as others, and no row is padded, then the groups of all rows follow
	// each other like rows of a narrower matrix: one call takes them all.
	rows := 1 // at a time
	if rest == 0 && m.Stride == m.Cols && q.stride == m.Cols*size {
		rows = m.Rows
	}
	for i := 0; i < m.Rows; i += rows {
		t.x, t.rows, t.k = &m.Data[i*m.Stride], rows*whole, q.group
		t.codes, t.params = &codes[i*q.stride], &params[2*i*groups]
		q.set.quantize(&t, q.set.words(q.precision))
		if rest > 0 {
			t.x, t.rows, t.k = &m.Data[i*m.Stride+m.Cols-rest], 1, rest
			t.codes, t.params = &codes[i*q.stride+(m.Cols-rest)*size], &params[2*(i*groups+whole)]
			q.set.quantize(&t, q.set.words(q.precision))
		}
	}
}

// groups returns the number of groups of columns.
func (q *QuantizedRows) groups() int {
	if q.cols == 0 {
		return 1
	}
	return (q.cols-1)/q.group + 1
}

// codeSize returns the number of bytes of a code.
func (s quantSet) codeSize(p Precision) int {
	if s.words(p) {
		return 2
	}
	return 1
}

// place makes room for rows×cols elements.
func (q *QuantizedRows) place(set quantSet, p Precision, group, rows, cols int) {
	stride := (cols*set.codeSize(p) + codeSlack - 1) &^ (codeSlack - 1)
	q.rows, q.cols, q.group, q.precision, q.set, q.stride, q.marked = rows, cols, max(group, 1), p, set, stride, 0
	bytes := rows*stride + codeSlack
	n := bytes/4 + 2*rows*q.groups()
	if cap(q.memory) < n {
		q.memory = alignedFloats(n)
	}
	q.memory = q.memory[:n]
	q.codes = unsafe.Slice((*byte)(unsafe.Pointer(&q.memory[0])), bytes)
	q.params = q.memory[bytes/4:]
}

// Rows returns the number of rows.
func (q *QuantizedRows) Rows() int { return q.rows }

// Precision returns the precision.
func (q *QuantizedRows) Precision() Precision { return q.precision }

// Marked returns how many rows are marked.
func (q *QuantizedRows) Marked() int { return q.marked }

// IsMarked reports whether row i is marked.
func (q *QuantizedRows) IsMarked(i int) bool {
	groups := q.groups()
	for g := range groups {
		if scale := q.params[2*(i*groups+g)]; scale != scale {
			return true
		}
	}
	return false
}

// Step returns the distance of two levels in the group of a column in row i. It is NaN if the group
// is marked.
func (q *QuantizedRows) Step(i, col int) float32 { return q.params[2*(i*q.groups()+col/q.group)] }

// Group returns how many columns share a scale and an offset.
func (q *QuantizedRows) Group() int { return q.group }

// quantizeGo quantizes rows in Go.
func (q *quantizing) quantizeGo(words bool) {
	for i := range uintptr(q.rows) {
		x := unsafe.Slice(elem(q.x, i*q.xRow), q.k)
		codes := unsafe.Add(unsafe.Pointer(q.codes), i*q.codesRow)
		marked := q.marked
		low, perUnit := q.low, q.perUnit
		switch params := unsafe.Slice(elem(q.params, i*8), 2); q.step {
		case searchStep:
			var strange float32
			params[0], params[1], strange = extremes(x)
			params[0] += strange
			continue
		case allSteps:
			low, perUnit = q.parameters(x, params)
		}
		for l, v := range x {
			v = float32(float32(v-low)*perUnit) + q.magic
			code := math.Float32bits(v) - q.base
			if q.marked > marked {
				code = 0
			}
			if words {
				*(*uint16)(unsafe.Add(codes, 2*l)) = uint16(code)
			} else {
				*(*uint8)(unsafe.Add(codes, l)) = uint8(code ^ q.flip)
			}
		}
	}
}

// parameters stores the parameters of a row. It returns the least element and the number of levels
// per unit.
func (q *quantizing) parameters(x, params []float32) (low, perUnit float32) {
	low, high, strange := extremes(x)
	spread := high - low
	// A range that is too wide is infinite after the multiplication.
	strange += float32(float32(spread*q.wide) * 0)
	// A constant row has a spread of zero, all of its codes are zero, and its offset is the
	// constant.
	if spread > 0 {
		perUnit = q.levels / spread
		strange += float32(perUnit * 0)
	}
	if strange != strange {
		q.marked++
		params[0], params[1] = strange, 0
		return 0, 0
	}
	params[0] = spread / q.levels
	params[1] = float32(params[0]*q.middle) + low
	return low, perUnit
}

// extremes returns the least and the greatest element of a row, and zero if all are finite.
func extremes(x []float32) (low, high, strange float32) {
	// What is strange adds up to NaN: infinities and NaN times zero are NaN, and what is finite
	// times zero is zero. So there is one test at the end in place of one for each element.
	low, high = x[0], x[0]
	for _, v := range x {
		low, high = min(low, v), max(high, v)
		strange += float32(v * 0)
	}
	return low, high, strange
}
