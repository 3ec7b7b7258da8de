package kernel

import (
	"math"
	"math/bits"

	"github.com/nnopt/nnopt/internal/hugepages"
	"gonum.org/v1/gonum/blas/blas32"
)

// Matrix is a view of float32 elements in row-major order: element (i, j) is Data[i*Stride+j].
type Matrix = blas32.General

const (
	errShape = "kernel: shapes do not fit"
	errIndex = "kernel: row index out of range"
)

// New returns a zeroed rows×cols matrix without a gap between its rows.
func New(rows, cols int) Matrix {
	if rows < 0 || cols < 0 || !reaches(rows, cols, math.MaxInt) {
		panic(errShape)
	}
	return Matrix{Rows: rows, Cols: cols, Stride: cols, Data: make([]float32, rows*cols)}
}

// NewFloats returns n zeros for values that a computation reads again and again, such as parameters
// or the memory of a program: on huge pages.
func NewFloats(n int) []float32 { return hugepages.Make[float32](n) }

// Row returns row i of m.
func Row(m Matrix, i int) []float32 {
	o := i * m.Stride
	return m.Data[:len(m.Data):len(m.Data)][o : o+m.Cols : o+m.Cols]
}

// View returns the rows×cols rectangle of m that begins at (row, col).
func View(m Matrix, row, rows, col, cols int) Matrix {
	if row < 0 || rows < 0 || col < 0 || cols < 0 || row > m.Rows || rows > m.Rows-row || col > m.Cols || cols > m.Cols-col {
		panic(errShape)
	}
	v := Matrix{Rows: rows, Cols: cols, Stride: m.Stride}
	if rows > 0 && cols > 0 {
		checkData(&m)
		first := row*m.Stride + col
		v.Data = m.Data[first : first+(rows-1)*m.Stride+cols]
	}
	return v
}

// Rows returns rows [first, first+n) of m.
func Rows(m Matrix, first, n int) Matrix { return View(m, first, n, 0, m.Cols) }

// Cols returns columns [first, first+n) of m.
func Cols(m Matrix, first, n int) Matrix { return View(m, 0, m.Rows, first, n) }

// EveryNth returns n rows of m, from row first on and step rows apart, as a matrix with step times
// the stride of m. A single row may have a step of 0.
func EveryNth(m Matrix, first, n, step int) Matrix {
	if n == 0 {
		return Matrix{Cols: m.Cols, Stride: max(m.Stride, m.Cols)}
	}
	if n == 1 && step >= 0 {
		step = 1
	}
	checkData(&m)
	if first < 0 || first >= m.Rows || n < 0 || step < 1 || !reaches(n-1, step, m.Rows-1-first) {
		panic(errShape)
	}
	last := first + (n-1)*step
	v := Matrix{Rows: n, Cols: m.Cols, Stride: m.Stride * step}
	if m.Cols > 0 {
		v.Data = m.Data[first*m.Stride : last*m.Stride+m.Cols]
	}
	return v
}

// Reshape returns the elements of m as a matrix with the given number of columns. It reports false
// if that is not a view of m: if there are gaps between rows, or the number of elements is not a
// multiple of cols.
func Reshape(m Matrix, cols int) (Matrix, bool) {
	checkData(&m)
	if cols == m.Cols {
		return m, true
	}
	n := m.Rows * m.Cols
	if cols <= 0 || n%cols != 0 || m.Rows > 1 && m.Stride != m.Cols {
		return Matrix{}, false
	}
	v := Matrix{Rows: n / cols, Cols: cols, Stride: cols}
	if n > 0 {
		v.Data = m.Data[:n]
	}
	return v, true
}

// Same reports whether a and b are the same view.
func Same(a, b Matrix) bool {
	return a.Rows == b.Rows && a.Cols == b.Cols && (a.Rows <= 1 || a.Stride == b.Stride) &&
		len(a.Data) > 0 && len(b.Data) > 0 && &a.Data[0] == &b.Data[0]
}

// Clone returns a copy of m without a gap between its rows.
func Clone(m Matrix) Matrix {
	c := New(m.Rows, m.Cols)
	Copy(c, m)
	return c
}

// Valid reports whether m has all elements of its shape. Rows may overlap.
func Valid(m Matrix) bool { return holds(len(m.Data), m.Rows, m.Cols, m.Stride) }

// sameShape panics unless a and b have the same shape, and all elements of it.
func sameShape(a, b *Matrix) {
	if a.Rows != b.Rows || a.Cols != b.Cols {
		panic(errShape)
	}
	checkData(a)
	checkData(b)
}

// onto is sameShape for a matrix that is written to and one that is read.
func onto(dst, src *Matrix) {
	if dst.Rows != src.Rows || dst.Cols != src.Cols {
		panic(errShape)
	}
	checkApart(dst)
	checkData(src)
}

// checkData panics unless m has all elements of its shape. Rows may overlap. Assembly relies on it.
// Offsets in m that are computed after it don't overflow.
func checkData(m *Matrix) {
	if !Valid(*m) {
		panic(errShape)
	}
}

// checkApart is checkData for a matrix that is written to, or packed: its rows must not overlap.
func checkApart(m *Matrix) {
	if m.Rows > 1 && m.Stride < m.Cols || !Valid(*m) {
		panic(errShape)
	}
}

// holds reports whether n elements are enough for a matrix.
func holds(n, rows, cols, stride int) bool {
	return rows|cols|stride >= 0 && (rows == 0 || cols == 0 || reaches(rows-1, stride, n-cols))
}

// reaches reports whether n steps of the given size go no farther than most. Neither n nor step is
// negative.
func reaches(n, step, most int) bool {
	high, low := bits.Mul64(uint64(n), uint64(step))
	return most >= 0 && high == 0 && low <= uint64(most)
}

// head returns the first n elements of v. It panics if v is shorter, even if its capacity is not.
func head[T any](v []T, n int) []T {
	if n > len(v) {
		panic(errShape)
	}
	return v[:n]
}
