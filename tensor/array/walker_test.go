package array_test

import (
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/tensor/array"
)

// TestTurn: large views are copied like small ones.
func TestTurn(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, shape := range [][]int{{130, 130}, {70, 60, 3, 3}, {5, 4, 3, 2, 300}, {2, 9000}, {40, 1, 500}} {
		a := array.New(array.Float32, shape...)
		for i := range a.Len() {
			a.SetFloat(i, float64(i))
		}
		for range 20 {
			v := a.Transpose(r.Perm(len(shape))...)
			if r.IntN(2) == 0 { // backwards in one dimension
				d := r.IntN(len(shape))
				ranges := make([]array.Range, d+1)
				for k := range ranges {
					ranges[k] = array.Range{Step: 1, Count: v.Dim(k)}
				}
				ranges[d] = ranges[d].Reversed()
				w := new(array.Array)
				v.RangeTo(w, ranges...)
				v = w
			}
			c := v.Clone()
			for i := range c.Len() {
				if c.Float(i) != v.Float(i) {
					t.Fatalf("shape %v of %v: element %d is %g, not %g", v.Shape(), shape, i, c.Float(i), v.Float(i))
				}
			}
		}
	}
}
