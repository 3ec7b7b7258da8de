package array

import (
	"fmt"
	"slices"
)

// MaxDims is the largest number of dimensions.
const MaxDims = 8

// An Array is a view of memory as an N-dimensional array. The zero value is no array.
type Array struct {
	dtype   DType
	ndim    uint8
	shape   [MaxDims]int
	strides [MaxDims]int // in elements; may be zero or negative
	offset  int          // of the first element in data
	data    any          // a slice of the element type, or a *csr
}

// New returns an array of zeros, or of empty strings.
func New(dtype DType, shape ...int) *Array {
	a := new(Array)
	a.layOut(dtype, shape)
	if dtype == String {
		a.data = make([]string, a.Len())
	} else {
		a.data = kinds[dtype].make(a.Len())
	}
	return a
}

// Of returns an array whose memory is data. It panics if the shape has another number of elements.
func Of[T Element](data []T, shape ...int) *Array {
	a := new(Array)
	a.layOut(dtypeOf[T](), shape)
	if a.Len() != len(data) {
		panic(fmt.Sprintf("array: %d elements for the shape %v", len(data), shape))
	}
	a.data = data
	return a
}

// Scalar returns an array without dimensions.
func Scalar[T Element](v T) *Array { return Of([]T{v}) }

// Full returns an array with all elements v, converted to the type.
func Full(dtype DType, v float64, shape ...int) *Array {
	a := New(dtype, shape...)
	if a.Len() > 0 {
		a.SetFloat(0, v)
		kinds[dtype].spread(a.data)
	}
	return a
}

func fill[T any](dst []T, v T) {
	// Memory is moved faster than elements are set one by one.
	n := min(len(dst), 16)
	for i := range dst[:n] {
		dst[i] = v
	}
	for ; n > 0 && n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}

// layOut sets type, shape and strides for elements in row-major order.
func (a *Array) layOut(dtype DType, shape []int) {
	if len(shape) > MaxDims {
		panic(fmt.Sprintf("array: %d dimensions, there can be %d", len(shape), MaxDims))
	}
	*a = Array{dtype: dtype, ndim: uint8(len(shape)), data: a.data}
	step := 1
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] < 0 {
			panic(fmt.Sprintf("array: negative size %d", shape[i]))
		}
		a.shape[i], a.strides[i] = shape[i], step
		step *= shape[i]
	}
}

// DType returns the element type.
func (a *Array) DType() DType { return a.dtype }

// NDim returns the number of dimensions.
func (a *Array) NDim() int { return int(a.ndim) }

// Shape returns the sizes of the dimensions. The slice is the array's own and must not be changed.
func (a *Array) Shape() []int { return a.shape[:a.ndim] }

// Dim returns the size of a dimension.
func (a *Array) Dim(i int) int { return a.Shape()[i] }

// Len returns the number of elements.
func (a *Array) Len() int { return product(a.shape[:a.ndim]) }

func product(list []int) int {
	n := 1
	for _, k := range list {
		n *= k
	}
	return n
}

// Bytes returns the size of the elements in bytes.
func (a *Array) Bytes() int { return a.Len() * a.dtype.Size() }

// Contiguous reports whether the elements lie in memory in row-major order, without gaps.
func (a *Array) Contiguous() bool {
	step := 1
	for i := int(a.ndim) - 1; i >= 0; i-- {
		if a.shape[i] != 1 && a.strides[i] != step {
			return a.Len() == 0
		}
		step *= a.shape[i]
	}
	return true
}

// Slice returns the elements of a contiguous array in row-major order, as a view of its memory. It
// panics if the array is not contiguous or has another element type.
func Slice[T Element](a *Array) []T {
	if !a.Contiguous() {
		panic("array: Slice of an array that is not contiguous")
	}
	return dataOf[T](a)[a.offset:][:a.Len()]
}

// dataOf returns all memory that the array is a view of.
func dataOf[T Element](a *Array) []T {
	d, ok := a.data.([]T)
	if !ok {
		panic(fmt.Sprintf("array: elements are %v, not %v", a.dtype, dtypeOf[T]()))
	}
	return d
}

// SharesMemory reports whether the arrays are views of the same memory, though perhaps of
// different parts.
func (a *Array) SharesMemory(b *Array) bool {
	return a.dtype == b.dtype && kinds[a.dtype].sameMemory(a.data, b.data)
}

// Same reports whether the arrays are the same view of the same memory.
func (a *Array) Same(b *Array) bool {
	return a.ndim == b.ndim && a.offset == b.offset && a.shape == b.shape && a.strides == b.strides && a.SharesMemory(b)
}

