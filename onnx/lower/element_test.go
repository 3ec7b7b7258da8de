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

// TestSmallFloats: every code of the formats of eight bits and less is read and written again, the largest
// and smallest numbers are those of the papers, and what lies between two is rounded to the even one.
func TestSmallFloats(t *testing.T) {
	for elem, want := range map[onnx.DataType]struct{ largest, smallest, step, tie, even float64 }{
		onnx.Float8E4M3FN: {448, 1.0 / 512, 1.0 / 8, 1.0625, 1}, onnx.Float8E4M3FNUZ: {240, 1.0 / 1024, 1.0 / 8, 1.1875, 1.25},
		onnx.Float8E5M2: {57344, 1.0 / 65536, 1.0 / 4, 1.125, 1}, onnx.Float8E5M2FNUZ: {57344, 1.0 / 131072, 1.0 / 4, 1.375, 1.5},
		onnx.Float4E2M1: {6, 0.5, 0.5, 1.25, 1}, onnx.Int4: {7, 1, 0, 0, 0}, onnx.Uint4: {15, 1, 0, 0, 0}, onnx.Int2: {1, 1, 0, 0, 0}, onnx.Uint2: {3, 1, 0, 0, 0},
		onnx.Float8E8M0: {math.Ldexp(1, 127), math.Ldexp(1, -127), 0, 0, 0},
	} {
		bits := elem.Bits()
		m := &onnx.Tensor{DataType: elem, Dims: []int64{1 << bits}, Raw: make([]byte, (1<<bits*bits+7)/8)}
		for i := range 1 << bits {
			m.Raw[i*bits/8] |= byte(i << (i * bits % 8))
		}
		a, err := lower.ArrayOf(m, "")
		if err != nil {
			t.Fatal(err)
		}
		largest, smallest, has := 0.0, math.Inf(1), make(map[float64]bool)
		for _, v := range a.Floats() {
			if has[v] = true; !math.IsInf(v, 0) && v > 0 {
				largest, smallest = max(largest, v), min(smallest, v)
			}
		}
		if largest != want.largest || smallest != want.smallest || want.step > 0 && (!has[1] || !has[1+want.step] || has[1+want.step/2]) {
			t.Errorf("%v has numbers up to %g, from %g on: %v", elem, largest, smallest, a.Floats())
		}
		// Codes of what is no number need not come back.
		again, err := lower.TensorOf("", a, elem)
		if err != nil {
			t.Fatal(err)
		}
		b, err := lower.ArrayOf(again, "")
		if err != nil || !array.Equal(a, b) {
			t.Errorf("%v: %v, %v, want %v", elem, b.Floats(), err, a.Floats())
		}
		if want.step == 0 {
			continue
		}
		if m, err = lower.TensorOf("", array.Scalar(float32(want.tie)), elem); err != nil {
			t.Fatal(err)
		}
		if a, err = lower.ArrayOf(m, ""); err != nil || a.Float(0) != want.even {
			t.Errorf("%v of %g is %g, %v, not %g", elem, want.tie, a.Float(0), err, want.even)
		}
	}
}
