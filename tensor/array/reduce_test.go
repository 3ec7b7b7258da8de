package array_test

import (
	"errors"
	"math"
	"math/rand"
	"testing"

	"github.com/nnopt/nnopt/tensor/array"
)

// TestExtremesOfViews: the least and the largest element of a view are those of a copy, in bits: of zeros, the first
// one has the sign.
func TestExtremesOfViews(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	values := []float32{0, float32(math.Copysign(0, -1)), 1, 2, -1, -2}
	for range 1000 {
		shape := []int{1 + rng.Intn(5), 1 + rng.Intn(5), 1 + rng.Intn(40)}
		x := make([]float32, shape[0]*shape[1]*shape[2])
		some := values[rng.Intn(4):][:3]
		for k := range x {
			x[k] = some[rng.Intn(3)]
		}
		if rng.Intn(4) == 0 {
			x[rng.Intn(len(x))] = float32(math.NaN())
		}
		v := array.Of(x, shape...).Transpose(rng.Perm(3)...)
		for _, r := range []array.Reduction{array.Max, array.Min} {
			var ws array.Workspace
			got, want := array.New(array.Float32), array.New(array.Float32)
			if err := errors.Join(ws.Reduce(r, got, v, 7), ws.Reduce(r, want, v.Clone(), 7)); err != nil {
				t.Fatal(err)
			}
			if g, w := got.Float(0), want.Float(0); math.Float64bits(g) != math.Float64bits(w) {
				t.Errorf("%v of %v: %v, want %v", r, v, g, w)
			}
		}
	}
}
