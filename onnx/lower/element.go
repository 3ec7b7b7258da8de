package lower

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor/array"
)

// dtypes are the types of arrays that hold elements of ONNX's types.
var dtypes = map[onnx.DataType]array.DType{
	onnx.Bool: array.Bool, onnx.Int8: array.Int8, onnx.Int16: array.Int16, onnx.Int32: array.Int32, onnx.Int64: array.Int64,
	onnx.Uint8: array.Uint8, onnx.Uint16: array.Uint16, onnx.Uint32: array.Uint32, onnx.Uint64: array.Uint64,
	onnx.Float16: array.Float16, onnx.BFloat16: array.BFloat16, onnx.Float: array.Float32, onnx.Double: array.Float64,
	onnx.String: array.String,
}

func dtypeOf(t onnx.DataType) (array.DType, error) {
	if d, ok := dtypes[t]; ok {
		return d, nil
	}
	switch {
	case t == onnx.Int4 || t == onnx.Int2:
		return array.Int8, nil
	case t == onnx.Uint4 || t == onnx.Uint2:
		return array.Uint8, nil
	case isSmall(t):
		return array.Float32, nil
	}
	return 0, fmt.Errorf("%w: elements of type %v", ErrUnsupported, t)
}

// elementOf returns the type of elements of arrays.
func elementOf(d array.DType) onnx.DataType {
	// Each type of arrays is there once, so the order of the map does not matter.
	for t, have := range dtypes {
		if have == d {
			return t
		}
	}
	return onnx.Undefined
}

// NewArray returns an array of zeros that can hold elements of a type.
func NewArray(t onnx.DataType, shape ...int) (*array.Array, error) {
	d, err := dtypeOf(t)
	if err != nil {
		return nil, err
	}
	n := 1
	for _, s := range shape {
		if s < 0 || s > maxElements || n*max(s, 1) > maxElements {
			err = fmt.Errorf("%w: dimensions %v", ErrUnsupported, shape)
		}
		n *= max(s, 1)
	}
	if len(shape) > array.MaxDims {
		err = fmt.Errorf("%w: %d dimensions", ErrUnsupported, len(shape))
	}
	if err != nil {
		return nil, err
	}
	return array.New(d, shape...), nil
}

// maxElements bounds the elements of a tensor of a model.
const maxElements = 1 << 31

// ArrayOf returns the elements of a tensor as an array, which may be in the memory of the tensor and
// must not be changed. dir is the folder of the model, where external data are.
func ArrayOf(t *onnx.Tensor, dir string) (*array.Array, error) {
	d, err := dtypeOf(t.DataType)
	if err != nil {
		return nil, err
	}
	if len(t.Dims) > array.MaxDims {
		return nil, fmt.Errorf("%w: %d dimensions", ErrUnsupported, len(t.Dims))
	}
	n, shape := int64(1), make([]int, len(t.Dims))
	for i, s := range t.Dims {
		// Neither factor is more than 2^31 here, so the product does not overflow.
		if s < 0 || s > maxElements || n*s > maxElements {
			return nil, fmt.Errorf("%w: dimensions %v", ErrUnsupported, t.Dims)
		}
		n, shape[i] = n*s, int(s)
	}
	if t.DataType == onnx.String {
		return stringsOf(t, n, shape)
	}
	data, err := t.Data(dir)
	if err != nil {
		return nil, err
	}
	if bits := t.DataType.Bits(); int64(len(data)) != (n*int64(bits)+7)/8 {
		return nil, fmt.Errorf("%w: %d bytes for %d elements", ErrUnsupported, len(data), n)
	}
	if a, ok := shared(t.DataType, data, shape); ok {
		return a, nil
	}
	a := array.New(d, shape...)
	if isSmall(t.DataType) {
		for i := range int(n) {
			a.SetFloat(i, smallAt(t.DataType, data, i))
		}
		return a, nil
	}
	// Bytes that the processor can't read where they are get copied as a whole. Only bools, or all if
	// it is big-endian, go by their values.
	if b, ok := BytesOf(a); ok {
		copy(b, data)
		return a, nil
	}
	_, err = binary.Decode(data, binary.LittleEndian, elements(a))
	return a, err
}

// stringsOf is ArrayOf for strings, of which there are n.
func stringsOf(t *onnx.Tensor, n int64, shape []int) (*array.Array, error) {
	if int64(len(t.Strings)) != n {
		return nil, fmt.Errorf("%w: %d strings for %d elements", ErrUnsupported, len(t.Strings), n)
	}
	list := make([]string, n)
	for i, text := range t.Strings {
		list[i] = string(text)
	}
	return array.OfStrings(list, shape...), nil
}

