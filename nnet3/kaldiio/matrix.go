package kaldiio

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// Matrix is a dense row-major matrix; row i is Data[i*Stride : i*Stride+Cols]. It has the fields of gonum's
// blas32.General in their order, so one converts into the other.
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
	Data       []float64
	Stride     int
}

// Row returns row i, which shares memory with the matrix.
func (m DoubleMatrix) Row(i int) []float64 {
	return m.Data[i*m.Stride : i*m.Stride+m.Cols : i*m.Stride+m.Cols]
}

type real interface{ float32 | float64 }

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
		return textVector[T](r)
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

// isNot complains if the next token begins another kind of object than the one that is wanted. Its second letter says of which kind.
func (r *Reader) isNot(other string, letter byte, want string) error {
	w, err := r.word("a "+want, nil)
	if err == nil && len(w) >= 2 && len(w) <= 3 && strings.IndexByte("FDC", w[0]) >= 0 && w[1] == letter {
		return r.errorAt(r.Offset(), errOtherKind, fmt.Sprintf("a %s (%s) where a %s is wanted", other, w, want))
	}
	return nil // what else is wrong shows when the token is read
}

// Matrix reads a matrix of either precision, compressed or not. Its stride is its number of columns.
func (r *Reader) Matrix() (Matrix, error) {
	rows, cols, data, err := readMatrix[float32](r)
	return Matrix{Rows: rows, Cols: cols, Data: data, Stride: cols}, err
}

// DoubleMatrix reads a matrix of either precision, compressed or not.
func (r *Reader) DoubleMatrix() (DoubleMatrix, error) {
	rows, cols, data, err := readMatrix[float64](r)
	return DoubleMatrix{Rows: rows, Cols: cols, Data: data, Stride: cols}, err
}

func readMatrix[T real](r *Reader) (rows, cols int, data []T, err error) {
	if !r.binary {
		return textMatrix[T](r)
	}
	if err := r.isNot("vector", 'V', "matrix"); err != nil {
		return 0, 0, nil, err
	}
	t, err := r.ExpectOneOf("FM", "DM", "CM", "CM2", "CM3")
	if err != nil {
		return 0, 0, nil, err
	}
	if t[0] == 'C' {
		return readCompressed[T](r, t)
	}
	if rows, err = r.dimension("the number of rows of a matrix"); err != nil {
		return 0, 0, nil, err
	}
	if cols, err = r.dimension("the number of columns of a matrix"); err != nil {
		return 0, 0, nil, err
	}
	n, err := r.area(rows, cols)
	if err != nil {
		return 0, 0, nil, err
	}
	if data, err = readReals[T](r, n, t == "DM", fmt.Sprintf("a matrix of %d by %d", rows, cols)); err != nil {
		return 0, 0, nil, err
	}
	return rows, cols, data, nil
}

// maxElements bounds the elements of a vector or matrix. In single precision they take 4 GiB.
const maxElements = 1 << 30

// mayHave complains about n elements in one object, if those are too many.
func (r *Reader) mayHave(n int) error {
	if n > maxElements {
		return r.Errorf("there are more than %d elements, the limit for one object", maxElements)
	}
	return nil
}

// dimension reads a size, which can't be negative.
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

// firstChunk is how many elements are allocated at once for data whose presence is not certain.
const firstChunk = 1 << 16

// readReals reads n numbers that follow each other without size bytes. Memory grows with what has arrived, unless the
// length of the source is known.
func readReals[T real](r *Reader, n int, double bool, what string) ([]T, error) {
	wire := 4
	if double {
		wire = 8
	}
	return readArray(r, n, wire, what, func(dst []T) error { return readInto(r, dst, double, what) })
}

