package array

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/internal/kernel"
)

// TestPlanes: sums of vectors of positions have the bits of sums of one element of the window after the other, for any window
// and number of threads. Those of weights that are no numbers read no padding.
func TestPlanes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	threads := kernel.NewThreads(3)
	for trial := range 600 {
		w := Window{Dims: 1 + r.IntN(MaxSpatial)}
		groups, out := 1+r.IntN(5), 1+r.IntN(directRows)
		x, weights, y := []int{1 + r.IntN(2), groups}, []int{groups * out, 1}, []int{0, groups * out}
		y[0] = x[0]
		for d := range w.Dims {
			w.Size[d], w.Stride[d], w.Dilation[d] = 1+r.IntN(5), 1+r.IntN(4), 1+r.IntN(2)
			w.Before[d], w.After[d] = r.IntN(6)-1, r.IntN(6)-1
			n := w.Extent(d) + 2 + r.IntN(6)
			if d == w.Dims-1 && r.IntN(2) == 0 {
				n += r.IntN(100)
			}
			if trial%50 == 0 && w.Dims == 2 { // some lines at a time
				n += 200
			}
			x, weights, y = append(x, n), append(weights, w.Size[d]), append(y, w.OutputSize(d, n, false))
		}
		ax, aw, got := random32(r, x...), random32(r, weights...), New(Float32, y...)
		if trial%4 == 0 {
			aw.SetFloat(r.IntN(aw.Len()), []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[r.IntN(3)])
		}
		var ws Workspace
		if r.IntN(2) == 0 {
			ws.Threads = threads
		}
		if err := ws.Conv(got, ax, aw, w, groups); err != nil {
			t.Fatal(err)
		}
		want := New(Float32, y...)
		directForward[float32](&convolution{
			ws: new(Workspace), x: ax, w: aw, y: want, slide: newSlide(&w, x[2:], y[2:]), groups: groups, in: 1, out: out,
			columns: want.Len() / (y[0] * y[1]),
		})
		same := func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b }
		if !slices.EqualFunc(Slice[float32](got), Slice[float32](want), same) {
			t.Fatalf("%d: x %v, weights %v, %+v: %v, not %v", trial, x, weights, w, got, want)
		}
	}
}

func random32(r *rand.Rand, shape ...int) *Array {
	a := New(Float32, shape...)
	for i := range Slice[float32](a) {
		if r.IntN(8) > 0 {
			Slice[float32](a)[i] = float32(r.NormFloat64())
		}
	}
	return a
}
