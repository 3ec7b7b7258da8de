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

// Logarithms of softmaxes of rows are within three units in the last place, with all kernels.
func TestLogSoftmaxRows(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{1, 7, 16, 17, 100, 1000} {
		x, dst := make([]float32, 3*n), make([]float32, 3*n)
		for i := range x {
			x[i] = float32(r.NormFloat64()*5) + float32(500*(i/n))
		}
		LogSoftmaxRows(dst, x, n)
		for i, got := range dst {
			row, sum, most := x[i/n*n:][:n], 0.0, float64(slices.Max(x[i/n*n:][:n]))
			for _, v := range row {
				sum += math.Exp(float64(v) - most)
			}
			want := float64(x[i]) - most - math.Log(sum)
			if math.Abs(float64(got)-want) > 3*math.Abs(want)*0x1p-23 {
				t.Fatalf("element %d of rows of %d is %v, want %v", i, n, got, want)
			}
		}
		x[0], x[n] = float32(math.NaN()), float32(math.Inf(-1))
		LogSoftmaxRows(x, x, n)
		if x[n-1] == x[n-1] || n > 1 && (!math.IsInf(float64(x[n]), -1) || x[n+1] != x[n+1]) {
			t.Fatalf("rows of %d with NaN and -Inf became %v", n, x[:2*n])
		}
	}
}
