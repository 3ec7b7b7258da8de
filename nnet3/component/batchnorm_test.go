package component

import (
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/internal/kernel"
)

// TestBatchNormBlocks checks that in training blocks of columns count as rows of a narrower matrix,
// to the bit, with and without gaps between the rows.
func TestBatchNormBlocks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, rows := range []int{1, 5, 40} {
		for _, blocks := range []int{2, 3} {
			const dim = 4
			x := randomMatrix(rnd, rows, blocks*dim)
			gaps, _ := spread(x)
			wide := newComponent(t, "BatchNormComponent", "dim="+[]string{2: "8", 3: "12"}[blocks]+" block-dim=4", rnd)
			narrow := newComponent(t, "BatchNormComponent", "dim=4", rnd)
			tall := kernel.Matrix{Data: x.Data, Rows: rows * blocks, Cols: dim, Stride: dim}
			want := kernel.New(tall.Rows, dim)
			if _, err := Propagate(narrow, new(Workspace), ForwardPass{}, tall, want); err != nil {
				t.Fatal(err)
			}
			for _, in := range []kernel.Matrix{x, gaps} {
				got := kernel.New(rows, blocks*dim)
				if _, err := Propagate(wide, new(Workspace), ForwardPass{}, in, got); err != nil {
					t.Fatal(err)
				}
				if !equalBits(kernel.Matrix{Data: got.Data, Rows: want.Rows, Cols: dim, Stride: dim}, want) {
					t.Errorf("%d rows of %d blocks, stride %d: not the same as %d rows", rows, blocks, in.Stride, want.Rows)
				}
			}
		}
	}
}
