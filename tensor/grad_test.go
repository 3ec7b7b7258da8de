package tensor_test

import (
	"errors"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/expr"
)

func TestGradErrors(t *testing.T) {
	s := expr.NewScope()
	if err := s.Declare("x y: vector; i: int64 vector; S: csr; X: matrix"); err != nil {
		t.Fatal(err)
	}
	x, y := s.Lookup("x"), s.Lookup("y")
	for _, c := range []struct {
		cost string
		wrt  *fgraph.Variable
	}{{"x", x}, {"sum(i)", x}, {"sum(x)", y}, {"sum(x > 0)*1.0", x}, {"sum(x)", s.Lookup("i")}, {"sum(sdot(S, X))", s.Lookup("X")}, {"1.0*argmax(x)", x}} {
		if g, err := tensor.Grad(s.MustParse(c.cost), c.wrt); !errors.Is(err, tensor.ErrGradient) {
			t.Errorf("gradient of %s with respect to %v: %v, %v", c.cost, c.wrt, g, err)
		}
	}
	g, err := tensor.GradOptions{Zeros: true}.Grad(s.MustParse("sum(x)"), y)
	if err != nil || fgraph.Sprint(0, g...) != "[second(y, 0.0)]" {
		t.Errorf("%v, %v", fgraph.Sprint(0, g...), err)
	}
	known := tensor.Vector("g")
	e := s.MustParse("exp(x)")
	g, err = tensor.GradOptions{Known: map[*fgraph.Variable]*fgraph.Variable{e: known}}.Grad(tensor.Sum(e), x)
	if err != nil || fgraph.Sprint(0, g...) != "[mul(g, exp(x))]" {
		t.Errorf("%v, %v", fgraph.Sprint(0, g...), err)
	}
}

// TestGradDeep differentiates a chain of 100,000 ops.
func TestGradDeep(t *testing.T) {
	x := tensor.Scalar("x")
	y := x
	for range longtest.Of(20000, 100000) {
		y = tensor.Sin(y)
	}
	if _, err := tensor.Grad(y, x); err != nil {
		t.Fatal(err)
	}
}
