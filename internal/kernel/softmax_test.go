package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSoftmaxShortRows: many short rows have the bits that each has alone, also in place, with zeros, NaN and infinities.
func TestSoftmaxShortRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	special := []float32{0, float32(math.Copysign(0, -1)), float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}
	for trial := range 400 {
		n, rows, floor := 1+r.IntN(block+2), 1+r.IntN(200), float32(trial%2)/10
		x := make([]float32, n*rows)
		for i := range x {
			if x[i] = float32(r.NormFloat64() * 5); r.IntN(50) == 0 {
				x[i] = special[r.IntN(len(special))]
			}
		}
		want, got := make([]float32, len(x)), make([]float32, len(x))
		for i := range rows {
			SoftmaxRows(want[i*n:][:n], x[i*n:][:n], n, floor)
		}
		SoftmaxRows(got, x, n, floor)
		SoftmaxRows(x, x, n, floor)
		if !slices.EqualFunc(want, got, sameBits) || !slices.EqualFunc(want, x, sameBits) {
			t.Fatalf("%d rows of %d have other bits than each alone", rows, n)
		}
	}
}
