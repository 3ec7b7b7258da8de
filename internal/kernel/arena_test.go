package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// pageSize is a multiple of the size of a page on all systems.
const pageSize = 1 << 16

// An arena makes arguments whose memory is next to unmapped pages, and notices writes outside of
// arguments for writing.
type arena struct {
	slots [][]byte
	r     *rand.Rand
	front bool // the memory begins after a guard page, rather than ending before one
	gap   int  // between the rows of matrices
	given []intact

	hostile int // the number of the argument that is wrong, or -1
	fault   fault
	fatal   bool // a function can't continue with such a fault
}

// A fault is something wrong with an argument.
type fault uint8

const (
	tooShort fault = iota // by an element, with sufficient capacity
	noData
	negativeStride
	wideStride // its product with the number of rows overflows to a small number
	narrowStride
	negativeRows
	negativeCols
	manyRows
	manyCols
	faults
)

func (f fault) String() string {
	return [...]string{"too short", "no data", "negative stride", "wide stride", "narrow stride", "negative rows", "negative columns", "many rows", "many columns"}[f]
}

// intact reports whether only what may be written was written.
type intact interface{ intact() error }

func newArena(t testing.TB) *arena {
	a := &arena{}
	for range 8 {
		a.slots = append(a.slots, guardedBytes(t, 16*pageSize))
	}
	return a
}

// reset takes back all memory.
func (a *arena) reset(seed uint64, front bool, gap int) {
	a.r, a.front, a.gap = rand.New(rand.NewPCG(seed, 1)), front, gap
	a.given, a.hostile, a.fatal = a.given[:0], -1, false
}

// intact returns an error if the memory outside of arguments for writing has changed.
func (a *arena) intact() error {
	for i, b := range a.given {
		if err := b.intact(); err != nil {
			return fmt.Errorf("argument %d: %w", i, err)
		}
	}
	return nil
}

// wrong reports whether the next argument gets the fault.
func (a *arena) wrong(f fault) bool { return a.hostile == len(a.given)-1 && a.fault == f }

// buffer is the memory of an argument, and zone elements before or after it.
type buffer[T float32 | float64] struct {
	all, old []T
	may      []bool // be written
}

const zone = 512

// canary is the number outside of arguments.
func canary[T float32 | float64]() T {
	var v T
	b := unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v))
	for i := range b {
		b[i] = 0xff // NaN
	}
	return v
}

// take returns n elements.
func take[T float32 | float64](a *arena, n int) (*buffer[T], []T) {
	slot := a.slots[len(a.given)]
	all := unsafe.Slice((*T)(unsafe.Pointer(&slot[0])), len(slot)/int(unsafe.Sizeof(T(0))))
	b := &buffer[T]{may: make([]bool, zone+n)}
	var v []T
	if a.front {
		b.all = all[: n+zone : n+zone]
		v = b.all[:n]
	} else {
		b.all = all[len(all)-n-zone:]
		v = b.all[zone:]
	}
	for i := range b.all {
		b.all[i] = canary[T]()
	}
	a.given = append(a.given, b)
	return b, v
}

// at returns the index of element i of the argument.
func (b *buffer[T]) at(a *arena, i int) int {
	if a.front {
		return i
	}
	return zone + i
}

func (b *buffer[T]) intact() error {
	for i, v := range b.all {
		if o := b.old[i]; !b.may[i] && string(bytesOf(&v)) != string(bytesOf(&o)) {
			return fmt.Errorf("element %d of %d was written: %v, before %v", i, len(b.all), v, o)
		}
	}
	return nil
}

func bytesOf[T float32 | float64](v *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}

