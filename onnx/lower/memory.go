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

// shared returns an array in the memory of elements, if that can be. Bytes of bools may be any.
func shared(t onnx.DataType, data []byte, shape []int) (*array.Array, bool) {
	switch t {
	case onnx.Float:
		return view[float32](data, shape)
	case onnx.Double:
		return view[float64](data, shape)
	case onnx.Int64:
		return view[int64](data, shape)
	case onnx.Int8:
		return view[int8](data, shape)
	case onnx.Uint8:
		return view[uint8](data, shape)
	case onnx.Float16:
		return view[array.F16](data, shape)
	case onnx.BFloat16:
		return view[array.BF16](data, shape)
	}
	return nil, false
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
// bools, whose memory must not be anything but 0 and 1, and for arrays with dimensions in another order.
func BytesOf(a *array.Array) ([]byte, bool) {
	if !sameBytes || a.Len() == 0 || !a.Contiguous() {
		return nil, false
	}
	switch a.DType() {
	case array.Float32:
		return bytesOfSlice[float32](a), true
	case array.Float64:
		return bytesOfSlice[float64](a), true
	case array.Float16:
		return bytesOfSlice[array.F16](a), true
	case array.BFloat16:
		return bytesOfSlice[array.BF16](a), true
	case array.Int8:
		return bytesOfSlice[int8](a), true
	case array.Int16:
		return bytesOfSlice[int16](a), true
	case array.Int32:
		return bytesOfSlice[int32](a), true
	case array.Int64:
		return bytesOfSlice[int64](a), true
	case array.Uint8:
		return bytesOfSlice[uint8](a), true
	case array.Uint16:
		return bytesOfSlice[uint16](a), true
	case array.Uint32:
		return bytesOfSlice[uint32](a), true
	case array.Uint64:
		return bytesOfSlice[uint64](a), true
	}
	return nil, false
}

func bytesOfSlice[T array.Element](a *array.Array) []byte {
	data := array.Slice[T](a)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), uintptr(len(data))*unsafe.Sizeof(*new(T)))
}
