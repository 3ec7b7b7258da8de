package kernel

import (
	"math"
	"testing"
)

// ulps returns the distance of got from want in units of the last place of want.
func ulps(got float32, want float64) float64 {
	w := float32(want)
	unit := math.Abs(float64(math.Nextafter32(w, inf)) - float64(w))
	return math.Abs(float64(got)-want) / unit
}

func TestExp(t *testing.T) {
	worst, at := 0.0, float32(0)
	for x := float32(-103); x < 88.7; x += 0.00137 {
		want := math.Exp(float64(x))
		if want < 1.2e-38 { // denormal results are rounded twice
			if d := math.Abs(float64(exp(x)) - want); d > 3e-45 {
				t.Fatalf("exp(%g) = %g, want %g", x, exp(x), want)
			}
			continue
		}
		if u := ulps(exp(x), want); u > worst {
			worst, at = u, x
		}
	}
	if worst > 1.1 {
		t.Errorf("exp(%g) is %.2f units off", at, worst)
	}
	for _, c := range []struct{ x, want float32 }{{0, 1}, {-inf, 0}, {inf, inf}, {89, inf}, {1e30, inf}, {-104, 0}, {-1e30, 0}, {nan, nan}} {
		if got := exp(c.x); !sameBits(got, c.want) {
			t.Errorf("exp(%g) = %g, want %g", c.x, got, c.want)
		}
	}
}

// TestErrors compares functions with those of float64s, over their range and close to zero.
func TestErrors(t *testing.T) {
	negZero := float32(math.Copysign(0, -1))
	for _, c := range []struct {
		name  string
		f     func(float32) float32
		exact func(float64) float64
		units float64
		pairs [][2]float32
	}{
		{"sigmoid", sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 3, [][2]float32{{0, 0.5}, {inf, 1}, {-inf, 0}, {nan, nan}}},
		{"tanh", tanh, math.Tanh, 3, [][2]float32{{0, 0}, {negZero, negZero}, {inf, 1}, {-inf, -1}, {nan, nan}}},
		{"erf", erf, math.Erf, 6, [][2]float32{{0, 0}, {negZero, negZero}, {4, 1}, {inf, 1}, {-inf, -1}, {nan, nan}}},
		{"expm1", expm1, math.Expm1, 2.5, [][2]float32{{0, 0}, {negZero, negZero}, {inf, inf}, {89, inf}, {-18, -1}, {-inf, -1}, {nan, nan}}},
	} {
		worst, at := 0.0, float32(0)
		check := func(x float32) {
			if u := ulps(c.f(x), c.exact(float64(x))); u > worst {
				worst, at = u, x
			}
		}
		for x := float32(-80); x < 88; x += 0.00171 {
			check(x)
		}
		for x := float32(1e-37); x < 8; x *= 1.003 {
			check(x)
			check(-x)
		}
		if worst > c.units {
			t.Errorf("%s(%g) is %.2f units off", c.name, at, worst)
		}
		for _, p := range c.pairs {
			if got := c.f(p[0]); !sameBits(got, p[1]) {
				t.Errorf("%s(%g) = %g, want %g", c.name, p[0], got, p[1])
			}
		}
	}
}

func BenchmarkExp(b *testing.B) {
	x := random(newRand(), 1, 4096, 0)
	y := New(1, 4096)
	b.Run("exp/4096", func(b *testing.B) {
		for b.Loop() {
			ExpVec(y.Data, x.Data, 0)
		}
	})
	b.Run("sigmoid/4096", func(b *testing.B) {
		for b.Loop() {
			SigmoidVec(y.Data, x.Data)
		}
	})
	b.Run("tanh/4096", func(b *testing.B) {
		for b.Loop() {
			TanhVec(y.Data, x.Data)
		}
	})
	b.Run("relu/4096", func(b *testing.B) {
		for b.Loop() {
			MapRows(y, x, ReLUVec)
		}
	})
}
