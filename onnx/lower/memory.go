package lower

import (
	"encoding/binary"
	"unsafe"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor/array"
)

// Files and memory have the same bytes where the processor is little-endian. There weights are
// arrays in the memory of the file if they lie at a multiple of their size, and are copied by decode
// and encode otherwise. Nothing writes to the arrays: they become constants of graphs.

// sameBytes reports whether the processor is little-endian.
var sameBytes = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// shared returns an array in the memory of elements, if that can be.
func shared(t onnx.DataType, data []byte, shape []int) (*array.Array, bool) {
	switch t {
	case onnx.Float:
		return view[float32](data, shape)
	case onnx.Double:
		return view[float64](data, shape)
	case onnx.Int64:
		return view[int64](data, shape)
	}
	return nil, false
}

func view[T float32 | float64 | int64](data []byte, shape []int) (*array.Array, bool) {
	at := unsafe.Pointer(unsafe.SliceData(data))
	size := unsafe.Sizeof(*new(T))
	if !sameBytes || len(data) == 0 || uintptr(at)%size != 0 {
		return nil, false
	}
	return array.Of(unsafe.Slice((*T)(at), uintptr(len(data))/size), shape...), true
}

// bytesOf returns the memory of the elements of an array, if that is what a file has.
func bytesOf(a *array.Array, t onnx.DataType) ([]byte, bool) {
	if !sameBytes || a.Len() == 0 {
		return nil, false
	}
	switch t {
	case onnx.Float:
		return bytesOfSlice(array.Slice[float32](a)), true
	case onnx.Double:
		return bytesOfSlice(array.Slice[float64](a)), true
	case onnx.Int64:
		return bytesOfSlice(array.Slice[int64](a)), true
	}
	return nil, false
}

func bytesOfSlice[T float32 | float64 | int64](data []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), uintptr(len(data))*unsafe.Sizeof(*new(T)))
}
