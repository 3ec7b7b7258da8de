package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestDotDoubles: a row times a column has the bits of packed products.
func TestDotDoubles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{101, dDepth, dDepth + 1, 4 * dDepth, 9*dDepth + 17, 20000} {
		x, y := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i], y[i] = r.NormFloat64(), r.NormFloat64()
		}
		a, b := Strided{Rows: 1, Cols: n, Row: n, Col: 1, Data: x}, Strided{Rows: n, Cols: 1, Row: 1, Col: 1, Data: y}
		want, got := []float64{0.25}, []float64{0.25}
		bestSet.dGemm(0.7, &a, &b, want, 1)
		(*Threads)(nil).DGemm(0.7, a, b, got, 1)
		if math.Float64bits(got[0]) != math.Float64bits(want[0]) {
			t.Errorf("%d terms: %v, want %v", n, got[0], want[0])
		}
	}
}
