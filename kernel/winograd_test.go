package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestWinograd: combinations of the input and of weights, multiplied and combined, are the sums of
// windows, for integers, which only those of 4 outputs round.
func TestWinograd(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{2, 4} {
		in, out := Winograd2In, Winograd2Out
		if n == 4 {
			in, out = Winograd4In, Winograd4Out
		}
		var d, u, y [6]float32
		w := [3]float64{24 * float64(r.IntN(9)-4), 24 * float64(r.IntN(9)-4), 24 * float64(r.IntN(9)-4)}
		x := d
		for i := range x {
			x[i] = float32(r.IntN(9) - 4)
		}
		in.Combine(Lines{d[:], 1, 0}, Lines{x[:], 1, 0}, 1, 1)
		for i, f := range WinogradWeights(n, w[0], w[1], w[2]) {
			u[i] = d[i] * float32(f)
		}
		out.Combine(Lines{y[:], 1, 0}, Lines{u[:], 1, 0}, 1, 1)
		for i := range n {
			if want := float32(w[0])*x[i] + float32(w[1])*x[i+1] + float32(w[2])*x[i+2]; math.Abs(float64(y[i]-want)) > float64(n/4)*1e-4*24 {
				t.Errorf("output %d of %d is %v, want %v", i, n, y[i], want)
			}
		}
	}
}

// TestCombine compares the sets of kernels, next to unmapped memory.
func TestCombine(t *testing.T) {
	defer func(old kernelSet) { bestSet = old }(bestSet)
	r := rand.New(rand.NewPCG(3, 4))
	for way := Winograd2In; way <= Winograd4Out; way++ {
		in, out := way.sizes()
		for _, n := range []int{1, 15, 16, 17, 31, 32, 50} {
			for _, pieces := range []int{1, 3} {
				src := Lines{guarded(t, r, 1, 2*n*pieces+(in-1)*(n+1)-n, 0, false).Data, n + 1, 2 * n}
				dst := Lines{nil, 3 * pieces * n, n + 2}
				var want []float32
				bestSet = goSet
				for _, set := range ownSets() {
					bestSet = set
					dst.Data = guarded(t, r, 1, (out-1)*dst.Line+(pieces-1)*dst.Next+n, 0, false).Data
					clear(dst.Data)
					way.Combine(dst, src, pieces, n)
					if want == nil {
						want = append(want, dst.Data...)
					}
					for i, v := range dst.Data {
						if !sameBits(want[i], v) {
							t.Fatalf("%v, way %d, %d pieces of %d: element %d is %v, want %v", set, way, pieces, n, i, v, want[i])
						}
					}
				}
			}
		}
		for _, wrong := range []Lines{{make([]float32, 30), 8, 0}, {make([]float32, 1000), -1, 0}, {make([]float32, 1000), 1, 1 << 62}} {
			mustPanic(t, fmt.Sprint("way ", way, ", distances ", wrong.Line, wrong.Next), func() {
				way.Combine(Lines{make([]float32, 1000), 16, 16}, wrong, 2, 9)
			})
		}
	}
}
