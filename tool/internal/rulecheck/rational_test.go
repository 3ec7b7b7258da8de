package rulecheck_test

import (
	"math"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool/internal/rational"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

// TestChance: sides that are rational functions agree in exact arithmetic, with a chance of their degree in 2⁶¹.
func TestChance(t *testing.T) {
	for _, c := range []struct {
		rewrite string
		degree  float64 // 0 if nothing is said
	}{
		{"(inv (inv x)) => x", 1},
		{"(exp (log x)) => x", 0},
		{"(add (mul x y) (mul x z)) => (mul x (add y z))", 2},
		{"(true_div (add x y) (sqr z)) => (add (true_div x (sqr z)) (true_div y (sqr z)))", 5},
		{"(mul x 3) => (true_div x 0.3333333333333333)", 0}, // but for rounding
	}[:longtest.Of(2, 5)] {
		w, err := pattern.ParseRewrite(c.rewrite)
		if err != nil {
			t.Fatal(err)
		}
		if r := check(t, []pattern.Rule{{Cases: []pattern.Rewrite{w}}}, rulecheck.Options{})[0]; r.Chance != c.degree*math.Exp2(-61) {
			t.Errorf("%s: chance %g, want %g in 2⁶¹", c.rewrite, r.Chance, c.degree)
		}
	}
}

// TestExactlyWrong: sides that differ do so in exact arithmetic, at the numbers that are said.
func TestExactlyWrong(t *testing.T) {
	x, y := fgraph.NewInput(tensor.NewType(array.Float64), "x"), fgraph.NewInput(tensor.NewType(array.Float64), "y")
	for _, right := range []*fgraph.Variable{tensor.Add(x, tensor.Mul(x, y)), tensor.Sub(tensor.Mul(x, y), x), tensor.TrueDiv(x, y), tensor.Sqr(x)} {
		r := rational.NewComparer(rulecheck.NewRand("", 1))
		if text := r.Compare([]*fgraph.Variable{tensor.Mul(x, y)}, []*fgraph.Variable{right}); r.Compared != 0 || !strings.Contains(text, "x = ") || !strings.Contains(text, "right: ") {
			t.Errorf("%v: %q", right, text)
		}
	}
	r := rational.NewComparer(rulecheck.NewRand("", 1))
	zero := tensor.TrueDiv(x, tensor.Sub(x, x))
	if text := r.Compare([]*fgraph.Variable{zero}, []*fgraph.Variable{x}); text != "" || r.Compared != 0 || r.Other {
		t.Errorf("a division by zero: %q", text)
	}
}

// TestSmallestQuotient: a quotient by a quotient that is rounded to the smallest number of all is off by more than
// rounding is elsewhere, which refutes no rule.
func TestSmallestQuotient(t *testing.T) {
	rule := pattern.Rule{Name: "found_mul_x_true_div_y_z_is_true_div_y_true_div_z_x", Tags: []string{"unsafe_nan"}}
	w, err := pattern.ParseRewrite("(mul x (true_div y z)) <=> (true_div y (true_div z x))")
	if err != nil {
		t.Fatal(err)
	}
	rule.Cases = []pattern.Rewrite{w}
	if r := check(t, []pattern.Rule{rule}, rulecheck.Options{Seed: 7})[0]; !r.Kept {
		t.Errorf("%s: %s", r.Class, r.Counterexample)
	}
}
