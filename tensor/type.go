package tensor

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unique"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// Unknown is a size that is known only at run time.
const Unknown = -1

// A Type is the type of a tensor: its element type, the number of dimensions and their sizes as far
// as they are known. Types are comparable.
//
// A dimension whose type says size 1 broadcasts: element-wise ops repeat it. A dimension of unknown
// size does not. If it has size 1 at run time where a larger one is needed, that is an error.
type Type struct {
	// A single pointer, so that converting a Type to an interface does not allocate.
	h unique.Handle[spec]
}

type spec struct {
	shape [array.MaxDims]int32 // Unknown, or the size
	ndim  uint8
	dtype array.DType
	csr   bool
}

// NewType returns the type of tensors with the given sizes, each of which may be Unknown. Sizes
// over 2³¹-1 become Unknown. It panics with an *Error if there are more than array.MaxDims
// dimensions.
func NewType(dtype array.DType, shape ...int) Type {
	if len(shape) > array.MaxDims {
		fail("type", "%d dimensions, there can be %d", len(shape), array.MaxDims)
	}
	s := spec{ndim: uint8(len(shape)), dtype: dtype}
	for i, n := range shape {
		s.shape[i] = staticSize(n)
	}
	return s.intern()
}

// staticSize returns n as a size of a type, which is Unknown if it is too large.
func staticSize(n int) int32 {
	if n < 0 || n > math.MaxInt32 {
		return Unknown
	}
	return int32(n)
}

func (s spec) intern() Type { return Type{unique.Make(s)} }

// ScalarType returns the type of tensors without dimensions.
func ScalarType(dtype array.DType) Type { return spec{dtype: dtype}.intern() }

// VectorType returns the type of vectors of unknown length.
func VectorType(dtype array.DType) Type { return NewType(dtype, Unknown) }

// MatrixType returns the type of matrices of unknown size.
func MatrixType(dtype array.DType) Type { return NewType(dtype, Unknown, Unknown) }

// CSRType returns the type of sparse matrices of floats in compressed rows; see array.NewCSR.
func CSRType(dtype array.DType) Type {
	return spec{dtype: dtype, ndim: 2, shape: [array.MaxDims]int32{Unknown, Unknown}, csr: true}.intern()
}

// Dialect returns "tensor".
func (t Type) Dialect() string { return "tensor" }

// DType returns the element type.
func (t Type) DType() array.DType { return t.h.Value().dtype }

// NDim returns the number of dimensions.
func (t Type) NDim() int { return int(t.h.Value().ndim) }

// Dim returns the size of a dimension, or Unknown.
func (t Type) Dim(i int) int { return int(t.h.Value().shape[i]) }

// Shape returns the sizes, each of which may be Unknown.
func (t Type) Shape() []int {
	s := t.h.Value()
	shape := make([]int, s.ndim)
	for i := range shape {
		shape[i] = int(s.shape[i])
	}
	return shape
}

// IsCSR reports whether the type is one of sparse matrices.
func (t Type) IsCSR() bool { return t.h.Value().csr }

// Bytes returns the size of the elements, 0 if it is unknown or t is sparse.
func (t Type) Bytes() int64 {
	if t.IsCSR() {
		return 0
	}
	n := int64(t.DType().Size())
	for _, k := range t.Shape() {
		// What no memory holds counts as not known, long before the product overflows.
		if k < 0 || k > 0 && n > 1<<50/int64(k) {
			return 0
		}
		n *= int64(k)
	}
	return n
}

// AllOnes reports whether the type says size 1 for all dimensions, as for a scalar.
func (t Type) AllOnes() bool {
	s := t.h.Value()
	return !slices.ContainsFunc(s.shape[:s.ndim], func(n int32) bool { return n != 1 })
}

// With returns the type with another element type.
func (t Type) With(dtype array.DType) Type {
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
	shape := t.shapeText()
	if name, ok := shapeNames[shape]; ok {
		return s.dtype.String() + " " + name
	}
	return s.dtype.String() + shape
}

// shapeNames are the names of shapes that have one.
var shapeNames = map[string]string{"[]": "scalar", "[?]": "vector", "[?, ?]": "matrix", "[1, ?]": "row", "[?, 1]": "col"}

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

// Accepts reports whether a tensor of type u may replace one of type t: they have the same element
// type, the same dimensions broadcast, and known sizes agree.
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
		// A size of 1 broadcasts and one that is not known does not, so neither takes the place of the other,
		// whatever it turns out to be.
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

// EqualData reports whether two constants have the same bits, except that NaN equals NaN.
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

// FormatData prints a constant. One element is printed without brackets, for any number of
// dimensions.
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

// Sample returns at most so many numbers of a constant, evenly spaced, and how many it has.
func (t Type) Sample(data any, most int) (numbers []float64, of int) {
	x, ok := data.(*array.Array)
	if !ok || x.IsCSR() {
		return nil, 0
	}
	n := min(x.Len(), most)
	for i := range n {
		numbers = append(numbers, x.Float(i*x.Len()/n))
	}
	return numbers, x.Len()
}

// TypeOf returns the type of a variable. It panics with an *Error if the variable is no tensor.
func TypeOf(v *fgraph.Variable) Type {
	t, ok := v.Type().(Type)
	if !ok {
		fail("type", "%v is a %v, which is not a tensor", v, v.Type())
	}
	return t
}
