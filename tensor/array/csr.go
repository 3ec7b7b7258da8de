package array

import "fmt"

// csr is a sparse matrix in compressed rows: row i has the elements
// values[pointers[i]:pointers[i+1]], in the columns columns[pointers[i]:pointers[i+1]].
type csr struct {
	values            *Array
	columns, pointers []int64
}

// newCSR returns a sparse matrix of float32s or float64s in compressed rows: row i has the elements
// values[pointers[i]:pointers[i+1]], in the columns columns[pointers[i]:pointers[i+1]]. It takes
// over the slices. The matrix can be multiplied by MulCSR, copied, converted, compared and printed;
// no other function takes it.
func newCSR(rows, cols int, values *Array, columns, pointers []int64) (*Array, error) {
	n := values.Len()
	if values.dtype < Float32 || values.NDim() != 1 || rows < 0 || cols < 0 || len(columns) != n || len(pointers) != rows+1 {
		return nil, fmt.Errorf("array: %d values, %d columns and %d pointers for a sparse %dx%d matrix", n, len(columns), len(pointers), rows, cols)
	}
	for i, p := range pointers {
		if i == 0 && p != 0 || i > 0 && p < pointers[i-1] || i == rows && p != int64(n) {
			return nil, fmt.Errorf("array: pointer %d of a sparse matrix is %d", i, p)
		}
	}
	for i, c := range columns {
		if c < 0 || c >= int64(cols) {
			return nil, fmt.Errorf("array: %w: column %d at place %d of a sparse %dx%d matrix", ErrIndex, c, i, rows, cols)
		}
	}
	a := new(Array)
	a.layOut(values.dtype, []int{rows, cols})
	a.data = &csr{values.Clone(), columns, pointers}
	return a, nil
}

// ToCSR returns the sparse matrix of the nonzero elements of a matrix.
func ToCSR(a *Array) *Array {
	var values []float64
	var columns []int64
	pointers := []int64{0}
	for i := range a.shape[0] {
		for j := range a.shape[1] {
			if v := a.Float(i*a.shape[1] + j); v != 0 {
				values, columns = append(values, v), append(columns, int64(j))
			}
		}
		pointers = append(pointers, int64(len(values)))
	}
	s, err := newCSR(a.shape[0], a.shape[1], Of(values, len(values)).Cast(max(a.dtype.Float(), Float32)), columns, pointers)
	if err != nil {
		panic(err) // columns and pointers are valid
	}
	return s
}

// at returns an element, which may be stored as several terms.
func (s *csr) at(row int, col int64) float64 {
	v := 0.0
	for k := s.pointers[row]; k < s.pointers[row+1]; k++ {
		if s.columns[k] == col {
			v += s.values.Float(int(k))
		}
	}
	return v
}

// IsCSR reports whether the array is a sparse matrix.
func (a *Array) IsCSR() bool {
	_, ok := a.data.(*csr)
	return ok
}

// dense returns a sparse matrix as an ordinary array.
func (a *Array) dense() *Array {
	s := a.data.(*csr)
	d := New(a.dtype, a.Shape()...)
	for i := range a.shape[0] {
		for k := s.pointers[i]; k < s.pointers[i+1]; k++ {
			at := i*a.shape[1] + int(s.columns[k])
			d.SetFloat(at, d.Float(at)+s.values.Float(int(k)))
		}
	}
	return d
}

// MulCSR adds alpha·s·b to c, for a sparse matrix s and matrices b and c, all floats of one type.
func MulCSR(alpha float64, s, b, c *Array) error {
	if s.shape[1] != b.shape[0] || s.shape[0] != c.shape[0] || b.shape[1] != c.shape[1] {
		return fmt.Errorf("array: product of shapes %v and %v into %v", s.Shape(), b.Shape(), c.Shape())
	}
	if s.dtype == Float32 {
		mulCSR(float32(alpha), s, b, c)
	} else {
		mulCSR(alpha, s, b, c)
	}
	return nil
}

func mulCSR[T float](alpha T, s, b, c *Array) {
	m := s.data.(*csr)
	values, db, dc := Slice[T](m.values), dataOf[T](b), dataOf[T](c)
	for i := range s.shape[0] {
		for k := m.pointers[i]; k < m.pointers[i+1]; k++ {
			v := alpha * values[k]
			to, from := c.offset+i*c.strides[0], b.offset+int(m.columns[k])*b.strides[0]
			for range c.shape[1] {
				dc[to] += T(v * db[from])
				to += c.strides[1]
				from += b.strides[1]
			}
		}
	}
}
