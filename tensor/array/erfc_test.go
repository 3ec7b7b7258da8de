package array_test

import (
	"math"
	"testing"

	"github.com/nnopt/nnopt/internal/kernel/elementary"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestErfc compares erfc of float32s with that of float64s: at most six units in the last place lie
// between them, also in the tail and where results are subnormal.
func TestErfc(t *testing.T) {
	const n, step = 512, 9973
	x, got := make([]float32, n), make([]float32, n)
	p := array.NewProgram(array.Float32)
	p.Return(p.Append(array.Erfc, 0))
	var ws array.Workspace
	erfc := func(dst, x []float32) {
		ws.Map(p, []*array.Array{array.Of(dst, len(dst))}, []*array.Array{array.Of(x, len(x))})
	}
	for first := uint64(0); first < 1<<32; first += n * step {
		for i := range x {
			x[i] = math.Float32frombits(uint32(first + uint64(i)*step))
		}
		erfc(got, x)
		for i, v := range got {
			want := float32(elementary.Erfc(float64(x[i])))
			if v != v && want != want {
				continue
			}
			if d := int64(math.Float32bits(v)) - int64(math.Float32bits(want)); d < -6 || d > 6 {
				t.Fatalf("erfc(%g) is %g, not %g", x[i], v, want)
			}
		}
	}
	for _, v := range []struct{ x, want float64 }{{math.Inf(1), 0}, {math.Inf(-1), 2}, {0, 1}, {math.Copysign(0, -1), 1}} {
		x[0] = float32(v.x)
		if erfc(got[:1], x[:1]); got[0] != float32(v.want) {
			t.Errorf("erfc(%g) is %g, not %g", v.x, got[0], v.want)
		}
	}
}
