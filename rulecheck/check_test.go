package rulecheck_test

import (
	"testing"
	"time"

	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rulecheck"
)

func TestTry(t *testing.T) {
	for _, text := range []string{"(sqrt (sqr x)) => x", "(sqrt (sqr x)) => (abs x)", "(sqrt (sqr x)) && exact(x) => (abs x)", "(mul x x) => (sqr x)", "(log (mul x y)) => (add (log x) (log y))", "(mul x (add y z)) => (add (mul x y) (mul x z))",
		"(log (exp x)) => x", "(sum{a} (sum{b} x)) => (sum{a} x)", "(add x y ...zs) => (add x y)", "(sub x x) => 0", "(add (add x y) z) => (add x (add y z))", "(abs x) => (sqrt (sqr x))", "(Subtensor{1:} (Subtensor{1:} x)) => (Subtensor{3:} x)",
		"(DimShuffle{d} (neg x)) => (neg (DimShuffle{d} x))", "(Subtensor{i} (neg x) ...is) => (neg (Subtensor{i} x ...is))", "(sub (exp x) 1) => (expm1 x)", "(mul x y) => (cast{float32} (mul x y))", "(inv (add x 0)) => (inv x)", "(add x 0) => x",
		"(mul x c) && positive(c) => (mul x {c*1})", "(Join{a} x) => x", "(map{f} (DimShuffle{d} x)) => (DimShuffle{d} (map{f} x))", "(Reshape{n} (Reshape{m} x s) t) => (Reshape{n} x t)"} {
		w, err := pattern.ParseRewrite(text)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		r, err := rulecheck.Check(t.Context(), tensorpass.Vocabulary(), pattern.Rule{Cases: []pattern.Rewrite{w}}, rulecheck.Options{})
		t.Logf("%v %s: %v %v tried %d, %s %v", time.Since(start), text, r.Class, r.Kept, r.Tried, r.Counterexample, err)
	}
}