// place returns the offset of element i in row-major order.
func (a *Array) place(i int) int {
	at := a.offset
	for d := int(a.ndim) - 1; d >= 0; d-- {
		n := a.shape[d]
		at += i % n * a.strides[d]
		i /= n
	}
	return at
}

// Float returns element i in row-major order as a float64. True is 1, and a string NaN.
func (a *Array) Float(i int) float64 {
	if s, ok := a.data.(*csr); ok {
		return s.at(i/a.shape[1], int64(i%a.shape[1]))
	}
	return elementAt(a, a.place(i))
}

// Int returns element i in row-major order as an int64. Floats are truncated, and a uint64 that no
// int64 holds is the int64 with the same bits.
func (a *Array) Int(i int) int64 {
	switch d := a.data.(type) {
	case []int64:
		return d[a.place(i)]
	case []uint64:
		return int64(d[a.place(i)])
	}
	return toInt(a.Float(i))
}

// SetInt sets element i in row-major order to an integer, of which a type of fewer bits has the last
// ones.
func (a *Array) SetInt(i int, v int64) {
	switch d := a.data.(type) {
	case []int64:
		d[a.place(i)] = v
	case []uint64:
		d[a.place(i)] = uint64(v)
	case []uint32:
		d[a.place(i)] = uint32(v)
	case []int32:
		d[a.place(i)] = int32(v)
	default:
		if a.dtype.IsInteger() {
			// Smaller integers are the last bits of an int32. They are cut here, because SetFloat makes one
			// number of all that no int32 holds.
			v = int64(int32(v))
		}
		a.SetFloat(i, float64(v))
	}
}

// SetFloat sets element i in row-major order. A number becomes an integer as by Cast, and a string is its decimal.
func (a *Array) SetFloat(i int, v float64) {
	at := a.place(i)
	switch d := a.data.(type) {
	case []float32: // most are
		d[at] = float32(v)
	case []float64:
		d[at] = v
	case []string:
		d[at] = numberText(v)
	default:
		kinds[a.dtype].set(d, at, v)
	}
}

// toInt converts a float64 to an integer. Values that no integer holds become the smallest one, as
// on amd64.
func toInt(v float64) int64 {
	if v >= -1<<63 && v < 1<<63 {
		return int64(v)
	}
	return -1 << 63
}

// toInt32 is toInt for 32 bits. Smaller integers are the last bits of its result, as NumPy makes
// them on amd64: 300 becomes the uint8 44, and NaN becomes 0.
func toInt32(v float64) int32 {
	if v > -1<<31-1 && v < 1<<31 {
		return int32(v)
	}
	return -1 << 31
}

// toUint converts a float64 to an integer, with the last 64 bits of negative ones, as on amd64.
func toUint(v float64) uint64 {
	if v >= 1<<63 {
		return uint64(toInt(v-1<<63)) ^ 1<<63
	}
	return uint64(toInt(v))
}

// Floats returns the elements in row-major order as float64s.
func (a *Array) Floats() []float64 {
	out := make([]float64, a.Len())
	for i := range out {
		out[i] = a.Float(i)
	}
	return out
}

// Clone returns a contiguous copy. The copy of a sparse matrix is sparse.
func (a *Array) Clone() *Array {
	if a.IsCSR() {
		c := *a
		CopyTo(&c, a)
		return &c
	}
	if a.dtype == String {
		return OfStrings(slices.Clone(a.Strings()), a.Shape()...)
	}
	c := New(a.dtype, a.Shape()...)
	CopyTo(c, a)
	return c
}

// Cast returns a contiguous copy with another element type. Floats become integers by truncation,
// and integers that the type does not have wrap around, as in NumPy.
func (a *Array) Cast(dtype DType) *Array {
	if dtype == a.dtype {
		return a.Clone()
	}
	if s, ok := a.data.(*csr); ok {
		c := *a
		c.dtype, c.data = dtype, &csr{s.values.Cast(dtype), s.columns, s.pointers}
		return &c
	}
	c := New(dtype, a.Shape()...)
	// Most constants have one element, which is not worth a program and a workspace.
	if a.Len() == 1 && dtype.IsFloat() {
		switch d := c.data.(type) {
		case []float32:
			d[0] = convert[float32](a)
			return c
		case []float64:
			d[0] = convert[float64](a)
			return c
		}
	}
	var ws Workspace
	ws.Map(castProgram(a.dtype, dtype), []*Array{c}, []*Array{a})
	return c
}
