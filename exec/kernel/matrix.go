package kernel

import "gonum.org/v1/gonum/blas/blas32"

// Matrix is a view of float32 elements in row-major order: element (i, j) is Data[i*Stride+j].
type Matrix = blas32.General

const (
	errShape = "kernel: shapes do not fit"
	errIndex = "kernel: row index out of range"
)

// New returns a zeroed rows×cols matrix without a gap between its rows.
func New(rows, cols int) Matrix {
	return Matrix{Rows: rows, Cols: cols, Stride: cols, Data: make([]float32, rows*cols)}
}

// NewFloats returns n zeros for values that a computation goes through again and again, such as parameters or the memory of a
// program. On Linux they stand on huge pages where there are any to be had: with pages of 4 kB, looking up addresses costs
// products with large factors 5 to 15 % of their speed.
func NewFloats(n int) []float32 {
	v := make([]float32, n)
	preferHugePages(v)
	return v
}

// Row returns row i of m.
func Row(m Matrix, i int) []float32 {
	o := i * m.Stride
	return m.Data[o : o+m.Cols : o+m.Cols]
}

// View returns the rectangle of m that begins at (row, col).
func View(m Matrix, row, rows, col, cols int) Matrix {
	if row < 0 || rows < 0 || col < 0 || cols < 0 || row+rows > m.Rows || col+cols > m.Cols {
		panic(errShape)
	}
	v := Matrix{Rows: rows, Cols: cols, Stride: m.Stride}
	if rows > 0 && cols > 0 {
		first := row*m.Stride + col
		v.Data = m.Data[first : first+(rows-1)*m.Stride+cols]
	}
	return v
}

// Rows returns rows [first, first+n) of m.
func Rows(m Matrix, first, n int) Matrix { return View(m, first, n, 0, m.Cols) }

// Cols returns columns [first, first+n) of m.
func Cols(m Matrix, first, n int) Matrix { return View(m, 0, m.Rows, first, n) }

// EveryNth returns the n rows of m that begin at row first and lie step rows apart, as a matrix whose stride is step
// times that of m. A step of 0 is allowed for a single row.
func EveryNth(m Matrix, first, n, step int) Matrix {
	if n == 0 {
		return Matrix{Cols: m.Cols, Stride: max(m.Stride, m.Cols)}
	}
	last := first + (n-1)*step
	if first < 0 || step < 0 || step == 0 && n > 1 || last >= m.Rows {
		panic(errShape)
	}
	if step == 0 {
		step = 1
	}
	v := Matrix{Rows: n, Cols: m.Cols, Stride: m.Stride * step}
	if m.Cols > 0 {
		v.Data = m.Data[first*m.Stride : last*m.Stride+m.Cols]
	}
	return v
}

// Reshape returns the elements of m, whose rows must follow each other without a gap unless there is at most one, as a
// matrix with the given number of columns. It reports false where that is not a view of m.
func Reshape(m Matrix, cols int) (Matrix, bool) {
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

// Same reports whether a and b are one and the same view.
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

func sameShape(a, b Matrix) {
	if a.Rows != b.Rows || a.Cols != b.Cols {
		panic(errShape)
	}
}
