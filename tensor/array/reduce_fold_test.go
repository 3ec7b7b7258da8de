package array_test

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/tensor/array"
)

// What of a long sum is added up by itself: terms along memory, and rows.
const blockTerms, blockRows = 1 << 14, 256

// longSum is the documented order of the sum of x: blocks of blockTerms terms, and in each of them
// eight partial sums of every eighth term.
func longSum(x []float64) (sum float64) {
	for i := 0; i < len(x); i += blockTerms {
		block := x[i:min(i+blockTerms, len(x))]
		var s [8]float64
		whole := len(block) &^ 7
		for j, v := range block[:whole] {
			s[j%8] += v
		}
		b := 0 + ((s[0] + s[1]) + (s[2] + s[3]) + ((s[4] + s[5]) + (s[6] + s[7])))
		for _, v := range block[whole:] {
			b += v
		}
		sum += b
	}
	return sum
}

// TestOrderOfSums: blocks have the documented numbers of terms.
func TestOrderOfSums(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{100, blockTerms, blockTerms + 1, 3*blockTerms - 5, 5 * blockTerms} {
		x := make([]float64, n)
		for i := range x {
			x[i] = r.NormFloat64() * math.Exp2(float64(r.IntN(20)))
		}
		out := array.New(array.Float64)
		if err := new(array.Workspace).Reduce(array.Sum, out, array.Of(x, n), 1); err != nil || out.Float(0) != longSum(x) {
			t.Errorf("%d terms: %v, want %v (%v)", n, out.Float(0), longSum(x), err)
		}
	}
	const cols = 3
	for _, n := range []int{7, blockRows, blockRows + 1, 5*blockRows + 3} {
		x := make([]float64, n*cols)
		for i := range x {
			x[i] = r.NormFloat64() * math.Exp2(float64(r.IntN(20)))
		}
		out := array.New(array.Float64, cols)
		if err := new(array.Workspace).Reduce(array.Sum, out, array.Of(x, n, cols), 1); err != nil {
			t.Fatal(err)
		}
		for j := range cols {
			want := 0.0
			for lo := 0; lo < n; lo += blockRows {
				b := 0.0
				for i := lo; i < min(lo+blockRows, n); i++ {
					b += x[i*cols+j]
				}
				want += b
			}
			if out.Float(j) != want {
				t.Errorf("%d rows: %v, want %v", n, out.Float(j), want)
			}
		}
	}
}

// TestLongSumBits: long reductions have the same bits on every processor.
func TestLongSumBits(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	h := fnv.New64a()
	for _, dtype := range []array.DType{array.Float32, array.Float64} {
		for _, shape := range [][]int{{3*blockTerms + 77}, {2, blockTerms + 9}, {2*blockRows + 50, 37}} {
			x := randomArray(r, dtype, shape...)
			for _, op := range []array.Reduction{array.Sum, array.Prod, array.LogSumExp} {
				for _, axes := range []array.Axes{1, 1<<len(shape) - 1} {
					var left []int
					if axes == 1 {
						left = shape[1:]
					}
					out := array.New(op.Result(dtype), left...)
					if err := new(array.Workspace).Reduce(op, out, x, axes); err != nil {
						t.Fatal(err)
					}
					for i := range out.Len() {
						bits := math.Float64bits(out.Float(i))
						for range 8 {
							h.Write([]byte{byte(bits)})
							bits >>= 8
						}
					}
				}
			}
		}
	}
	if want := uint64(0x5f7e413dd4a6a128); h.Sum64() != want {
		t.Errorf("the sum of all bits is %#x, not %#x", h.Sum64(), want)
	}
}

// TestLongProducts: a product whose first terms underflow stays zero, although others overflow.
func TestLongProducts(t *testing.T) {
	divide.Always.Store(true)
	defer divide.Always.Store(false)
	x := make([]float64, 4*blockTerms)
	for i := range x {
		x[i] = 0.5
		if i > 2*blockTerms {
			x[i] = 2
		}
	}
	for _, ws := range []*array.Workspace{{}, {Threads: kernel.NewThreads(2)}} {
		out := array.New(array.Float64)
		if err := ws.Reduce(array.Prod, out, array.Of(x, len(x)), 1); err != nil || out.Float(0) != 0 {
			t.Errorf("%v, want 0 (%v)", out.Float(0), err)
		}
	}
}

// TestQuickExtremes: the extremes of many float32s at a time are those of one after the other, the signs of zeros, too.
func TestQuickExtremes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	strange := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, float32(math.Copysign(0, -1))}
	var ws array.Workspace
	extreme := func(op array.Reduction, x *array.Array) float32 {
		out := array.New(array.Float32)
		if err := ws.Reduce(op, out, x, 1); err != nil {
			t.Fatal(err)
		}
		return array.Slice[float32](out)[0]
	}
	for i := range 300 {
		x := make([]float32, 32+r.IntN(200))
		for k := range x {
			switch x[k] = float32(r.NormFloat64()); i % 3 {
			case 0:
				x[k] = strange[3+r.IntN(2)]
			case 1:
				x[k] = float32(math.Copysign(float64(x[k]), float64(i%2)-0.5))
			}
		}
		if i%4 == 0 {
			x[r.IntN(len(x))] = strange[r.IntN(len(strange))]
		}
		apart := array.New(array.Float32, 2*len(x)) // which are compared one after the other
		apart.RangeTo(apart, array.Range{Step: 2, Count: len(x)})
		array.CopyTo(apart, array.Of(x, len(x)))
		for _, op := range []array.Reduction{array.Max, array.Min} {
			got, want := extreme(op, array.Of(x, len(x))), extreme(op, apart)
			if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
				t.Fatalf("%v of %v: %v, want %v", op, x, got, want)
			}
		}
	}
}
