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

func TestSigmoid1AndTanh1(t *testing.T) {
	worst := [2]float64{}
	for x := float32(-80); x < 80; x += 0.00171 {
		worst[0] = max(worst[0], ulps(sigmoid(x), 1/(1+math.Exp(-float64(x)))))
		worst[1] = max(worst[1], ulps(tanh(x), math.Tanh(float64(x))))
	}
	for x := float32(1e-30); x < 1; x *= 1.1 {
		worst[1] = max(worst[1], ulps(tanh(x), math.Tanh(float64(x))))
	}
	for i, name := range []string{"sigmoid", "tanh"} {
		if worst[i] > 3 {
			t.Errorf("%s is %.2f units off", name, worst[i])
		}
	}
	negZero := float32(math.Copysign(0, -1))
	for _, c := range []struct {
		name    string
		f       func(float32) float32
		x, want float32
	}{
		{"sigmoid", sigmoid, 0, 0.5}, {"sigmoid", sigmoid, inf, 1}, {"sigmoid", sigmoid, -inf, 0}, {"sigmoid", sigmoid, nan, nan},
		{"tanh", tanh, 0, 0}, {"tanh", tanh, negZero, negZero}, {"tanh", tanh, inf, 1}, {"tanh", tanh, -inf, -1}, {"tanh", tanh, nan, nan},
	} {
		if got := c.f(c.x); !sameBits(got, c.want) {
			t.Errorf("%s(%g) = %g, want %g", c.name, c.x, got, c.want)
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
