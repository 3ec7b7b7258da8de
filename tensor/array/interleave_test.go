package array

import (
	"math/rand/v2"
	"testing"
)

// TestInterleave: images of few channels are copied as CopyTo does, and others are left to it.
func TestInterleave(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for trial := range 200 {
		n, c, h, w := 1+r.IntN(3), 1+r.IntN(2*fewChannels), 1+r.IntN(40), 1+r.IntN(60)
		dtype := []DType{Float32, Float32, Float64}[r.IntN(3)]
		whole := randomArray(r, dtype, n, c, h, w+r.IntN(2)*r.IntN(2))
		view := *whole
		view.shape[3] = w // perhaps a part of each line
		x := view.Transpose(0, 2, 3, 1)
		want, got := New(dtype, n, h, w, c), randomArray(r, dtype, n, h, w, c)
		CopyTo(want, x)
		done := interleave(got, x)
		if should := dtype == Float32 && c > 1 && c <= fewChannels && h*w > 1 && (whole.shape[3] == w || h == 1); should && !done {
			t.Errorf("%d: %v images, %v of %v, are not interleaved", trial, x.Shape(), dtype, whole.Shape())
		}
		if done && !Equal(got, want) {
			t.Errorf("%d: %v of %v: %v, not %v", trial, x.Shape(), whole.Shape(), got, want)
		}
	}
}

func BenchmarkInterleave(b *testing.B) {
	r := rand.New(rand.NewPCG(7, 8))
	x := randomArray(r, Float32, 1, 3, 224, 224).Transpose(0, 2, 3, 1)
	dst := New(Float32, x.Shape()...)
	b.SetBytes(int64(4 * x.Len()))
	for b.Loop() {
		if !interleave(dst, x) {
			b.Fatal("not interleaved")
		}
	}
}
