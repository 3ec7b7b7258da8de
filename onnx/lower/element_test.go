package lower_test

import (
	"math"
	"testing"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestTensorOf: what is written as a tensor is read again, for each type of elements.
func TestTensorOf(t *testing.T) {
	for elem, values := range map[onnx.DataType][]float64{
		onnx.Float: {0, -1.5, math.Inf(1), math.NaN()}, onnx.Double: {1e300, -math.Pi}, onnx.Float16: {0, -1.5, 65504, math.Inf(-1), math.NaN(), 6e-8 / 6 * 5.9604644775390625},
		onnx.BFloat16: {1, -2.5, math.Inf(1), math.NaN()}, onnx.Int64: {math.MinInt64, 7}, onnx.Uint32: {math.MaxUint32, 0}, onnx.Uint64: {1 << 63, 1<<64 - 1<<11}, onnx.Int32: {math.MinInt32, 1},
		onnx.Int16: {-32768, 3}, onnx.Uint16: {65535, 3}, onnx.Int8: {-128, 127}, onnx.Uint8: {255, 0}, onnx.Bool: {1, 0},
	} {
		a, err := lower.NewArray(elem, 1, len(values))
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			a.SetFloat(i, v)
		}
		m, err := lower.TensorOf("x", a, elem)
		if err != nil {
			t.Fatal(err)
		}
		b, err := lower.ArrayOf(m, "")
		if err != nil || !array.Equal(a, b) {
			t.Errorf("%v: %v, %v, want %v", elem, b.Floats(), err, a.Floats())
		}
	}
	if _, err := lower.TensorOf("x", array.Scalar(1.0), onnx.Float); err == nil {
		t.Error("doubles as floats")
	}
}
