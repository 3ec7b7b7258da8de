package lower

import (
	"encoding/binary"
	"runtime"
	"unsafe"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor/array"
)

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
