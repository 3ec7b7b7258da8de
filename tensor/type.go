package tensor

import (
	"fmt"
	"strings"
	"unique"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// DType is a type of elements.
type DType = array.DType

// The types of elements.
const (
	Bool    = array.Bool
	Int64   = array.Int64
	Float32 = array.Float32
	Float64 = array.Float64
)

// MaxDims is the largest number of dimensions.
const MaxDims = array.MaxDims

// Unknown is the size of a dimension that is known only when the function runs.
const Unknown = -1

// A Type is the type of a dense tensor: the type of its elements, the number of dimensions, and the size of each dimension as far as
// it is known. Types are equal with == if they are the same.
//
// A dimension that is known to have size 1 broadcasts: element-wise ops repeat it. One of unknown size does not, even where it
// turns out to have size 1; that is an error when the function runs.
type Type struct {
	// One pointer, so that a Type becomes an interface without allocation.
	h unique.Handle[spec]
}

type spec struct {
	shape [MaxDims]int32 // Unknown, or the size
	ndim  uint8
	dtype DType
	csr   bool
}

// NewType returns the type of tensors with the given sizes, each of which may be Unknown; one of more than 2³¹-1 counts as such. It panics with
// an *Error if there are too many dimensions.
func NewType(dtype DType, shape ...int) Type {
	if len(shape) > MaxDims {
		fail("type", "%d dimensions, there can be %d", len(shape), MaxDims)
	}
	s := spec{ndim: uint8(len(shape)), dtype: dtype}
	for i, n := range shape {
		s.shape[i] = staticSize(n)
	}
	return s.intern()
}

// mostSize is the largest size that a type can know.
const mostSize = 1<<31 - 1

// staticSize keeps sizes that are known and within reason.
func staticSize(n int) int32 {
	if n < 0 || n > mostSize {
		return Unknown
	}
	return int32(n)
}

func (s spec) intern() Type { return Type{unique.Make(s)} }

// ScalarType returns the type of tensors without dimensions.
func ScalarType(dtype DType) Type { return spec{dtype: dtype}.intern() }

// VectorType returns the type of vectors of unknown length.
func VectorType(dtype DType) Type { return NewType(dtype, Unknown) }

// MatrixType returns the type of matrices of unknown size.
func MatrixType(dtype DType) Type { return NewType(dtype, Unknown, Unknown) }

// CSRType returns the type of sparse matrices of floats in compressed rows, see array.NewCSR.
func CSRType(dtype DType) Type {
	return spec{dtype: dtype, ndim: 2, shape: [MaxDims]int32{Unknown, Unknown}, csr: true}.intern()
}

// DType returns the type of the elements.
func (t Type) DType() DType { return t.h.Value().dtype }

// NDim returns the number of dimensions.
func (t Type) NDim() int { return int(t.h.Value().ndim) }

// Dim returns the size of a dimension, or Unknown.
func (t Type) Dim(i int) int { return int(t.h.Value().shape[i]) }

// Shape returns the sizes of all dimensions, each of which may be Unknown.
func (t Type) Shape() []int {
	s := t.h.Value()
	shape := make([]int, s.ndim)
	for i := range shape {
		shape[i] = int(s.shape[i])
	}
	return shape
}

// IsCSR reports whether the tensors are sparse matrices.
func (t Type) IsCSR() bool { return t.h.Value().csr }

// AllOnes reports whether all dimensions are known to have size 1, as for a scalar.
func (t Type) AllOnes() bool {
	s := t.h.Value()
	for _, n := range s.shape[:s.ndim] {
		if n != 1 {
			return false
		}
	}
	return true
}

// With returns the type with another type of elements.
func (t Type) With(dtype DType) Type {
	s := t.h.Value()
	if s.dtype == dtype {
		return t
	}
	s.dtype = dtype
	return s.intern()
}

// String returns for example "float64 matrix" or "float32[2, ?]".
func (t Type) String() string {
	if t == (Type{}) {
		return "no type"
	}
	s := t.h.Value()
	if s.csr {
		return s.dtype.String() + " csr matrix"
	}
	name := ""
	switch s {
	case spec{dtype: s.dtype}:
		name = "scalar"
	case spec{dtype: s.dtype, ndim: 1, shape: [MaxDims]int32{Unknown}}:
		name = "vector"
	case spec{dtype: s.dtype, ndim: 2, shape: [MaxDims]int32{Unknown, Unknown}}:
		name = "matrix"
	case spec{dtype: s.dtype, ndim: 2, shape: [MaxDims]int32{1, Unknown}}:
		name = "row"
	case spec{dtype: s.dtype, ndim: 2, shape: [MaxDims]int32{Unknown, 1}}:
		name = "col"
	default:
		return s.dtype.String() + t.shapeText()
	}
	return s.dtype.String() + " " + name
}

// shapeText returns for example "[2, ?]".
func (t Type) shapeText() string {
	s := t.h.Value()
	parts := make([]string, s.ndim)
	for i, n := range s.shape[:s.ndim] {
		parts[i] = "?"
		if n != Unknown {
			parts[i] = fmt.Sprint(n)
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// Accepts reports whether a tensor of type u may stand for one of type t: they agree in the type of elements and in which dimensions
// broadcast, and no size contradicts the other.
func (t Type) Accepts(u fgraph.Type) bool {
	o, ok := u.(Type)
	if !ok {
		return false
	}
	if t == o {
		return true
	}
	a, b := t.h.Value(), o.h.Value()
	if a.dtype != b.dtype || a.ndim != b.ndim || a.csr != b.csr {
		return false
	}
	for i, n := range a.shape[:a.ndim] {
		m := b.shape[i]
		if (n == 1) != (m == 1) || n != m && n != Unknown && m != Unknown {
			return false
		}
	}
	return true
}

// Holds returns an error unless the array is a value of the type.
func (t Type) Holds(a *array.Array) error {
	s := t.h.Value()
	if a.DType() != s.dtype || a.NDim() != int(s.ndim) || a.IsCSR() != s.csr {
		return fmt.Errorf("%w: %v array of shape %v for %v", ErrType, a.DType(), a.Shape(), t)
	}
	for i, n := range a.Shape() {
		if want := s.shape[i]; want != Unknown && int(want) != n {
			return fmt.Errorf("%w: %v array of shape %v for %v", ErrType, a.DType(), a.Shape(), t)
		}
	}
	return nil
}

// EqualData reports whether two constants of the type are the same, bit by bit except that NaN equals NaN.
func (t Type) EqualData(a, b any) bool {
	x, ok := a.(*array.Array)
	y, ok2 := b.(*array.Array)
	return ok && ok2 && array.Equal(x, y)
}

// HashData returns a hash of a constant.
func (t Type) HashData(a any) uint64 {
	if x, ok := a.(*array.Array); ok {
		return array.Hash(x)
	}
	return 0
}

// FormatData prints a constant. One that consists of one element is printed as that element, however many dimensions it has.
func (t Type) FormatData(a any) string {
	x, ok := a.(*array.Array)
	if !ok {
		return fmt.Sprint(a)
	}
	if x.Len() == 1 && !x.IsCSR() {
		x = x.Reshape()
	}
	return x.Text(6)
}

// TypeOf returns the type of a variable of a tensor graph. It panics with an *Error if it is of another kind.
func TypeOf(v *fgraph.Variable) Type {
	t, ok := v.Type().(Type)
	if !ok {
		fail("type", "%v is a %v, which is no tensor", v, v.Type())
	}
	return t
}
