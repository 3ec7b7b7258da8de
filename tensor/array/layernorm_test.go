package array_test

import (
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestLayerNorm: several threads compute the bits of one, of any layout, and a gain or a bias that is
// missing leaves numbers as they are.
func TestLayerNorm(t *testing.T) {
	defer divide.Always.Store(divide.Always.Load())
	rng := rand.New(rand.NewPCG(9, 10))
	var one array.Workspace
	several := array.Workspace{Threads: kernel.NewThreads(3)}
	for try := range 100 {
		rows, n := 1+rng.IntN(20), 1+rng.IntN(50)
		x, gain, bias := randomLayout(rng, array.Float32, 2, rows, n), randomLayout(rng, array.Float32, 1, 1, n), randomLayout(rng, array.Float32, 1, 1, n)
		if try%2 == 0 {
			bias = nil
		}
		if try%4 == 0 {
			gain = nil
		}
		want, got := array.New(array.Float32, 2, rows, n), array.New(array.Float32, 2, rows, n)
		divide.Always.Store(false)
		if err := one.LayerNorm(want, x.Clone(), gain, bias, 7, 1e-5); err != nil {
			t.Fatal(err)
		}
		divide.Always.Store(true)
		if err := several.LayerNorm(got, x, gain, bias, 7, 1e-5); err != nil {
			t.Fatal(err)
		}
		if !array.Equal(got, want) {
			t.Fatalf("try %d, shape %v: other bits", try, x.Shape())
		}
		if gain == nil || bias != nil {
			continue
		}
		if err := one.LayerNorm(got, x, nil, nil, 7, 1e-5); err != nil {
			t.Fatal(err)
		}
		one.Map(product(), []*array.Array{got}, []*array.Array{got, gain})
		if !array.Equal(got, want) {
			t.Fatalf("try %d, shape %v: a gain alone has other bits", try, x.Shape())
		}
	}
}

// product returns a program that multiplies.
func product() *array.Program {
	p := array.NewProgram(array.Float32, array.Float32)
	return p.Return(p.Append(array.Mul, 0, 1))
}
