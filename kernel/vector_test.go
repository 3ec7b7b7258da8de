package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// vectorFuncs are the functions of vectors with one signature: from x, y and z to dst, which some
// also read. Those that return a number store it in dst.
var vectorFuncs = []struct {
	name string
	f    func(s kernelSet, dst, x, y, z []float32)
}{
	{"add", func(s kernelSet, dst, x, y, z []float32) { s.add(dst, x) }},
	{"addScaled", func(s kernelSet, dst, x, y, z []float32) { s.addScaled(dst, x, 0.66) }},
	{"addNumber", func(s kernelSet, dst, x, y, z []float32) { s.addNumber(dst, x, 0.66) }},
	{"scale", func(s kernelSet, dst, x, y, z []float32) { s.scale(dst, x, 0.66) }},
	{"scaleFloor", func(s kernelSet, dst, x, y, z []float32) { s.scaleFloor(dst, x, 0.66, 0.2) }},
	{"mul", func(s kernelSet, dst, x, y, z []float32) { s.mul(dst, x, y) }},
	{"addMul", func(s kernelSet, dst, x, y, z []float32) { s.addMul(dst, x, y) }},
	{"addScaledMul", func(s kernelSet, dst, x, y, z []float32) { s.addScaledMul(dst, x, y, 0.66) }},
	{"mulAdd", func(s kernelSet, dst, x, y, z []float32) { s.mulAdd(dst, x, y, z) }},
	{"subMul", func(s kernelSet, dst, x, y, z []float32) { s.subMul(dst, x, y, z) }},
	{"centreDeriv", func(s kernelSet, dst, x, y, z []float32) { s.centreDeriv(dst, x, y, z, y, z) }},
	{"reluSigns", func(s kernelSet, dst, x, y, z []float32) {
		signs := make([]uint16, (len(x)+block-1)/block)
		s.reluSigns(dst, x, signs)
		s.signsDeriv(dst, y, signs)
	}},
	{"relu", func(s kernelSet, dst, x, y, z []float32) { s.relu(dst, x) }},
	{"reluDeriv", func(s kernelSet, dst, x, y, z []float32) { s.reluDeriv(dst, x, y) }},
	{"sigmoidDeriv", func(s kernelSet, dst, x, y, z []float32) { s.sigmoidDeriv(dst, x, y) }},
	{"tanhDeriv", func(s kernelSet, dst, x, y, z []float32) { s.tanhDeriv(dst, x, y) }},
	{"logSoftmaxDeriv", func(s kernelSet, dst, x, y, z []float32) { s.logSoftmaxDeriv(dst, x, y, 0.66) }},
	{"fma", func(s kernelSet, dst, x, y, z []float32) { s.fma(dst, x, 0.66) }},
	{"colMoments", func(s kernelSet, dst, x, y, z []float32) {
		sum, product := make([]float32, len(x)), make([]float64, len(x))
		a, b := New(fewSumRows+chunkRows+15, len(x)), New(fewSumRows+chunkRows+15, len(x)+1)
		b.Cols--
		for i := range a.Rows {
			copy(Row(a, i), [][]float32{x, y, z}[i%3])
			copy(Row(b, i), [][]float32{y, z, x}[i%3])
		}
		for _, rows := range []int{a.Rows, fewSumRows - 1} {
			s.colMoments(sum, 0.3, product, Rows(a, 0, rows), Rows(b, 0, rows))
			s.colMoments(sum, -1, nil, Rows(b, 0, rows), Matrix{})
		}
		for i := range dst {
			dst[i] = sum[i] - float32(product[i]/3)
		}
	}},
	{"sums", func(s kernelSet, dst, x, y, z []float32) {
		sum, sumsq := make([]float64, len(x)), make([]float64, len(x))
		for range 2 {
			s.sums(sum, x)
			s.squares(sumsq, x)
		}
		for i := range dst {
			dst[i] = float32(sum[i] - sumsq[i]/3)
		}
	}},
	{"sigmoid", func(s kernelSet, dst, x, y, z []float32) { s.sigmoid(dst, x) }},
	{"tanh", func(s kernelSet, dst, x, y, z []float32) { s.tanh(dst, x) }},
	{"exp", func(s kernelSet, dst, x, y, z []float32) {
		if sum := float32(s.exp(dst, x, 0.5)); len(dst) > 0 {
			dst[0] = sum
		}
	}},
	{"expSum", storing(func(s kernelSet, x, y []float32) float32 { return float32(s.expSum(x, 0.5)) })},
	{"dot", storing(kernelSet.dot)},
	{"max", storing(func(s kernelSet, x, y []float32) float32 { return s.max(x) })},
}