// vector returns a vector. A needed one can't be shorter.
func vector[T float32 | float64](a *arena, n int, written, needed bool) []T {
	b, v := take[T](a, n)
	for i := range v {
		v[i] = T(a.r.NormFloat64())
		b.may[b.at(a, i)] = written
	}
	b.old = append(b.old, b.all...)
	a.fatal = a.fatal || needed && (a.wrong(tooShort) || a.wrong(noData))
	switch {
	case n > 0 && a.wrong(tooShort):
		b.may[b.at(a, n-1)] = false
		return v[:n-1]
	case a.wrong(noData):
		return nil
	}
	return v
}

func (a *arena) in(n int) []float32    { return vector[float32](a, n, false, false) }
func (a *arena) out(n int) []float32   { return vector[float32](a, n, true, true) }
func (a *arena) din(n int) []float64   { return vector[float64](a, n, false, true) }
func (a *arena) dout(n int) []float64  { return vector[float64](a, n, true, false) }
func (a *arena) dsums(n int) []float64 { return vector[float64](a, n, true, true) }

// matrix returns a matrix with gaps.
func (a *arena) matrix(rows, cols int, written bool) Matrix {
	m := Matrix{Rows: rows, Cols: cols, Stride: cols + a.gap}
	m.Data = rowsOf[float32](a, rows, cols, m.Stride, written)
	a.fatal = a.fatal || a.hostile == len(a.given)-1 && (a.fault != narrowStride || written)
	a.shape(&m.Rows, &m.Cols, &m.Stride)
	return m
}

// rowsOf returns the elements of a matrix.
func rowsOf[T float32 | float64](a *arena, rows, cols, stride int, written bool) []T {
	b, v := take[T](a, max(0, (rows-1)*stride+cols))
	for i := range rows {
		for j := range cols {
			v[i*stride+j] = T(a.r.NormFloat64())
			b.may[b.at(a, i*stride+j)] = written
		}
	}
	b.old = append(b.old, b.all...)
	switch {
	case len(v) > 0 && a.wrong(tooShort):
		b.may[b.at(a, len(v)-1)] = false
		return v[:len(v)-1]
	case a.wrong(noData):
		return nil
	}
	return v
}

// shape applies a fault to a shape.
func (a *arena) shape(rows, cols, stride *int) {
	switch {
	case a.wrong(negativeStride):
		*stride = -*stride
	case a.wrong(wideStride):
		*stride = 1<<62 + 8
	case a.wrong(narrowStride):
		*stride = *cols - 1
	case a.wrong(negativeRows):
		*rows = -*rows
	case a.wrong(negativeCols):
		*cols = -*cols
	case a.wrong(manyRows):
		*rows += 1 << 62
	case a.wrong(manyCols):
		*cols += 1 << 62
	}
}

func (a *arena) from(rows, cols int) Matrix { return a.matrix(rows, cols, false) }
func (a *arena) to(rows, cols int) Matrix   { return a.matrix(rows, cols, true) }

// factor returns a matrix of float64s, with steps of rows and columns.
func (a *arena) factor(rows, cols int) Strided {
	m := Strided{Rows: rows, Cols: cols, Row: cols + a.gap, Col: 1}
	m.Data = rowsOf[float64](a, rows, cols, m.Row, false)
	a.fatal = a.fatal || a.hostile == len(a.given)-1 && a.fault != narrowStride
	a.shape(&m.Rows, &m.Cols, &m.Row)
	if !a.front && rows > 0 && a.hostile < 0 { // upside down
		m.First, m.Row = (rows-1)*m.Row, -m.Row
	}
	return m
}

// sums returns the destination of a product of float64s, and the distance of its rows.
func (a *arena) sums(rows, cols int) (c []float64, stride int) {
	stride = cols + a.gap
	c = rowsOf[float64](a, rows, cols, stride, true)
	a.fatal = a.fatal || a.hostile == len(a.given)-1 && a.fault < negativeRows
	a.shape(&rows, &cols, &stride)
	return c, stride
}

// transposed returns the transpose of m.
func (m Strided) transposed() Strided {
	m.Rows, m.Cols, m.Row, m.Col = m.Cols, m.Rows, m.Col, m.Row
	return m
}
