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

// TestArgMaxLayouts: the places of extremes do not depend on where elements lie, also of equal ones, of NaN and infinities.
func TestArgMaxLayouts(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	values := []float64{0, math.Copysign(0, -1), 1, 1, -1, 2, -2, math.Inf(1), math.Inf(-1), math.NaN()}
	var ws array.Workspace
	for trial := range 300 {
		n := 1 + r.Intn(70)
		x, apart := array.New(array.Float32, 3, n), array.New(array.Float32, 3, 2*n)
		for i := range x.Len() {
			x.SetFloat(i, values[r.Intn(len(values)-trial%4)]) // without NaN, or without infinities either
		}
		view := new(array.Array)
		*view = *apart
		view.RangeTo(view, array.Range{Step: 1, Count: 3}, array.Range{Step: 2, Count: n})
		array.CopyTo(view, x)
		for name, find := range map[string]func(out, in *array.Array, axes array.Axes) error{"largest": ws.ArgMax, "least": ws.ArgMin} {
			for _, axis := range []int{0, 1} {
				size := []int{n, 3}[axis]
				got, want := array.New(array.Int64, size), array.New(array.Int64, size)
				wide := x.Cast(array.Float64)
				if err := errors.Join(find(got, x, 1<<axis), find(want, wide, 1<<axis)); err != nil {
					t.Fatal(err)
				}
				other := array.New(array.Int64, size)
				if err := find(other, view, 1<<axis); err != nil {
					t.Fatal(err)
				}
				for i := range size {
					if got.Int(i) != want.Int(i) || other.Int(i) != want.Int(i) {
						t.Fatalf("the %s of %v along %d, %d: at %d and %d, want %d", name, x, axis, i, got.Int(i), other.Int(i), want.Int(i))
					}
				}
			}
		}
	}
}
