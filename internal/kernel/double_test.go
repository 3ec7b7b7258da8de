package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/internal/kernel/elementary"
)

// doubleFunctions are the functions of float64s: in Go, and of package math.
var doubleFunctions = []struct {
	name      string
	one, math func(float64) float64
	most      float64 // units in the last place
	lo, hi    float64
}{
	{"exp", elementary.Exp, math.Exp, 2, -708, 709},
	{"expm1", elementary.Expm1, math.Expm1, 3, -50, 709},
	{"sigmoid", elementary.Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 3, -700, 50},
	{"tanh", elementary.Tanh, math.Tanh, 4, -30, 30},
	{"log", elementary.Log, math.Log, 2, 1e-300, 1e3},
	{"log1p", elementary.Log1p, math.Log1p, 3, -0.99, 1e3},
	{"sin", elementary.Sin, math.Sin, 2, -20, 20},
	{"cos", elementary.Cos, math.Cos, 2, -20, 20},
	{"abs", math.Abs, math.Abs, 0, -1e9, 1e9},
	{"neg", func(x float64) float64 { return -x }, func(x float64) float64 { return -x }, 0, -1e9, 1e9},
	{"sqrt", math.Sqrt, math.Sqrt, 0, 0, 1e9},
}

// doubleArguments returns arguments of all sizes, and special ones. Their number is not a multiple
// of a block.
func doubleArguments(lo, hi float64) []float64 {
	rng := rand.New(rand.NewPCG(1, 2))
	x := []float64{0, math.Copysign(0, -1), 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), 5e-324, -5e-324, 1e-310, math.MaxFloat64, -math.MaxFloat64,
		709.7, 709.79, 709.9, 710, -745, -745.2, -746, -750, -1 + 1e-16, math.Pi, -math.Pi / 2, math.Pi / 4, 1e6, 1 << 20, 1<<20 + 1, 0.5, math.Sqrt2, math.Sqrt2 / 2}
	for range 20000 {
		x = append(x, lo+(hi-lo)*rng.Float64(), math.Exp(600*(2*rng.Float64()-1)), -math.Exp(10*rng.NormFloat64()), 4*rng.Float64()-2, 1+1e-3*rng.NormFloat64())
	}
	return append(x, 1, 2, 3)
}

// TestDoublesGiveTheSameBits compares the assembly with the Go code.
func TestDoublesGiveTheSameBits(t *testing.T) {
	for _, f := range doubleFunctions {
		x := doubleArguments(f.lo, f.hi)
		got, want, all := make([]float64, len(x)), make([]float64, len(x)), Float64Map(f.name)
		for _, set := range supportedSets() {
			old := bestSet
			bestSet = set
			all(got, x, nil)
			bestSet = old
			for i, v := range x {
				want[i] = f.one(v)
				if math.Float64bits(got[i]) != math.Float64bits(want[i]) && !(got[i] != got[i] && want[i] != want[i]) {
					t.Fatalf("%s, %v: of %v it is %v, want %v", f.name, set, v, got[i], want[i])
				}
			}
			// In place, and vectors that are shorter than a block.
			bestSet = set
			part := append([]float64{}, x[:5]...)
			all(part, part, nil)
			bestSet = old
			for i := range part {
				if math.Float64bits(part[i]) != math.Float64bits(want[i]) && part[i] == part[i] {
					t.Fatalf("%s, %v, in place: of %v it is %v, want %v", f.name, set, x[i], part[i], want[i])
				}
			}
		}
	}
}

// TestDoublesAreAccurate compares with package math. The functions differ by the units in the
// table, and agree in signs of zero, NaN and infinity.
func TestDoublesAreAccurate(t *testing.T) {
	for _, f := range doubleFunctions {
		worst, at := 0.0, 0.0
		for _, x := range doubleArguments(f.lo, f.hi) {
			if f.name == "log" && x > 0 && x < 0x1p-1022 || f.name == "exp" && (x > 709.6 && x < 709.78 || x < -744.4) {
				continue // package math is wrong there on amd64 or on arm64, see below
			}
			if (f.name == "sin" || f.name == "cos") && math.Abs(x) > near {
				continue // package math loses digits there, see elementary.TestFarAngles
			}
			got, want := f.one(x), f.math(x)
			switch {
			case want != want || math.IsInf(want, 0) || want == 0:
				if math.Float64bits(got) != math.Float64bits(want) && !(got != got && want != want) {
					t.Errorf("%s(%v) = %v, want %v", f.name, x, got, want)
				}
				continue
			case math.Abs(want) < 0x1p-1022: // rounded twice
				continue
			}
			// Package math itself loses digits near the zeros of the sine.
			unit := math.Abs(math.Nextafter(want, 9) - want)
			if f.name == "sin" || f.name == "cos" {
				unit = max(unit, 0x1p-56)
			}
			if u := math.Abs(got-want) / unit; u > worst {
				worst, at = u, x
			}
		}
		if got := []float64{elementary.Log(5e-324), elementary.Log(1e-310), elementary.Exp(709.7), elementary.Exp(-745), elementary.Exp(-746)}; got[0] != -744.4400719213812 || got[1] != -713.8013788281542 || math.Abs(got[2]/1.654984027680264e308-1) > 1e-15 || got[3] != 5e-324 || got[4] != 0 {
			t.Errorf("the logarithms of the smallest numbers and the largest and smallest exponentials are %v", got)
		}
		t.Logf("%s: %.1f units at %v", f.name, worst, at)
		if worst > f.most {
			t.Errorf("%s(%v) is %.1f units off", f.name, at, worst)
		}
	}
}

// TestDoubleArithmetic compares with Go's own arithmetic.
func TestDoubleArithmetic(t *testing.T) {
	x := doubleArguments(-1, 1)
	y := append(append([]float64{}, x[7:]...), x[:7]...)
	dst := make([]float64, len(x))
	for name, one := range map[string]func(x, y float64) float64{
		"add": func(x, y float64) float64 { return x + y }, "sub": func(x, y float64) float64 { return x - y },
		"mul": func(x, y float64) float64 { return x * y }, "div": func(x, y float64) float64 { return x / y },
	} {
		Float64Map(name)(dst, x, y)
		for i := range x {
			if want := one(x[i], y[i]); math.Float64bits(dst[i]) != math.Float64bits(want) && !(dst[i] != dst[i] && want != want) {
				t.Fatalf("%s of %v and %v is %v, want %v", name, x[i], y[i], dst[i], want)
			}
		}
	}
}

// BenchmarkDoubles measures 512 elements in the first-level cache.
func BenchmarkDoubles(b *testing.B) {
	x := make([]float64, 512)
	dst := make([]float64, len(x))
	for i := range x {
		x[i] = float64(i)/100 + 0.01
	}
	for _, f := range doubleFunctions {
		all := Float64Map(f.name)
		b.Run(f.name, func(b *testing.B) {
			for range b.N {
				all(dst, x, nil)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/element")
		})
	}
}