func storing(f func(s kernelSet, x, y []float32) float32) func(s kernelSet, dst, x, y, z []float32) {
	return func(s kernelSet, dst, x, y, z []float32) {
		if v := f(s, x, y); len(dst) > 0 {
			dst[0] = v
		}
	}
}

// The assembly computes the bits of the Go code, for any length and address, also in place, and
// accesses no other memory.
func TestVectors(t *testing.T) {
	for _, set := range ownSets() {
		if set == goSet {
			continue
		}
		for _, c := range vectorFuncs {
			t.Run(fmt.Sprintf("%s/%s", set, c.name), func(t *testing.T) {
				r := rand.New(rand.NewPCG(3, 4))
				for n := range 100 {
					vec := func() []float32 { return guarded(t, r, 1, n, 0, n%3 == 1).Data }
					dst, x, y, z := vec(), vec(), vec(), vec()
					want := slices.Clone(dst)
					c.f(goSet, want, x, y, z)
					c.f(set, dst, x, y, z)
					for i := range want {
						if !sameBits(want[i], dst[i]) {
							t.Fatalf("%d elements: number %d is %v, want %v (x %v, y %v)", n, i, dst[i], want[i], x[i], y[i])
						}
					}
					c.f(goSet, x, slices.Clone(x), y, z)
					again := slices.Clone(x)
					c.f(goSet, again, slices.Clone(again), y, z)
					c.f(set, x, x, y, z)
					for i := range again {
						if !sameBits(again[i], x[i]) {
							t.Fatalf("%d elements in place: number %d is %v, want %v", n, i, x[i], again[i])
						}
					}
				}
			})
		}
	}
}

// Over the whole range of float32, the exponentials in assembly have the bits of those in Go, whose
// accuracy TestExp and TestSigmoid1AndTanh1 measure.
func TestExponentialBits(t *testing.T) {
	const n, step = 4096, 20011
	x, got := make([]float32, n), make([]float32, n)
	for _, set := range ownSets() {
		for first := uint64(0); first < 1<<32; first += n * step {
			for i := range x {
				x[i] = math.Float32frombits(uint32(first + uint64(i)*step))
			}
			for name, f := range map[string]struct {
				vector func()
				scalar func(float32) float32
			}{
				"exp":     {func() { set.exp(got, x, 0) }, exp},
				"sigmoid": {func() { set.sigmoid(got, x) }, sigmoid},
				"tanh":    {func() { set.tanh(got, x) }, tanh},
			} {
				f.vector()
				for i, v := range x {
					if want := f.scalar(v); !sameBits(got[i], want) {
						t.Fatalf("%s: %s(%g) = %g, want %g", set, name, v, got[i], want)
					}
				}
			}
		}
	}
}

func BenchmarkVectors(b *testing.B) {
	r := newRand()
	for _, set := range ownSets() {
		for _, c := range vectorFuncs {
			for _, n := range []int{40, 4096, 1 << 20} {
				b.Run(fmt.Sprintf("%s/%s/%d", set, c.name, n), func(b *testing.B) {
					dst, x, y, z := random(r, 1, n, 0).Data, random(r, 1, n, 0).Data, random(r, 1, n, 0).Data, random(r, 1, n, 0).Data
					b.SetBytes(int64(4 * n))
					for b.Loop() {
						c.f(set, dst, x, y, z)
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/element")
				})
			}
		}
	}
}
