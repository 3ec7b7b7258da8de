package elementary

import (
	"bufio"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// referenced are the functions in testdata/reference.txt, with the units in the last place by which
// they may differ. They take one or two numbers. Near zeros at negative numbers, the units are
// those of 1.
var referenced = map[string]struct {
	f    func(x, y float64) float64
	most float64
}{
	"gamma": {alone(Gamma), 2}, "lgamma": {alone(Lgamma), 4}, "digamma": {alone(Digamma), 4}, "polygamma": {Polygamma, 10},
	"erfcx": {alone(Erfcx), 4}, "erfinv": {alone(Erfinv), 3}, "erfcinv": {alone(Erfcinv), 3}, "cbrt": {alone(Cbrt), 1}, "hypot": {Hypot, 1},
	"log1mexp": {alone(Log1mexp), 3}, "xlogy": {Xlogy, 2}, "xlog1py": {Xlog1py, 2},
}

func alone(f func(float64) float64) func(x, y float64) float64 {
	return func(x, _ float64) float64 { return f(x) }
}

// TestReference compares with values of 60 digits.
func TestReference(t *testing.T) {
	file, err := os.Open("testdata/reference.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	worst := make(map[string]float64)
	for s := bufio.NewScanner(file); s.Scan(); {
		fields := strings.Fields(s.Text())
		if fields[0] == "#" {
			continue
		}
		var v [3]float64
		for i, text := range fields[1:] {
			if v[i], err = strconv.ParseFloat(text, 64); err != nil {
				t.Fatal(err)
			}
		}
		f := referenced[fields[0]]
		want := v[len(fields)-2]
		got := f.f(v[0], v[1])
		unit := math.Abs(math.Nextafter(want, math.Inf(1)) - want)
		if v[0] < 0 && (fields[0] == "lgamma" || fields[0] == "digamma") {
			unit = max(unit, 0x1p-51)
		}
		u := math.Abs(got-want) / unit
		worst[fields[0]] = max(worst[fields[0]], u)
		if got != want && !(u <= f.most) {
			t.Errorf("%s: %v, want %v: %.1f units", s.Text(), got, want, u)
		}
	}
	for name := range referenced {
		if _, ok := worst[name]; !ok {
			t.Errorf("there is no reference for %s", name)
		}
		t.Logf("%s: %.1f units", name, worst[name])
	}
}

// TestSpecialValues checks zeros, infinities, NaN and arguments outside of the domain.
func TestSpecialValues(t *testing.T) {
	inf, nan, zero := math.Inf(1), math.NaN(), math.Copysign(0, -1)
	for _, c := range []struct {
		name    string
		f       func(x, y float64) float64
		x, want []float64
	}{
		{"gamma", alone(Gamma), []float64{0, zero, -1, -2, inf, -inf, nan, 171.7, -190.5, -191.5, 1e-310, -1e-310, 1, 2, 5, 23}, []float64{inf, -inf, inf, inf, inf, -inf, nan, inf, zero, 0, inf, -inf, 1, 1, 24, 1124000727777607680000}},
		{"lgamma", alone(Lgamma), []float64{0, zero, -1, -2, inf, -inf, nan, 1, 2, 1e308}, []float64{inf, inf, inf, inf, inf, inf, nan, 0, 0, inf}},
		{"digamma", alone(Digamma), []float64{0, zero, -1, -2, inf, -inf, nan, -1e300}, []float64{-inf, inf, nan, nan, inf, nan, nan, nan}},
		{"digamma near zero", alone(Digamma), []float64{1e-155, -1e-155, -1e-17, -0x1p-1000, 5e-324, -5e-324, -0x1p-54}, []float64{-1e155, 1e155, 1e17, 0x1p1000, -inf, inf, 0x1p54}},
		{"trigamma", func(x, _ float64) float64 { return Polygamma(1, x) }, []float64{0, zero, -1, inf, -inf, nan, 1e-310}, []float64{inf, inf, inf, 0, inf, nan, inf}},
		{"tetragamma", func(x, _ float64) float64 { return Polygamma(2, x) }, []float64{0, zero, -1, inf, -inf, nan, -1e-310}, []float64{-inf, -inf, -inf, zero, -inf, nan, inf}},
		{"order", func(n, _ float64) float64 { return Polygamma(n, 1.5) }, []float64{-1, 0.5, nan, inf, 200, 0}, []float64{nan, nan, nan, nan, -inf, Digamma(1.5)}},
		{"erfinv", alone(Erfinv), []float64{0, zero, 1, -1, 1.5, -2, inf, nan}, []float64{0, zero, inf, -inf, nan, nan, nan, nan}},
		{"erfcinv", alone(Erfcinv), []float64{0, zero, 1, 2, 2.5, -1e-300, inf, nan}, []float64{inf, inf, 0, -inf, nan, nan, nan, nan}},
		{"erfcx", alone(Erfcx), []float64{0, zero, inf, -inf, nan, -27, 1e300}, []float64{1, 1, 0, inf, nan, inf, 0x1.82e6d98711d39p-998}},
		{"cbrt", alone(Cbrt), []float64{0, zero, inf, -inf, nan, -27}, []float64{0, zero, inf, -inf, nan, -3}},
		{"log1mexp", alone(Log1mexp), []float64{0, zero, -inf, 1, nan, -1000, 5e-324, -5e-324}, []float64{-inf, -inf, zero, nan, nan, zero, nan, -744.4400719213812}},
		{"hypot", Hypot, []float64{inf, -inf, nan, 0, 1e308}, []float64{inf, inf, nan, 0, math.Sqrt2 * 1e308}},
		{"hypot of an infinity", func(x, _ float64) float64 { return Hypot(x, -inf) }, []float64{nan, 0, inf}, []float64{inf, inf, inf}},
		{"0·log", func(y, _ float64) float64 { return Xlogy(0, y) }, []float64{0, -1, inf, nan}, []float64{0, 0, 0, nan}},
		{"0·log1p", func(y, _ float64) float64 { return Xlog1py(0, y) }, []float64{-1, -2, inf, nan}, []float64{0, 0, 0, nan}},
		{"log of 0", func(x, _ float64) float64 { return Xlogy(x, 0) }, []float64{2, -2, nan}, []float64{-inf, inf, nan}},
	} {
		for i, x := range c.x {
			got, want := c.f(x, x), c.want[i]
			if math.Float64bits(got) != math.Float64bits(want) && !(got != got && want != want) {
				t.Errorf("%s(%v) = %v, want %v", c.name, x, got, want)
			}
		}
	}
}
