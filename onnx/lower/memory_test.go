package lower_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestMemory: arrays in the memory of a file, and those that are copied from it because they lie at
// an odd place, have the same elements, and become the same bytes again.
func TestMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for elem, dtype := range map[onnx.DataType]array.DType{
		onnx.Bool: array.Bool, onnx.Int8: array.Int8, onnx.Int16: array.Int16, onnx.Int32: array.Int32, onnx.Int64: array.Int64,
		onnx.Uint8: array.Uint8, onnx.Uint16: array.Uint16, onnx.Uint32: array.Uint32, onnx.Uint64: array.Uint64,
		onnx.Float16: array.Float16, onnx.BFloat16: array.BFloat16, onnx.Float: array.Float32, onnx.Double: array.Float64,
	} {
		for _, n := range []int{0, 1, 7, 24} {
			size := elem.Bits() / 8
			memory := make([]byte, n*size+8)
			for i := range memory {
				if memory[i] = byte(rng.Uint32()); elem == onnx.Bool {
					memory[i] &= 1
				}
			}
			want := bytes.Clone(memory[:n*size])
			for offset := range 8 {
				data := memory[offset:][:n*size]
				copy(data, want)
				a, err := lower.ArrayOf(&onnx.Tensor{DataType: elem, Dims: []int64{int64(n)}, Raw: data}, "")
				if err != nil {
					t.Fatal(err)
				}
				copied := array.New(dtype, n)
				for i := range n {
					setElement(copied, i, data[i*size:][:size])
				}
				if !array.Equal(a, copied) {
					t.Errorf("%v at %d: %v, not %v", elem, offset, a, copied)
				}
				back, err := lower.TensorOf("", a, elem)
				if err != nil || !bytes.Equal(back.Raw, want) || !bytes.Equal(encoded(a), want) {
					t.Errorf("%v at %d: %v, %v", elem, offset, back, err)
				}
			}
		}
	}
}

func encoded(a *array.Array) []byte {
	data := []byte{}
	for i := range a.Len() {
		data = appendElement(data, a, i)
	}
	return data
}

// TestTransposedMemory: an array with its dimensions in another order has no bytes of a file, but its memory is
// that of one.
func TestTransposedMemory(t *testing.T) {
	a := array.New(array.Float32, 300, 400)
	if _, ok := lower.BytesOf(a); !ok {
		t.Error("an array has no bytes")
	}
	if _, ok := lower.BytesOf(a.Transpose(1, 0)); ok {
		t.Error("a transposed array has bytes in order")
	}
	if data, ok := lower.BytesOf(a.Transpose(1, 0).InMemoryOrder()); !ok || len(data) != a.Bytes() {
		t.Error("the memory of a transposed array is not found")
	}
}

// setElement sets an element to the number of some bytes.
func setElement(a *array.Array, i int, data []byte) {
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

// appendElement appends the bytes of an element.
func appendElement(data []byte, a *array.Array, i int) []byte {
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