// ReadTensor reads a tensor from a file with the extension .pb.
func ReadTensor(name string) (*onnx.Tensor, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	t, err := onnx.ParseTensor(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// TensorOf returns an array as a tensor with elements of a type, the inverse of ArrayOf. The tensor may be
// in the memory of the array, which must not be changed.
func TensorOf(name string, a *array.Array, t onnx.DataType) (*onnx.Tensor, error) {
	d, err := dtypeOf(t)
	if err == nil && d != a.DType() {
		err = fmt.Errorf("%w: %v as elements of type %v", ErrUnsupported, a.DType(), t)
	}
	if err != nil {
		return nil, err
	}
	// Bytes of a file are in the order of rows, whatever the strides of the array are.
	if !a.Contiguous() {
		a = a.Clone()
	}
	m := &onnx.Tensor{Name: name, DataType: t}
	for _, n := range a.Shape() {
		m.Dims = append(m.Dims, int64(n))
	}
	if t == onnx.String {
		for _, text := range a.Strings() {
			m.Strings = append(m.Strings, []byte(text))
		}
		return m, nil
	}
	var ok bool
	if isSmall(t) {
		m.Raw = make([]byte, (a.Len()*t.Bits()+7)/8)
		for i := range a.Len() {
			putSmall(t, m.Raw, i, a.Float(i))
		}
		return m, nil
	}
	if m.Raw, ok = BytesOf(a); ok {
		return m, nil
	}
	m.Raw, err = binary.Append(make([]byte, 0, a.Len()*d.Size()), binary.LittleEndian, elements(a))
	return m, err
}

// Files and memory have the same bytes where the processor is little-endian. There weights are
// arrays in the memory of the file if the processor can read them where they are, and are copied by decode
// and encode otherwise. Nothing writes to the arrays: they become constants of graphs.

// sameBytes reports whether the processor is little-endian.
var sameBytes = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// A memory is how the elements of arrays of a type are in memory.
type memory struct {
	view   func(data []byte, shape []int) (*array.Array, bool)
	bytes  func(*array.Array) []byte
	values func(*array.Array) any // a slice
}

func memoryOf[T array.Element]() memory {
	return memory{view[T], bytesOf[T], func(a *array.Array) any { return array.Slice[T](a) }}
}

// memories has no bools, whose memory must not be anything but 0 and 1.
var memories = map[array.DType]memory{
	array.Float32: memoryOf[float32](), array.Float64: memoryOf[float64](), array.Float16: memoryOf[array.F16](), array.BFloat16: memoryOf[array.BF16](),
	array.Int8: memoryOf[int8](), array.Int16: memoryOf[int16](), array.Int32: memoryOf[int32](), array.Int64: memoryOf[int64](),
	array.Uint8: memoryOf[uint8](), array.Uint16: memoryOf[uint16](), array.Uint32: memoryOf[uint32](), array.Uint64: memoryOf[uint64](),
}

// elements returns the elements of an array as a slice of their type.
func elements(a *array.Array) any {
	if a.DType() == array.Bool {
		return array.Slice[bool](a)
	}
	return memories[a.DType()].values(a)
}

// shared returns an array in the memory of elements, if that can be.
func shared(t onnx.DataType, data []byte, shape []int) (*array.Array, bool) {
	d, own := dtypes[t]
	m, ok := memories[d]
	if !own || !ok {
		return nil, false
	}
	return m.view(data, shape)
}

// anywhere reports whether numbers need not lie at multiples of their size. Files have weights anywhere.
const anywhere = runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64" || runtime.GOARCH == "wasm"

func view[T array.Element](data []byte, shape []int) (*array.Array, bool) {
	at := unsafe.Pointer(unsafe.SliceData(data))
	size := unsafe.Sizeof(*new(T))
	if !sameBytes || len(data) == 0 || !anywhere && uintptr(at)%size != 0 {
		return nil, false
	}
	return array.Of(unsafe.Slice((*T)(at), uintptr(len(data))/size), shape...), true
}

// BytesOf returns the memory of the elements of an array, if that is what a file has. It doesn't for
// bools, and for arrays with dimensions in another order.
func BytesOf(a *array.Array) ([]byte, bool) {
	m, ok := memories[a.DType()]
	if !ok || !sameBytes || a.Len() == 0 || !a.Contiguous() {
		return nil, false
	}
	return m.bytes(a), true
}

func bytesOf[T array.Element](a *array.Array) []byte {
	data := array.Slice[T](a)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), uintptr(len(data))*unsafe.Sizeof(*new(T)))
}
