package elementary

import (
	"math"
	"math/rand/v2"
	"testing"
)

// functions are the functions of one number, of this package and of package math, with the units in
// the last place by which they may differ for arguments from lo to hi.
var functions = []struct {
	name   string
	f, in  func(float64) float64
	most   float64
	lo, hi float64
}{
	{"exp", Exp, math.Exp, 2, -700, 700},
	{"exp2", Exp2, math.Exp2, 3, -1000, 1000},
	{"expm1", Expm1, math.Expm1, 3, -50, 700},
	{"sigmoid", Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 3, -700, 50},
	{"tanh", Tanh, math.Tanh, 4, -30, 30},
	{"sinh", Sinh, math.Sinh, 5, -700, 700},
	{"cosh", Cosh, math.Cosh, 5, -700, 700},
	{"log", Log, math.Log, 2, 1e-300, 1e3},
	{"log1p", Log1p, math.Log1p, 3, -0.99, 1e3},
	{"log2", Log2, func(x float64) float64 { return math.Log1p(x-1) / math.Ln2 }, 3, 0.5, 2},
	{"log2", Log2, math.Log2, 3, 2, 1e300},
	{"log10", Log10, func(x float64) float64 { return math.Log1p(x-1) / math.Ln10 }, 3, 0.5, 2},
	{"log10", Log10, math.Log10, 3, 2, 1e300},
	{"asinh", Asinh, math.Asinh, 3, -1e3, 1e3},
	{"acosh", Acosh, math.Acosh, 3, 2, 1e300},
	{"atanh", Atanh, math.Atanh, 3, -1, 1},
	{"sin", Sin, math.Sin, 2, -3, 3},
	{"cos", Cos, math.Cos, 2, -1.5, 1.5},
	{"tan", Tan, func(x float64) float64 { return math.Sin(x) / math.Cos(x) }, 4, -1.5, 1.5},
	{"asin", Asin, func(x float64) float64 { return math.Atan2(x, math.Sqrt((1-x)*(1+x))) }, 3, -1, 1},
	{"acos", Acos, func(x float64) float64 { return 2 * math.Asin(math.Sqrt((1-x)/2)) }, 4, -0.5, 1},
	{"atan", Atan, math.Atan, 2, -10, 10},
	{"erf", Erf, math.Erf, 2, -6, 6},
	{"erfc", Erfc, math.Erfc, 4, -6, 26},
}

// TestAccuracy compares with package math: numbers by units in the last place, and results for
// zeros, infinities, NaN and arguments outside of the domain.
func TestAccuracy(t *testing.T) {
	special := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1, -1, 2, -2, 1e300, -1e300, 1e9, -1e9, 40, -40, 1100, -1100}
	for _, f := range functions {
		rng := rand.New(rand.NewPCG(1, 2))
		worst, at := 0.0, 0.0
		for i := range 20000 {
			x := f.lo + float64((f.hi-f.lo)*rng.Float64())
			if i%4 == 0 && f.lo < 0 {
				x = f.lo * math.Ldexp(rng.Float64(), -rng.IntN(40))
			}
			got, want := f.f(x), f.in(x)
			if u := math.Abs(got-want) / math.Abs(math.Nextafter(want, 1e308)-want); !(u <= worst) {
				worst, at = u, x
			}
		}
		t.Logf("%s: %.1f units at %v", f.name, worst, at)
		if !(worst <= f.most) {
			t.Errorf("%s(%v) is %v, in package math %v: %.1f units", f.name, at, f.f(at), f.in(at), worst)
		}
		for _, x := range special {
			got, want := f.f(x), f.in(x)
			exact := want == 0 || want-want != 0
			if exact && math.Float64bits(got) != math.Float64bits(want) && !(got != got && want != want) || got != got && want == want {
				t.Errorf("%s(%v) = %v, want %v", f.name, x, got, want)
			}
		}
	}
}

