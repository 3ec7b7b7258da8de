// Package element turns elements of arrays into the bytes that ONNX models have of them, and back, one by one: where
// memory has them in another order, or at an odd place.
package element

import (
	"math"

	"github.com/nnopt/nnopt/tensor/array"
)

// Set sets an element to the number of some bytes.
func Set(a *array.Array, i int, data []byte) {
	var bits uint64
	for k, b := range data {
		bits |= uint64(b) << (8 * k)
	}
	switch a.DType() {
	case array.Bool:
		array.Slice[bool](a)[i] = bits != 0
	case array.Float16:
		array.Slice[array.F16](a)[i] = array.F16(bits)
	case array.BFloat16:
		array.Slice[array.BF16](a)[i] = array.BF16(bits)
	case array.Float32:
		array.Slice[float32](a)[i] = math.Float32frombits(uint32(bits))
	case array.Float64:
		array.Slice[float64](a)[i] = math.Float64frombits(bits)
	default:
		a.SetInt(i, int64(bits))
	}
}

// Append appends the bytes of an element.
func Append(data []byte, a *array.Array, i int) []byte {
	bits := uint64(a.Int(i))
	switch a.DType() {
	case array.Float16:
		bits = uint64(array.Slice[array.F16](a)[i])
	case array.BFloat16:
		bits = uint64(array.Slice[array.BF16](a)[i])
	case array.Float32:
		bits = uint64(math.Float32bits(array.Slice[float32](a)[i]))
	case array.Float64:
		bits = math.Float64bits(array.Slice[float64](a)[i])
	}
	for k := range a.DType().Size() {
		data = append(data, byte(bits>>(8*k)))
	}
	return data
}
