package component

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/internal/kernel"
)

// TestDerivatives compares Backprop with differences of Propagate, for the input and the parameters
// of every type.
func TestDerivatives(t *testing.T) {
	eachCase(t, func(t *testing.T, k *testCase) {
		b, ok := k.c.(Backpropper)
		if !ok {
			t.Fatal("there is no Backprop")
		}
		rnd := rand.New(rand.NewPCG(5, 6))
		y, memo := k.propagate(t, k.c, k.in)
		weights := randomMatrix(rnd, y.Rows, y.Cols) // the objective is Σ weights∘y
		gradient := NewGradient(k.c)
		dx := k.backprop(t, b, y, weights, memo, gradient, rnd)
		objective := func(c Component, in kernel.Matrix) float64 {
			y, _ := k.propagate(t, c, in)
			return kernel.MatrixDot(weights, y)
		}
		for range 3 {
			d := randomMatrix(rnd, k.in.Rows, k.in.Cols)
			if _, ok := k.c.(*statisticsPoolingComponent); ok {
				kernel.Fill(kernel.Cols(d, 0, 1), 0) // the count has no derivative
			}
			checkSlope(t, "input", kernel.MatrixDot(dx, d), func(step float32) float64 {
				in := kernel.Clone(k.in)
				kernel.Add(in, step, d)
				return objective(k.c, in)
			})
		}
		u, ok := k.c.(UpdatableComponent)
		if !ok {
			return
		}
		g := gradient.(UpdatableComponent)
		if !g.IsGradient() || g.LearningRate() != 1 {
			t.Error("a gradient says that it is none")
		}
		for i, p := range u.Params() {
			d := randomMatrix(rnd, p.Values.Rows, p.Values.Cols)
			checkSlope(t, p.Name, kernel.MatrixDot(g.Params()[i].Values, d), func(step float32) float64 {
				c := Copy(k.c).(UpdatableComponent)
				kernel.Add(c.Params()[i].Values, step, d)
				return objective(c, k.in)
			})
		}
	})
}

// backprop runs Backprop and returns the derivative of the input. It checks that a component
// overwrites it, or adds to it, as its properties say.
func (k *testCase) backprop(t *testing.T, b Backpropper, y, dy kernel.Matrix, memo Memo, to Component, rnd *rand.Rand) kernel.Matrix {
	t.Helper()
	p := k.c.Properties()
	var in, out kernel.Matrix
	if p.Has(BackpropNeedsInput) {
		in = k.in
	}
	if p.Has(BackpropNeedsOutput) {
		out = y
	}
	dx := kernel.New(k.in.Rows, k.in.Cols)
	before := kernel.New(k.in.Rows, k.in.Cols)
	if p.Has(BackpropAdds) {
		before = randomMatrix(rnd, k.in.Rows, k.in.Cols)
		kernel.Copy(dx, before)
	} else {
		kernel.Fill(dx, float32(math.NaN()))
	}
	if err := Backprop(b, k.workspace(), BackwardPass{Pre: k.pre, InValue: in, OutValue: out, OutDeriv: dy, Memo: memo, ToUpdate: to, InDeriv: dx}); err != nil {
		t.Fatal(err)
	}
	kernel.Add(dx, -1, before)
	return dx
}

// checkSlope compares a predicted slope with central differences of f, for several steps, because
// the best one isn't known.
func checkSlope(t *testing.T, what string, predicted float64, f func(step float32) float64) {
	t.Helper()
	best, measured := math.Inf(1), 0.0
	for _, step := range []float32{1e-1, 1e-2, 1e-3, 1e-4} {
		m := (f(step) - f(-step)) / float64(2*step)
		if e := math.Abs(m - predicted); e < best {
			best, measured = e, m
		}
	}
	if !(best <= 2e-3*math.Abs(predicted)+2e-4) {
		t.Errorf("%s: predicted slope %g, measured %g", what, predicted, measured)
	}
}