// readArray allocates n elements and has read fill them, in growing pieces where it is not known that the source holds
// them all. An element takes wire bytes in the source.
func readArray[T any](r *Reader, n, wire int, what string, read func([]T) error) ([]T, error) {
	left := r.remaining()
	if left >= 0 {
		if int64(n) > left/int64(wire) {
			e := r.truncated(what).(*Error)
			e.Offset = r.Offset()
			e.What = fmt.Sprintf("%s: %d bytes wanted, %d left", e.What, int64(n)*int64(wire), left)
			return nil, e
		}
		v := make([]T, n)
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

// readInto reads len(dst) numbers.
func readInto[T real](r *Reader, dst []T, double bool, what string) error {
	if double == (bitsOf[T]() == 64) {
		if b := bytesOf(dst); b != nil {
			return r.readFull(b, what)
		}
	}
	return readConverted(r, dst, double, what)
}

// readConverted reads numbers of another precision or byte order than the machine's.
func readConverted[T real](r *Reader, dst []T, double bool, what string) error {
	wire := 4
	if double {
		wire = 8
	}
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

// IntVector reads a vector of 32-bit integers. An empty vector is not nil.
func (r *Reader) IntVector() ([]int32, error) {
	const what = "a vector of integers"
	if !r.binary {
		if err := r.open(what); err != nil {
			return nil, err
		}
		v := []int32{}
		for {
			if done, err := r.closes(what); done || err != nil {
				return v, err
			}
			x, err := r.Int32()
			if err != nil {
				return nil, err
			}
			if v = append(v, x); len(v) > maxElements {
				return nil, r.mayHave(len(v))
			}
		}
	}
	n, err := r.count(4, what)
	if err != nil {
		return nil, err
	}
	return readArray(r, n, 4, what, func(dst []int32) error { return r.readInts(dst, what) })
}

// IntPairVector reads a vector of pairs of 32-bit integers. An empty vector is not nil.
func (r *Reader) IntPairVector() ([][2]int32, error) {
	const what = "a vector of pairs of integers"
	if r.binary {
		n, err := r.count(4, what)
		if err != nil {
			return nil, err
		}
		return readArray(r, n, 8, what, func(dst [][2]int32) error {
			for i := range dst {
				if err := r.readInts(dst[i][:], what); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := r.open(what); err != nil {
		return nil, err
	}
	v := [][2]int32{}
	for {
		if done, err := r.closes(what); done || err != nil {
			return v, err
		}
		var p [2]int32
		var err error
		if p[0], err = r.Int32(); err != nil {
			return nil, err
		}
		if c, err := r.Byte(); err != nil || c != ',' {
			return nil, r.Errorf("expected a comma between the numbers of a pair")
		}
		if p[1], err = r.Int32(); err != nil {
			return nil, err
		}
		if v = append(v, p); len(v) > maxElements {
			return nil, r.mayHave(len(v))
		}
	}
}

// closes consumes the closing bracket of a text vector if it comes next.
func (r *Reader) closes(what string) (bool, error) {
	if !r.skipSpace() {
		return false, r.truncated(what)
	}
	if r.buf[r.pos] != ']' {
		return false, nil
	}
	r.pos++
	r.closeLine()
	return true, nil
}

// count reads the header of a binary vector of integers: the size of an element and their number.
func (r *Reader) count(size byte, what string) (int, error) {
	if !r.fill(5) {
		return 0, r.truncated(what)
	}
	if c := r.buf[r.pos]; c != size {
		return 0, r.Errorf("reading %s: element size is %d, want %d", what, int8(c), size)
	}
	n := int32(binary.LittleEndian.Uint32(r.buf[r.pos+1:]))
	if n < 0 {
		return 0, r.Errorf("reading %s: their number is %d", what, n)
	}
	r.pos += 5
	return int(n), r.mayHave(int(n))
}

// readInts reads raw 32-bit integers.
func (r *Reader) readInts(dst []int32, what string) error {
	var buf [4096]byte
	for len(dst) > 0 {
		k := min(len(dst), len(buf)/4)
		if err := r.readFull(buf[:k*4], what); err != nil {
			return err
		}
		for i := range k {
			dst[i] = int32(binary.LittleEndian.Uint32(buf[i*4:]))
		}
		dst = dst[k:]
	}
	return nil
}
