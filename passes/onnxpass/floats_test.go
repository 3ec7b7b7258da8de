package onnxpass_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/nnopt/nnopt/passes/onnxpass/internal/floats"
)

// TestScaleFloats: floats are multiplied one by one, and an infinity or NaN is seen wherever it is, by Finite too.
func TestScaleFloats(t *testing.T) {
	inf := float32(math.Inf(1))
	for n := range 12 {
		for at := -1; at < n; at++ {
			for _, odd := range []float32{inf, -inf, float32(math.NaN()), math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32} {
				from, to := make([]byte, 4*n), make([]byte, 4*n)
				for i := range n {
					x := float32(i) - 2.5
					if i == at {
						x = odd
					}
					binary.LittleEndian.PutUint32(from[4*i:], math.Float32bits(x))
				}
				isFinite := at < 0 || odd-odd == 0
				if floats.Finite(from) != isFinite {
					t.Errorf("%v at %d of %d is finite: %v", odd, at, n, !isFinite)
				}
				for _, f := range []float32{1, -0.75, 2} {
					still := isFinite
					finite := floats.Scale(to, from, f)
					for i := range n {
						x := math.Float32frombits(binary.LittleEndian.Uint32(from[4*i:]))
						want, got := x*f, math.Float32frombits(binary.LittleEndian.Uint32(to[4*i:]))
						if math.Float32bits(got) != math.Float32bits(want) && got == got {
							t.Errorf("%v·%v is %v", x, f, got)
						}
						still = still && want-want == 0
					}
					if finite != still {
						t.Errorf("%v at %d of %d, times %v: finite is %t", odd, at, n, f, finite)
					}
				}
			}
		}
	}
}
