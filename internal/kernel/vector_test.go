package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/internal/half"
	"github.com/nnopt/nnopt/internal/longtest"
)

// vectorFuncs are the functions of vectors with one signature: from x, y and z to dst, which some
// also read. Those that return a number store it in dst.
var vectorFuncs = []struct {
	name string
	f    func(dst, x, y, z []float32)
}{
	{"add", func(dst, x, y, z []float32) { addVec(dst, x) }},
	{"addScaled", func(dst, x, y, z []float32) { addScaled(dst, x, 0.66) }},
	{"addNumber", func(dst, x, y, z []float32) { addNumber(dst, x, 0.66) }},
	{"scale", func(dst, x, y, z []float32) { ScaleVec(dst, 0.66, x) }},
	{"scaleFloor", func(dst, x, y, z []float32) { scaleFloor(dst, x, 0.66, 0.2) }},
	{"mul", func(dst, x, y, z []float32) { MulVec(dst, x, y) }},
	{"map add", func(dst, x, y, z []float32) { Float32Map("add")(dst, x, y) }},
	{"map sub", func(dst, x, y, z []float32) { Float32Map("sub")(dst, x, y) }},
	{"map div", func(dst, x, y, z []float32) { Float32Map("div")(dst, x, y) }},
	{"map max", func(dst, x, y, z []float32) { Float32Map("max")(dst, x, y) }},
	{"map min", func(dst, x, y, z []float32) { Float32Map("min")(dst, x, y) }},
	{"map sqrt", func(dst, x, y, z []float32) { Float32Map("sqrt")(dst, x, nil) }},
	{"hard sigmoid", func(dst, x, y, z []float32) { HardSigmoidVec(dst, x, 0.2, 0.5, 0, 1) }},
	{"hard swish", func(dst, x, y, z []float32) { HardSwishVec(dst, x, 1.0/6, 0.5, 0, 1) }},
	{"leaky ReLU", func(dst, x, y, z []float32) { LeakyReLUVec(dst, x, 0.2, -0.4) }},
	{"map abs", func(dst, x, y, z []float32) { Float32Map("abs")(dst, x, nil) }},
	{"map round", func(dst, x, y, z []float32) { Float32Map("round")(dst, x, nil) }},
	{"map floor", func(dst, x, y, z []float32) { Float32Map("floor")(dst, x, nil) }},
	{"map ceil", func(dst, x, y, z []float32) { Float32Map("ceil")(dst, x, nil) }},
	{"map trunc", func(dst, x, y, z []float32) { Float32Map("trunc")(dst, x, nil) }},
	{"map neg", func(dst, x, y, z []float32) { Float32Map("neg")(dst, x, nil) }},
	{"gelu", func(dst, x, y, z []float32) { GELUVec(dst, x, y) }},
	{"gelu of", func(dst, x, y, z []float32) { GELUOfVec(dst, x, math.Sqrt2, 0.5) }},
	{"layer norm", func(dst, x, y, z []float32) { LayerNormRows(dst, x, max(1, len(x)), y, z, 5, 1e-5) }},
	{"layer norm of seven rows", func(dst, x, y, z []float32) {
		n := len(x) / 7
		LayerNormRows(dst[:7*n], x[:7*n], max(1, n), nil, nil, 9, 1e-5)
	}},
	{"sums of rows", func(dst, x, y, z []float32) {
		n := 1 + len(x)/5
		RowSums(dst, x[:len(x)/n*n], n)
	}},
	{"map erf", func(dst, x, y, z []float32) { Float32Map("erf")(dst, x, nil) }},
	{"map expm1", func(dst, x, y, z []float32) { Float32Map("expm1")(dst, x, nil) }},
	{"map erfc", func(dst, x, y, z []float32) { Float32Map("erfc")(dst, x, nil) }},
	{"addMul", func(dst, x, y, z []float32) { AddMulVec(dst, x, y) }},
	{"addScaledMul", func(dst, x, y, z []float32) { addScaledMul(dst, x, y, 0.66) }},
	{"mulAdd", func(dst, x, y, z []float32) { MulAddVec(dst, x, y, z) }},
	{"subMul", func(dst, x, y, z []float32) { SubMulVec(dst, x, y, z) }},
	{"centreDeriv", func(dst, x, y, z []float32) { centreDeriv(dst, x, y, z, y, z) }},
	{"reluSigns", func(dst, x, y, z []float32) {
		signs := make([]uint16, (len(x)+block-1)/block)
		reluSigns(dst, x, signs)
		signsDeriv(dst, y, signs)
	}},
	{"relu", func(dst, x, y, z []float32) { ReLUVec(dst, x) }},
	{"reluDeriv", func(dst, x, y, z []float32) { ReLUDerivVec(dst, x, y) }},
	{"sigmoidDeriv", func(dst, x, y, z []float32) { SigmoidDerivVec(dst, x, y) }},
	{"tanhDeriv", func(dst, x, y, z []float32) { TanhDerivVec(dst, x, y) }},
	{"logSoftmaxDeriv", func(dst, x, y, z []float32) { logSoftmaxDeriv(dst, x, y, 0.66) }},
	{"fma", func(dst, x, y, z []float32) { FMAVec(dst, 0.66, x) }},
	{"colMoments", func(dst, x, y, z []float32) {
		sum, product := make([]float32, len(x)), make([]float64, len(x))
		a, b := New(fewSumRows+chunkRows+15, len(x)), New(fewSumRows+chunkRows+15, len(x)+1)
		b.Cols--
		for i := range a.Rows {
			copy(Row(a, i), [][]float32{x, y, z}[i%3])
			copy(Row(b, i), [][]float32{y, z, x}[i%3])
		}
		for _, rows := range []int{a.Rows, fewSumRows - 1} {
			colMoments(sum, 0.3, product, Rows(a, 0, rows), Rows(b, 0, rows))
			colMoments(sum, -1, nil, Rows(b, 0, rows), Matrix{})
		}
		for i := range dst {
			dst[i] = sum[i] - float32(product[i]/3)
		}
	}},
	{"sums", func(dst, x, y, z []float32) {
		sum, sumsq := make([]float64, len(x)), make([]float64, len(x))
		for range 2 {
			AddVecToDoubles(sum, x)
			addSquares(sumsq, x)
		}
		for i := range dst {
			dst[i] = float32(sum[i] - sumsq[i]/3)
		}
	}},
	{"sigmoid", func(dst, x, y, z []float32) { SigmoidVec(dst, x) }},
	{"tanh", func(dst, x, y, z []float32) { TanhVec(dst, x) }},
	{"exp", func(dst, x, y, z []float32) {
		if sum := ExpVec(dst, x, 0.5); len(dst) > 0 {
			dst[0] = sum
		}
	}},
	{"expSum", storing(func(x, y []float32) float32 { return float32(expSum(x, 0.5)) })},
	{"dot", storing(Dot)},
	{"max", storing(func(x, y []float32) float32 { return maxVec(x) })},
}