// TestExactValues: powers and logarithms of powers are exact.
func TestExactValues(t *testing.T) {
	for n := -1074; n < 1024; n++ {
		if p := math.Ldexp(1, n); Exp2(float64(n)) != p || Log2(p) != float64(n) {
			t.Errorf("2**%d is %v, and the logarithm of that %v", n, Exp2(float64(n)), Log2(p))
		}
	}
	for n, p := 0, 1.0; n <= 22; n, p = n+1, p*10 {
		if Log10(p) != float64(n) {
			t.Errorf("the logarithm of %v is %v", p, Log10(p))
		}
	}
}

// TestFarAngles compares sines and cosines of large numbers with those of angles that are reduced
// precisely.
func TestFarAngles(t *testing.T) {
	for _, c := range []struct{ x, sin, cos float64 }{
		{1<<20 + 1, 0.9727535843134413, 0.23184146351624124},
		{1e22, -0.8522008497671888, 0.523214785395139},
		{3.222160475041833e+49, -0.08867379933295051, 0.9960607196912544},
		{6.920000943044191e+74, 0.9978377329211565, 0.06572563243337219},
		{math.MaxFloat64, 0.004961954789184061, -0.9999876894265599},
	} {
		for _, sign := range []float64{1, -1} {
			sin, cos := Sin(sign*c.x), Cos(sign*c.x)
			if math.Abs(sin/(sign*c.sin)-1) > 4e-16 || math.Abs(cos/c.cos-1) > 4e-16 {
				t.Errorf("%v: sine %v, cosine %v, want %v, %v", sign*c.x, sin, cos, sign*c.sin, c.cos)
			}
		}
	}
}

// TestTwoArguments compares Pow, Atan2 and LogAddExp with package math, and powers with large
// intermediate squares with roots.
func TestTwoArguments(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	special := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 2.5, -2.5, 3, 1e300, -1e300, 1e-300, math.Inf(1), math.Inf(-1), math.NaN()}
	for i := range 20000 {
		x, y := float64(8*rng.Float64()), float64(40*rng.Float64())-20
		if i < len(special)*len(special) {
			x, y = special[i/len(special)], special[i%len(special)]
		}
		for _, c := range []struct {
			name      string
			got, want float64
		}{
			{"pow", Pow(x, y), math.Pow(x, y)},
			{"atan2", Atan2(y, x-4), math.Atan2(y, x-4)},
			{"logaddexp", LogAddExp(x, y), max(x, y) + math.Log1p(math.Exp(-math.Abs(x-y)))},
		} {
			if c.name == "logaddexp" && x == y {
				continue // the difference of infinities is NaN
			}
			if !(math.Abs(c.got-c.want) <= 2e-15*math.Abs(c.want)) && c.got != c.want && !(c.got != c.got && c.want != c.want) {
				t.Errorf("%s of %v and %v is %v, want %v", c.name, x, y, c.got, c.want)
			}
		}
	}
	for _, x := range []float64{5e-324, 1e-310, 1e-200, 1e-20, 1e20, 1e200} {
		if r := Pow(Pow(x, 1.0/3), 3); math.Abs(r/x-1) > 1e-12 && x > 1e-300 {
			t.Errorf("the cube of the cube root of %v is %v", x, r)
		}
	}
	for _, c := range [][3]float64{{1e200, 2.5, math.Inf(1)}, {1e200, -2.5, 0}, {1e-200, 2.5, 0}, {1e-200, -2.5, math.Inf(1)}, {0.5, 1074.5, 0}, {1.0000001, 1e16 + 2, math.Inf(1)}} {
		if v := Pow(c[0], c[1]); v != c[2] && math.Abs(v) > 5e-324 {
			t.Errorf("%v to the power of %v is %v, want %v", c[0], c[1], v, c[2])
		}
	}
}

func BenchmarkFunctions(b *testing.B) {
	for _, f := range functions {
		for name, one := range map[string]func(float64) float64{"here": f.f, "math": f.in} {
			b.Run(f.name+"/"+name, func(b *testing.B) {
				sum := 0.0
				for i := range b.N {
					sum += one(f.lo + (f.hi-f.lo)*float64(i&1023)/1024)
				}
				if sum == 42 {
					b.Log(sum)
				}
			})
		}
	}
}
