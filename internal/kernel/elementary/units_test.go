package elementary

import (
	"flag"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

var arguments = flag.Int("arguments", 40, "how many arguments of each function TestUnits draws from each interval; TestPowUnits draws a hundred times as many")

// units returns the error of v in units in the last place of the exact value.
func units(v float64, exact number) float64 {
	unit := 0x1p-1074
	if e := exact.MantExp(nil); exact.Sign() != 0 && e > -1021 {
		unit = math.Ldexp(1, e-53)
	}
	switch {
	case v == rounded(exact):
		return min(0.5, math.Abs(rounded(over(sub(numberOf(max(min(v, math.MaxFloat64), -math.MaxFloat64)), exact), unit))))
	case v-v != 0:
		return math.Inf(1)
	}
	return math.Abs(rounded(over(sub(numberOf(v), exact), unit)))
}

// An interval holds arguments. If both ends are positive, their logarithms are distributed evenly.
type interval struct{ low, high float64 }

func (i interval) draw(rng *rand.Rand) float64 {
	if i.low > 0 && i.high > 8*i.low {
		low, high := math.Log2(i.low), math.Log2(i.high)
		e := low + float64((high-low)*rng.Float64())
		return min(max(math.Exp2(e/2)*math.Exp2(e/2), i.low), i.high)
	}
	return i.low + float64((i.high-i.low)*rng.Float64())
}

// signed has numbers of every magnitude up to most, of both signs.
func signed(most float64) []interval {
	return []interval{{1e-300, most}, {1e-5, min(most, 3)}, {-most, most}, {-min(most, 3), min(most, 3)}, {-min(most, 30), min(most, 30)}}
}

// positive has positive numbers of every magnitude.
func positive() []interval { return []interval{{5e-324, 1.7e308}, {0.01, 100}, {0.5, 2}, {0.99, 1.01}} }

// exactly are the functions of one number with exact ones, the intervals of their arguments, and
// the units in the last place by which they may differ. Those of 1 count for smaller results at
// negative numbers, near zeros.
var exactly = []struct {
	name  string
	f     func(float64) float64
	exact func(number) number
	most  float64
	in    []interval
}{
	{"exp", Exp, exactExp, 1, []interval{{-745, 709.7}, {-3, 3}, {1e-300, 1}}},
	{"exp2", Exp2, func(x number) number { return exactExp(mul(x, exactLn())) }, 1, []interval{{-1074, 1023.9}, {-3, 3}, {1e-300, 1}}},
	{"expm1", Expm1, exactExpm1, 2, append(signed(700), interval{-40, 1})},
	{"sigmoid", Sigmoid, func(x number) number { return div(one, add(one, exactExp(neg(x)))) }, 2, append(signed(700), interval{-40, 1})},
	{"tanh", Tanh, exactTanh, 2.5, signed(30)},
	{"sinh", Sinh, exactSinh, 2, signed(710)},
	{"cosh", Cosh, func(x number) number { e := exactExp(x); return shift(add(e, div(one, e)), -1) }, 2, signed(710)},
	{"log", Log, exactLog, 1, positive()},
	{"log1p", Log1p, exactLog1p, 2, append(positive(), interval{-1, 1}, interval{-0.01, 0.01})},
	{"log2", Log2, func(x number) number { return div(exactLog(x), exactLn()) }, 2, positive()},
	{"log10", Log10, func(x number) number { return div(exactLog(x), exactLog(numberOf(10))) }, 2, positive()},
	{"log1mexp", Log1mexp, exactLog1mexp, 2, []interval{{-1, 0}, {-3, 0}, {-740, 0}, {-1e-8, 0}}},
	{"asinh", Asinh, exactAsinh, 2, signed(1e300)},
	{"acosh", Acosh, func(x number) number { return exactAcosh(sub(x, one)) }, 2, []interval{{1, 1.7e308}, {1, 1.0001}, {1, 3}, {1, 100}}},
	{"atanh", Atanh, func(x number) number { return shift(exactLog1p(div(shift(x, 1), sub(one, x))), -1) }, 2, append(signed(0.999), interval{0.9, 1})},
	{"sin", Sin, func(x number) number { s, _ := exactSinCos(x); return s }, 2, append(signed(1e300), interval{1e3, 1e7})},
	{"cos", Cos, func(x number) number { _, c := exactSinCos(x); return c }, 2, append(signed(1e300), interval{1e3, 1e7})},
	{"tan", Tan, func(x number) number { return div(exactSinCos(x)) }, 2, append(signed(1e300), interval{1e3, 1e7})},
	{"arcsin", Asin, func(x number) number { return exactAtan2(x, root(mul(sub(one, x), add(one, x)))) }, 2, append(signed(1), interval{0.9, 1})},
	{"arccos", Acos, func(x number) number { return shift(exactAtan2(root(sub(one, x)), root(add(one, x))), 1) }, 2, append(signed(1), interval{0.9, 1})},
	{"arctan", Atan, func(x number) number { return exactAtan2(x, one) }, 2, signed(1e300)},
	{"cbrt", Cbrt, func(x number) number { return exactPow(x, over(one, 3)) }, 1, positive()},
	{"erf", Erf, exactErf, 1, signed(6)},
	{"erfc", Erfc, exactErfc, 2, append(signed(6), interval{0.8, 1.3}, interval{1, 26})},
	{"erfcx", Erfcx, exactErfcx, 2, append(signed(6), interval{1, 1e6}, interval{-26, 3})},
	{"erfinv", Erfinv, func(y number) number { return exactErfcinv(sub(one, y), Erfinv(rounded(y))) }, 2, append(signed(1), interval{0.99, 1})},
	{"erfcinv", Erfcinv, func(y number) number { return exactErfcinv(y, Erfcinv(rounded(y))) }, 2, []interval{{1e-300, 1}, {0.1, 1.9}, {1.9, 2}}},
	{"gamma", Gamma, exactGamma, 2, []interval{{1e-300, 171.6}, {0.3, 171.6}, {0.3, 5}, {-180, 0}, {-5, 5}}},
	{"lgamma", Lgamma, exactLgamma, 2, []interval{{1e-300, 1e300}, {0.01, 100}, {0.4, 3}, {0.9, 1.1}, {1.9, 2.1}, {3, 50}}},
	{"digamma", Digamma, exactDigamma, 2, []interval{{1e-300, 1e300}, {0.01, 100}, {0.4, 3}, {1.4, 1.5}, {3, 50}}},
	{"lgamma of negative numbers", Lgamma, func(x number) number {
		g := exactGamma(x)
		return exactLog(g.Abs(g))
	}, 4, []interval{{-50, 0}, {-3, 0}}},
	{"digamma of negative numbers", Digamma, exactDigamma, 8, []interval{{-50, 0}, {-3, 0}}},
}

// TestUnits compares with exact values.
func TestUnits(t *testing.T) {
	for _, c := range exactly {
		rng := rand.New(rand.NewPCG(1, 2))
		worst, at := 0.0, 0.0
		for _, in := range c.in {
			for range *arguments {
				x := in.draw(rng)
				if x == 0 || x == 1 && c.name != "exp" {
					continue
				}
				exact := c.exact(numberOf(x))
				u := units(c.f(x), exact)
				if e := exact.MantExp(nil); e < 1 && strings.HasSuffix(c.name, "negative numbers") {
					u = math.Ldexp(u, e-1)
				}
				if !(u <= worst) {
					worst, at = u, x
				}
			}
		}
		t.Logf("%s: %.2f units at %v", c.name, worst, at)
		if !(worst <= c.most) {
			t.Errorf("%s(%v) is off by %.2f units, allowed are %v", c.name, at, worst, c.most)
		}
	}
}

// TestUnitsOfTwo compares functions of two numbers with exact values.
func TestUnitsOfTwo(t *testing.T) {
	any := interval{1e-300, 1e300}
	for _, c := range []struct {
		name  string
		f     func(x, y float64) float64
		exact func(x, y number) number
		most  float64
		x, y  interval
	}{
		{"arctan2", Atan2, exactAtan2, 2, interval{-1, 1}, interval{-1, 1}},
		{"arctan2", Atan2, exactAtan2, 2, any, any},
		{"hypot", Hypot, func(x, y number) number { return root(add(mul(x, x), mul(y, y))) }, 1, any, any},
		{"hypot", Hypot, func(x, y number) number { return root(add(mul(x, x), mul(y, y))) }, 1, interval{-1, 1}, interval{-1, 1}},
		{"logaddexp", LogAddExp, func(x, y number) number { return exactLog(add(exactExp(x), exactExp(y))) }, 2, interval{0, 700}, interval{0, 700}},
		{"logaddexp", LogAddExp, func(x, y number) number { return exactLog(add(exactExp(x), exactExp(y))) }, 2, interval{0, 5}, interval{0, 5}},
		{"xlogy", Xlogy, func(x, y number) number { return mul(x, exactLog(y)) }, 2, interval{-5, 5}, any},
		{"xlog1py", Xlog1py, func(x, y number) number { return mul(x, exactLog1p(y)) }, 2, interval{-5, 5}, any},
		{"xlog1py", Xlog1py, func(x, y number) number { return mul(x, exactLog1p(y)) }, 2, interval{-5, 5}, interval{-1, 1}},
		{"polygamma", polygammaOf, exactPolygammaOf, 3, interval{1, 5}, interval{0.01, 100}},
		{"polygamma", polygammaOf, exactPolygammaOf, 3, interval{1, 20}, interval{0.1, 30}},
	} {
		rng := rand.New(rand.NewPCG(1, 2))
		worst, atX, atY := 0.0, 0.0, 0.0
		for range 3 * *arguments {
			x, y := c.x.draw(rng), c.y.draw(rng)
			if u := units(c.f(x, y), c.exact(numberOf(x), numberOf(y))); !(u <= worst) {
				worst, atX, atY = u, x, y
			}
		}
		t.Logf("%s: %.2f units at %v, %v", c.name, worst, atX, atY)
		if !(worst <= c.most) {
			t.Errorf("%s(%v, %v) is off by %.2f units, allowed are %v", c.name, atX, atY, worst, c.most)
		}
	}
}

func polygammaOf(n, x float64) float64 { return Polygamma(math.Floor(n), x) }

func exactPolygammaOf(n, x number) number { return exactPolygamma(int(math.Floor(rounded(n))), x) }

// TestPowUnits compares powers with exact ones: ordinary, large, small and subnormal ones, those of
// numbers near 1 and near the bounds of the intervals of the tables, and those of integers, which
// are exact if they can be.
func TestPowUnits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	anywhere := func() float64 { return math.Float64frombits(1 + rng.Uint64()%(0x7ff<<52-1)) }
	worst := 0.0
	for i := range 100 * *arguments {
		x, y := anywhere(), 0.0
		switch i % 8 {
		case 0:
			x, y = math.Exp(float64(20*rng.Float64())-10), float64(40*rng.Float64())-20
		case 1:
			y = (float64(1500*rng.Float64()) - 750) / math.Log(x)
		case 2:
			x = 1 + math.Ldexp(rng.Float64()-0.5, -rng.IntN(50))
			y = (float64(1500*rng.Float64()) - 750) / math.Log(x)
		case 3:
			y = math.Ldexp(rng.Float64()-0.5, -rng.IntN(60))
		case 4:
			x, y = math.Exp(float64(2*rng.Float64())-1), float64(rng.IntN(1401)-700)
		case 5:
			if y = 709.78 / math.Log(x); i%16 > 8 {
				y = (-708 - float64(37*rng.Float64())) / math.Log(x)
			}
		case 6:
			x = math.Ldexp(1+float64(rng.IntN(128))/128, rng.IntN(9)-4)
			x, y = math.Float64frombits(math.Float64bits(x)+uint64(rng.IntN(5))-2), float64(1400*rng.Float64())-700
		case 7:
			x, y = float64(1+rng.IntN(1000)), float64(rng.IntN(100)-30)/2
		}
		if y-y != 0 {
			continue
		}
		most := 0.51
		got := Pow(x, y)
		if got < 0x1p-1022 {
			most = 0.76 // rounded twice
		}
		u := units(got, exactPow(numberOf(x), numberOf(y)))
		worst = max(worst, u)
		if !(u <= most) {
			t.Errorf("%v to the power of %v is %v, and off by %.2f units", x, y, got, u)
		}
	}
	t.Logf("%.3f units", worst)
}

