package array_test

import (
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/tensor/array"
)

// TestCopyOverlapping: a copy between views of the same memory has what was there before, whichever way their elements
// lie, also where they are elements of several.
func TestCopyOverlapping(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		rows, cols := 1+r.IntN(6), 1+r.IntN(40)
		memory := array.New(array.Float32, 8, 50)
		for i := range memory.Len() {
			memory.SetInt(i, int64(i))
		}
		view := func(rows, cols int) *array.Array {
			ranges := []array.Range{{Start: r.IntN(8 - rows + 1), Step: 1, Count: rows}, {Start: r.IntN(50 - cols + 1), Step: 1, Count: cols}}
			for i, n := range []int{8, 50} {
				if g := &ranges[i]; r.IntN(2) == 0 { // from the end on
					*g = array.Range{Start: n - 1 - g.Start, Step: -1, Count: g.Count}
				} else if last := n - 1 - g.Start; g.Count > 1 && r.IntN(2) == 0 {
					g.Step = 1 + r.IntN(last/(g.Count-1))
				}
			}
			v := new(array.Array)
			memory.RangeTo(v, ranges...)
			return v
		}
		dst, src := view(rows, cols), view([]int{rows, 1}[r.IntN(2)], cols)
		want := array.New(array.Float32, rows, cols)
		array.CopyTo(want, src.Clone())
		array.CopyTo(dst, src)
		if !array.Equal(dst, want) {
			t.Fatalf("%v, not %v", dst, want)
		}
	}
	square := array.New(array.Float64, 150, 150) // large enough to be turned by blocks
	for i := range square.Len() {
		square.SetInt(i, int64(i))
	}
	want := square.Transpose(1, 0).Clone()
	if array.CopyTo(square, square.Transpose(1, 0)); !array.Equal(square, want) {
		t.Error("a square that is transposed in place has other elements")
	}
}