func storing(f func(x, y []float32) float32) func(dst, x, y, z []float32) {
	return func(dst, x, y, z []float32) {
		if v := f(x, y); len(dst) > 0 {
			dst[0] = v
		}
	}
}

// The assembly computes the bits of the Go code, for any length and address, also in place, and
// accesses no other memory.
func TestVectors(t *testing.T) {
	defer func(old kernelSet) { bestSet = old }(bestSet)
	for _, set := range ownSets() {
		if set == goSet {
			continue
		}
		for _, c := range vectorFuncs {
			t.Run(fmt.Sprintf("%s/%s", set, c.name), func(t *testing.T) {
				r := rand.New(rand.NewPCG(3, 4))
				for n := range 150 {
					if !longtest.Enabled() && n > 20 && n%11 > 0 {
						continue // loops of all kinds and their ends are in shorter ones
					}
					vec := func() []float32 { return guarded(t, r, 1, n, 0, n%3 == 1).Data }
					dst, x, y, z := vec(), vec(), vec(), vec()
					want := slices.Clone(dst)
					with := func(set kernelSet, dst, x, y, z []float32) {
						bestSet = set
						c.f(dst, x, y, z)
					}
					with(goSet, want, x, y, z)
					with(set, dst, x, y, z)
					for i := range want {
						if !sameBits(want[i], dst[i]) {
							t.Fatalf("%d elements: number %d is %v, want %v (x %v, y %v)", n, i, dst[i], want[i], x[i], y[i])
						}
					}
					with(goSet, x, slices.Clone(x), y, z)
					again := slices.Clone(x)
					with(goSet, again, slices.Clone(again), y, z)
					with(set, x, x, y, z)
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
// accuracy TestExp and TestErrors measure.
func TestExponentialBits(t *testing.T) {
	const n, step = 4096, 20011
	x, got := make([]float32, n), make([]float32, n)
	defer func(old kernelSet) { bestSet = old }(bestSet)
	for _, set := range ownSets() {
		bestSet = set
		for first := uint64(0); first < 1<<32; first += n * step {
			for i := range x {
				x[i] = math.Float32frombits(uint32(first + uint64(i)*step))
			}
			for name, f := range map[string]struct {
				vector func()
				scalar func(float32) float32
			}{
				"exp":     {func() { ExpVec(got, x, 0) }, exp},
				"sigmoid": {func() { SigmoidVec(got, x) }, sigmoid},
				"tanh":    {func() { TanhVec(got, x) }, tanh},
				"erf":     {func() { Float32Map("erf")(got, x, nil) }, erf},
				"expm1":   {func() { Float32Map("expm1")(got, x, nil) }, expm1},
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
	defer func(old kernelSet) { bestSet = old }(bestSet)
	r := newRand()
	for _, set := range ownSets() {
		for _, c := range vectorFuncs {
			for _, n := range []int{40, 4096, 1 << 20} {
				b.Run(fmt.Sprintf("%s/%s/%d", set, c.name, n), func(b *testing.B) {
					dst, x, y, z := random(r, 1, n, 0).Data, random(r, 1, n, 0).Data, random(r, 1, n, 0).Data, random(r, 1, n, 0).Data
					b.SetBytes(int64(4 * n))
					bestSet = set
					for b.Loop() {
						c.f(dst, x, y, z)
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/element")
				})
			}
		}
	}
}

// TestFloat32Map: NaN and zeros of either sign, in either argument, give the same in assembly and in
// Go.
func TestFloat32Map(t *testing.T) {
	defer func(old kernelSet) { bestSet = old }(bestSet)
	numbers := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, float32(math.Copysign(0, -1)), 1, -1, 1e-40}
	var x, y []float32
	for _, a := range numbers {
		for _, b := range numbers {
			x, y = append(x, a), append(y, b)
		}
	}
	for name, f := range float32Maps {
		bestSet = goSet
		want := make([]float32, len(x))
		f(want, x, y)
		for _, set := range ownSets() {
			bestSet = set
			got := make([]float32, len(x))
			f(got, x, y)
			for i := range want {
				if !sameBits(want[i], got[i]) {
					t.Errorf("%v: %s of %v and %v is %v, not %v", set, name, x[i], y[i], got[i], want[i])
				}
			}
		}
	}
	if f := Float32Map("none"); f != nil {
		t.Error("there is a function that has no name")
	}
}

// TestExtremes: every set finds the least and the largest element, and what is not finite.
func TestExtremes(t *testing.T) {
	saved := bestSet
	defer func() { bestSet = saved }()
	r := newRand()
	for _, bestSet = range supportedSets() {
		for n := 1; n < 200; n += 1 + n/20 {
			x := random(r, 1, n, 0).Data
			low, high, finite := Extremes(x)
			if wantLow, wantHigh := slices.Min(x), slices.Max(x); low != wantLow || high != wantHigh || !finite {
				t.Fatalf("%v, %d: %v, %v, %v, want %v, %v", bestSet, n, low, high, finite, wantLow, wantHigh)
			}
			for _, strange := range []float32{nan, inf, -inf} {
				y := slices.Clone(x)
				y[r.IntN(n)] = strange
				if _, _, finite := Extremes(y); finite {
					t.Fatalf("%v, %d: %v is finite", bestSet, n, strange)
				}
			}
		}
	}
}

// Bytes are those of int32s, with all kernels.
func TestBytesVec(t *testing.T) {
	inf := float32(math.Inf(1))
	special := []float32{0, float32(math.Copysign(0, -1)), 0.99, -0.99, 1, 127.5, 128, 255, 255.9, 256, 300, -1, -1.5, -128, -129, -300,
		1 << 24, 1<<31 - 128, 1 << 31, -1 << 31, -1<<31 - 256, 1 << 40, -1 << 40, inf, -inf, float32(math.NaN())}
	r := rand.New(rand.NewPCG(3, 4))
	x := make([]float32, 1000)
	for i := range x {
		if x[i] = special[r.IntN(len(special))]; i%3 == 0 {
			x[i] = float32(r.NormFloat64() * 200)
		}
	}
	for _, n := range []int{0, 1, 15, 16, 17, 1000} {
		dst := make([]byte, n)
		BytesVec(dst, x[:n])
		for i, got := range dst {
			want := byte(0)
			if v := float64(x[i]); math.Abs(v) < 1<<31 {
				want = byte(int64(v))
			}
			if got != want {
				t.Errorf("element %d of %d: %v is %d, want %d", i, n, x[i], got, want)
			}
		}
	}
}

// Float16s become the float32s that they are, and float32s the nearest float16s, with all kernels: all of them, and what lies
// between two.
func TestHalfFloats(t *testing.T) {
	x, y := make([]uint16, 1<<16), make([]float32, 1<<16)
	for i := range x {
		x[i] = uint16(i)
	}
	WidenHalf(y, x)
	for i, got := range y {
		if want := half.Float32(x[i]); math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("%#x is %v, want %v", i, got, want)
		}
	}
	for _, ulps := range []int{-1, 0, 1, 1<<12 - 1, 1 << 12, 1<<12 + 1} {
		z := slices.Clone(y)
		for i, v := range z {
			z[i] = math.Float32frombits(math.Float32bits(v) + uint32(ulps))
		}
		for _, n := range []int{1, 15, 16, 17, len(z)} {
			RoundHalf(x, z[:n])
			for i, v := range z[:n] {
				if want := half.Bits(v); x[i] != want {
					t.Fatalf("%v of %d is %#x, want %#x", v, n, x[i], want)
				}
			}
		}
	}
}

// Codes are rounded quotients and zeros within bounds, with all kernels, and 0 of NaN.
func TestCodesVec(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, bounds := range [][2]float32{{0, 255}, {-128, 127}, {3, 2}} {
		for n := range 70 {
			x, scale, zero, dst := make([]float32, n), make([]float32, n), make([]float32, n), make([]byte, n)
			for i := range x {
				x[i], scale[i], zero[i] = float32(r.NormFloat64()*10), 0.125, float32(r.IntN(256))
				switch r.IntN(8) {
				case 0:
					x[i] = []float32{inf, -inf, nan, 1e30, -1e30}[r.IntN(5)]
				case 1:
					scale[i] = []float32{0, inf, nan, 1e-30}[r.IntN(4)]
				case 2:
					x[i] = (float32(r.IntN(20)) - 9.5) / 8
				}
			}
			CodesVec(dst, x, scale, zero, bounds[0], bounds[1])
			for i, got := range dst {
				v := float32(math.RoundToEven(float64(x[i]/scale[i]))) + zero[i]
				want := byte(0)
				if v == v {
					want = byte(int32(min(max(v, bounds[0]), bounds[1])))
				}
				if got != want {
					t.Errorf("element %d of %d: %v/%v + %v is %d, want %d", i, n, x[i], scale[i], zero[i], got, want)
				}
			}
		}
	}
}

// Every second element is copied, nothing behind the last one is read, and two vectors of them are interleaved again. So
// are three vectors.
func TestEverySecond(t *testing.T) {
	x := make([]float32, 200)
	for i := range x {
		x[i] = float32(i + 1)
	}
	for n := range 100 {
		even, odd, both := make([]float32, n+1), make([]float32, n+1), make([]float32, 2*n+1)
		EverySecond(even[:n], x[:2*n:2*n])
		EverySecond(odd[:n], x[1:][:2*n:2*n])
		Interleave(both[:2*n], even[:n:n], odd[:n:n])
		for i, got := range both[:2*n] {
			if got != x[i] {
				t.Errorf("element %d of %d is %v, want %v", i, 2*n, got, x[i])
			}
		}
		three := make([]float32, 3*n+1)
		Interleave3(three[:3*n], x[:n:n], x[n:2*n:2*n], x[50:][:n:n])
		for i, got := range three[:3*n] {
			if want := x[[]int{0, n, 50}[i%3]+i/3]; got != want {
				t.Errorf("element %d of three times %d is %v, want %v", i, n, got, want)
			}
		}
		if even[n]+odd[n]+both[2*n]+three[3*n] != 0 {
			t.Errorf("something is written behind %d elements", n)
		}
	}
}