// TestPowTables computes the tables of Pow anew.
func TestPowTables(t *testing.T) {
	near := func(x, y float64) bool { return math.Abs(x-y) <= 0x1p-50*math.Abs(y) }
	for i, l := range powLogs {
		exact := neg(exactLog(numberOf(l.inverse)))
		if l.high*0x1p42 != math.Trunc(l.high*0x1p42) || !near(l.low, rounded(sub(exact, numberOf(l.high)))) {
			t.Errorf("interval %d: %v+%v is not the logarithm of %v", i, l.high, l.low, exact)
		}
		for k := range 2 { // both ends
			z := 1 + float64(i+k)/powSteps
			if z -= float64(k) * 0x1p-52; i >= powHalf {
				z /= 2
			}
			d := sub(mul(numberOf(z), numberOf(l.inverse)), one)
			if r := rounded(d); numberOf(r).Cmp(d) != 0 || math.Abs(r) >= 0x1p-7 || l.high != 0 && math.Abs(r) > math.Abs(l.high) {
				t.Errorf("interval %d: %v times %v is %v", i, z, l.inverse, r)
			}
		}
		exact = exactExp(mul(exactLn(), numberOf(float64(i)/powSteps)))
		r := powRoots[i]
		if r.root != rounded(exact) || !near(r.rest, rounded(div(sub(exact, numberOf(r.root)), numberOf(r.root)))) {
			t.Errorf("root %d: %v and %v, want %v", i, r.root, r.rest, exact)
		}
	}
}
