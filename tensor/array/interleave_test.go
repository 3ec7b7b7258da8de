package array_test

import (
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestInterleave: images of few and of many channels, seen with channels last, are convolved like copies of them.
func TestInterleave(t *testing.T) {
	divide.Always.Store(true)
	defer divide.Always.Store(false)
	threads := kernel.NewThreads(3)
	r := rand.New(rand.NewPCG(7, 8))
	for trial := range 200 {
		n, c, h, w := 1+r.IntN(3), 1+r.IntN(32), 1+r.IntN(40), 1+r.IntN(60)
		dtype := []array.DType{array.Float32, array.Float32, array.Float64}[r.IntN(3)]
		whole := randomArray(r, dtype, n, c, h, w+r.IntN(2)*r.IntN(2))
		view := whole.Beginning(n, c, h, w) // perhaps a part of each line
		x, weights := view.Transpose(0, 2, 3, 1), randomArray(r, dtype, 1, 1, c, 2)
		same := array.Window{Dims: 2, Size: [array.MaxSpatial]int{1, 1}, Stride: [array.MaxSpatial]int{1, 1}, Dilation: [array.MaxSpatial]int{1, 1}}
		want, got := array.New(dtype, n, h, w, 2), array.New(dtype, n, h, w, 2)
		ws := array.Workspace{Threads: []*kernel.Threads{nil, threads}[trial%2]}
		for y, x := range map[*array.Array]*array.Array{want: x.Clone(), got: x} {
			if err := ws.ConvLast(y, x, weights, nil, same, 1, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		if !array.Equal(got, want) {
			t.Errorf("%d: %v of %v: %v, not %v", trial, x.Shape(), whole.Shape(), got, want)
		}
	}
}
