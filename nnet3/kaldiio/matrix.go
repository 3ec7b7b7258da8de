package kaldiio

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// Matrix is a dense row-major matrix. Row i is Data[i*Stride : i*Stride+Cols].
type Matrix struct {
	Rows, Cols int
	Stride     int
	Data       []float32
}

// Row returns row i, which shares memory with the matrix.
func (m Matrix) Row(i int) []float32 {
	return m.Data[i*m.Stride : i*m.Stride+m.Cols : i*m.Stride+m.Cols]
}

// DoubleMatrix is a Matrix of float64.
type DoubleMatrix struct {
	Rows, Cols int
	Stride     int
	Data       []float64
}

type real interface{ float32 | float64 }

// dense is a Matrix or a DoubleMatrix.
type dense[T real] struct {
	Rows, Cols int
	Stride     int
	Data       []T
}

func bitsOf[T real]() int {
	if _, ok := any(T(0)).(float32); ok {
		return 32
	}
	return 64
}

// Vector reads a vector of either precision. An empty vector is not nil.
func (r *Reader) Vector() ([]float32, error) { return readVector[float32](r) }

// DoubleVector reads a vector of either precision. An empty vector is not nil.
func (r *Reader) DoubleVector() ([]float64, error) { return readVector[float64](r) }

func readVector[T real](r *Reader) ([]T, error) {
	if !r.binary {
		bits := bitsOf[T]()
		return textList(r, "a vector", func() (T, error) {
			x, err := r.textFloat(bits)
			return T(x), err
		})
	}
	if err := r.isNot("matrix", 'M', "vector"); err != nil {
		return nil, err
	}
	t, err := r.ExpectOneOf("FV", "DV")
	if err != nil {
		return nil, err
	}
	n, err := r.dimension("the dimension of a vector")
	if err == nil {
		err = r.mayHave(n)
	}
	if err != nil {
		return nil, err
	}
	return readReals[T](r, n, t == "DV", "a vector")
}

// isNot returns an error if the next token begins an object of another kind, which the second
// letter of the token tells.
func (r *Reader) isNot(other string, letter byte, want string) error {
	w, err := r.word("a "+want, nil)
	if err == nil && len(w) >= 2 && len(w) <= 3 && strings.IndexByte("FDC", w[0]) >= 0 && w[1] == letter {
		return r.errorAt(r.Offset(), errOtherKind, fmt.Sprintf("a %s (%s) where a %s is wanted", other, w, want))
	}
	return nil // other faults show when the token is read
}

// Matrix reads a matrix of either precision, compressed or not, without gaps between rows.
func (r *Reader) Matrix() (Matrix, error) {
	m, err := readMatrix[float32](r)
	return Matrix(m), err
}

// DoubleMatrix reads a matrix of either precision, compressed or not.
func (r *Reader) DoubleMatrix() (DoubleMatrix, error) {
	m, err := readMatrix[float64](r)
	return DoubleMatrix(m), err
}

func readMatrix[T real](r *Reader) (m dense[T], err error) {
	if !r.binary {
		return textMatrix[T](r)
	}
	h, err := r.matrixHeader()
	if err != nil {
		return m, err
	}
	if h.token[0] == 'C' {
		return readCompressed[T](r, h)
	}
	m = dense[T]{Rows: h.rows, Cols: h.cols, Stride: h.cols}
	m.Data, err = readReals[T](r, h.rows*h.cols, h.token == "DM", h.what())
	return m, err
}

// A matrixHeader precedes the elements of a matrix in binary.
type matrixHeader struct {
	token      string // FM and DM have a precision; CM, CM2 and CM3 are compressed
	rows, cols int
	min, scale float32 // of a compressed matrix: the least value and the range
}

// matrixHeader reads a header and checks it.
func (r *Reader) matrixHeader() (h matrixHeader, err error) {
	if err := r.isNot("vector", 'V', "matrix"); err != nil {
		return h, err
	}
	if h.token, err = r.ExpectOneOf("FM", "DM", "CM", "CM2", "CM3"); err != nil {
		return h, err
	}
	if h.token[0] == 'C' {
		return h, r.compressedHeader(&h)
	}
	if h.rows, err = r.dimension("the number of rows of a matrix"); err != nil {
		return h, err
	}
	if h.cols, err = r.dimension("the number of columns of a matrix"); err != nil {
		return h, err
	}
	_, err = r.area(h.rows, h.cols)
	return h, err
}

// what describes the matrix in errors.
func (h *matrixHeader) what() string {
	if h.token[0] == 'C' {
		return fmt.Sprintf("a compressed matrix of %d by %d", h.rows, h.cols)
	}
	return fmt.Sprintf("a matrix of %d by %d", h.rows, h.cols)
}

