package lower

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestMemory: arrays in the memory of a file, and those that are copied from it because they lie at
// an odd place, have the same elements, and become the same bytes again.
func TestMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, elem := range []onnx.DataType{onnx.Float, onnx.Double, onnx.Int64} {
		for _, n := range []int{0, 1, 7, 24} {
			size := elem.Bits() / 8
			memory := make([]byte, n*size+8)
			for i := range memory {
				memory[i] = byte(rng.Uint32())
			}
			want := bytes.Clone(memory[:n*size])
			for offset := range 8 {
				data := memory[offset:][:n*size]
				copy(data, want)
				a, err := ArrayOf(&onnx.Tensor{DataType: elem, Dims: []int64{int64(n)}, Raw: data}, "")
				if err != nil {
					t.Fatal(err)
				}
				d, _ := dtypeOf(elem)
				copied := array.New(d, n)
				if !decode(copied, elem, data) || !array.Equal(a, copied) && !bytes.Equal(encoded(a, elem), encoded(copied, elem)) {
					t.Errorf("%v at %d: %v, not %v", elem, offset, a, copied)
				}
				back, err := TensorOf("", a, elem)
				if err != nil || !bytes.Equal(back.Raw, want) || !bytes.Equal(encoded(a, elem), want) {
					t.Errorf("%v at %d: %v, %v", elem, offset, back, err)
				}
			}
		}
	}
}

func encoded(a *array.Array, t onnx.DataType) []byte {
	data := make([]byte, a.Len()*t.Bits()/8)
	encode(a, t, data)
	return data
}
