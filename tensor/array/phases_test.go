package array_test

import (
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestPhases: phases compute what adding windows up does, for one to three dimensions, several strides, and padding that cuts off
// less or more than there is. Weights that strides do not divide have none, nor have arrays of float64.
func TestPhases(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	with := 0
	for trial := range 400 {
		in, out, groups := 1+r.IntN(20), 1+r.IntN(5), 1
		if trial%3 == 0 {
			in, groups = 1, 16+r.IntN(9)
			out = groups
		}
		w := array.Window{Dims: 1 + r.IntN(3)}
		y, x, weights := []int{1 + r.IntN(2), out}, []int{1, groups * in}, []int{out, in}
		for d := range w.Dims {
			w.Stride[d], w.Dilation[d] = 1+r.IntN(3), 1
			w.Size[d] = w.Stride[d]*(1+r.IntN(2)) + r.IntN(4)/3
			w.Before[d], w.After[d] = r.IntN(4)-1, r.IntN(4)-1
			n := 1 + r.IntN(longtest.Of(20/w.Dims, 20))
			size := max((n-1)*w.Stride[d]+w.Size[d]-w.Before[d]-w.After[d], 1) + r.IntN(w.Stride[d])
			y, x, weights = append(y, w.OutputSize(d, size, false)), append(x, size), append(weights, w.Size[d])
		}
		x[0] = y[0]
		a, b, got := array.New(array.Float32, y...), array.New(array.Float32, weights...), array.New(array.Float32, x...)
		for _, v := range []*array.Array{a, b, got} {
			for i := range v.Len() {
				v.SetFloat(i, r.NormFloat64())
			}
		}
		ws := new(array.Workspace)
		want := array.New(array.Float64, x...)
		if err := ws.ConvTranspose(want, a.Cast(array.Float64), b.Cast(array.Float64), nil, w, groups); err != nil {
			t.Fatal(err)
		}
		prepared := func(*array.Workspace) *array.LastWeights {
			with++ // nothing else asks
			return array.PhaseWeights(b, w, nil)
		}
		if err := ws.ConvTranspose(got, a, b, prepared, w, groups); err != nil {
			t.Fatal(err)
		}
		for i := range want.Len() {
			if d := want.Float(i) - got.Float(i); d > 1e-4 || d < -1e-4 {
				t.Fatalf("trial %d: %+v, %v to %v: element %d is %v, want %v", trial, w, y, x, i, got.Float(i), want.Float(i))
			}
		}
	}
	if with < 40 {
		t.Errorf("only %d of them have phases", with)
	}
}