// bytes returns the size of the elements.
func (h *matrixHeader) bytes() int64 {
	n := int64(h.rows) * int64(h.cols)
	switch h.token {
	case "DM":
		return 8 * n
	case "FM":
		return 4 * n
	case "CM2":
		return 2 * n
	case "CM":
		return n + percentileBytes*int64(h.cols)
	}
	return n
}

// maxElements bounds the elements of a vector or matrix. In single precision they take 4 GiB.
const maxElements = 1 << 30

// mayHave returns an error if n elements are too many for one object.
func (r *Reader) mayHave(n int) error {
	if n > maxElements {
		return r.Errorf("there are more than %d elements, the limit for one object", maxElements)
	}
	return nil
}

// dimension reads a size and refuses a negative one.
func (r *Reader) dimension(what string) (int, error) {
	n, err := r.Int()
	if err == nil && n < 0 {
		return 0, r.Errorf("%s is %d", what, n)
	}
	return n, err
}

// area checks the dimensions of a matrix and returns the number of its elements.
func (r *Reader) area(rows, cols int) (int, error) {
	if (rows == 0) != (cols == 0) {
		return 0, r.Errorf("a matrix of %d by %d: either both dimensions are zero or none", rows, cols)
	}
	if int64(rows)*int64(cols) > maxElements {
		return 0, r.Errorf("a matrix of %d by %d is too large: the limit is %d elements", rows, cols, maxElements)
	}
	return rows * cols, nil
}

// firstChunk is how many elements are allocated at first for data that may not be there.
const firstChunk = 1 << 16

// wireSize returns the bytes of a number in binary.
func wireSize(double bool) int {
	if double {
		return 8
	}
	return 4
}

// readReals reads n numbers without size bytes. Unless the length of the source is known, memory
// grows with what has arrived.
func readReals[T real](r *Reader, n int, double bool, what string) ([]T, error) {
	return readArray(r, n, wireSize(double), what, func(dst []T) error { return readInto(r, dst, double, what) })
}

// readArray allocates n elements, of wire bytes each in the source, and has read fill them. If the
// source may not hold them all it works in growing pieces.
func readArray[T any](r *Reader, n, wire int, what string, read func([]T) error) ([]T, error) {
	left := r.remaining()
	if left >= 0 {
		if int64(n) > left/int64(wire) {
			return nil, r.shortOf(what, int64(n)*int64(wire), left)
		}
		v := spare[T](r, n)
		if v == nil {
			v = make([]T, n)
		}
		return v, read(v)
	}
	if v := spare[T](r, n); v != nil {
		return v, read(v)
	}
	v := make([]T, min(n, firstChunk))
	for done := 0; ; {
		if err := read(v[done:]); err != nil {
			return nil, err
		}
		done = len(v)
		if done == n {
			return v, nil
		}
		next := make([]T, min(n, 2*done))
		copy(next, v)
		v = next
	}
}

// Spare gives the reader memory that is no longer used, for the next large matrix.
func (r *Reader) Spare(v []float32) {
	if cap(v) > cap(r.spare) {
		r.spare = v
	}
}

// spare returns n elements of the memory that the reader was given, or nil.
func spare[T any](r *Reader, n int) []T {
	v, ok := any(r.spare).([]T)
	if !ok || n < firstChunk || n > cap(v) {
		return nil
	}
	r.spare = nil
	return v[:n]
}

// shortOf returns the error for a source with too few bytes left.
func (r *Reader) shortOf(what string, wanted, left int64) error {
	e := r.truncated(what)
	e.offset = r.Offset()
	e.what = fmt.Sprintf("%s: %d bytes wanted, %d left", e.what, wanted, left)
	return e
}

// readInto reads len(dst) numbers.
func readInto[T real](r *Reader, dst []T, double bool, what string) error {
	if double == (bitsOf[T]() == 64) {
		if b := bytesOf(dst); b != nil {
			return r.readFull(b, what)
		}
	}
	return readConverted(r, dst, double, what)
}

// readConverted reads numbers whose precision or byte order is not the machine's.
func readConverted[T real](r *Reader, dst []T, double bool, what string) error {
	wire := wireSize(double)
	var buf [4096]byte
	for len(dst) > 0 {
		k := min(len(dst), len(buf)/wire)
		if err := r.readFull(buf[:k*wire], what); err != nil {
			return err
		}
		for i := range k {
			if double {
				dst[i] = T(math.Float64frombits(binary.LittleEndian.Uint64(buf[i*8:])))
			} else {
				dst[i] = T(math.Float32frombits(binary.LittleEndian.Uint32(buf[i*4:])))
			}
		}
		dst = dst[k:]
	}
	return nil
}
