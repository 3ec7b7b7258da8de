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
		onnx.BFloat16: {1, -2.5, math.Inf(1), math.NaN()}, onnx.Int64: {math.MinInt64, 7}, onnx.Uint32: {math.MaxUint32, 0}, onnx.Int32: {math.MinInt32, 1},
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

// TestHalves: halves are the nearest ones, with an even last bit of two.
func TestHalves(t *testing.T) {
	for _, c := range []struct {
		elem onnx.DataType
		v    float32
		want float64
	}{
		{onnx.Float16, 1 + 1.0/2048, 1}, {onnx.Float16, 1 + 3.0/2048, 1 + 2.0/1024}, {onnx.Float16, 2 - 1.0/4096, 2}, {onnx.Float16, 65519, 65504},
		{onnx.Float16, 65520, math.Inf(1)}, {onnx.Float16, -1e-9, math.Copysign(0, -1)}, {onnx.Float16, 1.0 / (1 << 24), 1.0 / (1 << 24)},
		{onnx.Float16, 1.0 / (1 << 14) * (1 - 1.0/4096), 1.0 / (1 << 14)}, // the largest denormal and a bit
		{onnx.BFloat16, 1 + 1.0/256, 1}, {onnx.BFloat16, 1 + 3.0/256, 1 + 2.0/128}, {onnx.BFloat16, math.MaxFloat32, math.Inf(1)},
	} {
		m, err := lower.TensorOf("x", array.Scalar(c.v), c.elem)
		if err != nil {
			t.Fatal(err)
		}
		a, err := lower.ArrayOf(m, "")
		if err != nil || math.Float64bits(a.Float(0)) != math.Float64bits(c.want) {
			t.Errorf("%v of %g is %g, %v, want %g", c.elem, c.v, a.Float(0), err, c.want)
		}
	}
}
