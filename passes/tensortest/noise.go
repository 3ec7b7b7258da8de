package tensortest

import (
	"math/rand/v2"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// noise computes everything a second time, with every float that is not an input off by a few units
// in the last place. What differs by more than the bounds below magnifies rounding so much that
// two right ways to compute it may differ visibly. The idea is Parker's (Monte Carlo Arithmetic,
// 1997).
type noise struct {
	rng    *rand.Rand
	values map[*variable]*array.Array
	single map[*variable]bool // computed from a float32
}

// The relative size of the noise, and the largest difference that it may make, for what is computed
// in float64 only, and for what is computed from a float32.
const (
	noiseDouble, maxDouble = 1e-15, 1e-12
	noiseSingle, maxSingle = 5e-7, 5e-5
)

func newNoise(seed uint64) noise {
	return noise{rand.New(rand.NewPCG(seed, 43)), make(map[*variable]*array.Array), make(map[*variable]bool)}
}

// exact gives a variable a value without noise.
func (n noise) exact(v *variable, a *array.Array) {
	n.values[v], n.single[v] = a, a.DType() == array.Float32
}

// apply computes an apply with noise, and reports whether its outputs are about those without.
func (n noise) apply(a *fgraph.Apply, k tensor.Kernel, want []*array.Array) bool {
	in := make([]*array.Array, len(a.Inputs()))
	single := false
	for i, v := range a.Inputs() {
		in[i] = n.values[v]
		single = single || n.single[v]
	}
	out, ok := run(a, k, in)
	if !ok {
		return false
	}
	for i, v := range a.Outputs() {
		n.single[v] = single || out[i].DType() == array.Float32
		size, most := noiseDouble, maxDouble
		if n.single[v] {
			size, most = noiseSingle, maxSingle
		}
		if !(array.MaxRelDiff(want[i], out[i]) <= most) {
			return false
		}
		n.values[v] = n.disturbed(out[i], size)
	}
	return true
}

// disturbed returns a copy of an array with noise.
func (n noise) disturbed(a *array.Array, size float64) *array.Array {
	if !a.DType().IsFloat() || a.IsCSR() {
		return a
	}
	b := a.Clone()
	if a.DType() == array.Float64 {
		size = min(size, noiseDouble) // also if it is computed from a float32
	}
	for i := range b.Len() {
		r := float64(n.rng.Float64()) - 0.5
		b.SetFloat(i, b.Float(i)*(1+float64(2*size*r)))
	}
	return b
}
