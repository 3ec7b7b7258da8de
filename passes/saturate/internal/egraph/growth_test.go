package egraph

import (
	"fmt"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/pattern"
)

// TestDeepRules: rules of any depth, and with any number of arguments, compile.
func TestDeepRules(t *testing.T) {
	w := newMath(t)
	for _, name := range []string{"sum", "list"} {
		if _, err := w.lang.Declare(Signature{Name: name, Inputs: [2]int{0, -1}, Commutes: name == "sum"}); err != nil {
			t.Fatal(err)
		}
	}
	depth := longtest.Of(4000, 10000)
	for _, op := range []string{"add", "sum", "list"} {
		var deep pattern.Expr = pattern.Name("x")
		flat := pattern.NewCall(op)
		for i := range depth {
			deep = pattern.NewCall(op, deep, pattern.NewCall("sin", pattern.Name("x")))
			flat.Args = append(flat.Args, pattern.Name(fmt.Sprint("x", i)))
		}
		if op == "add" {
			flat.Args = flat.Args[:2]
		}
		for _, rw := range []pattern.Rewrite{
			{In: pattern.Pattern{Expr: deep}, Out: pattern.NewCall("sin", deep), Equation: true},
			{In: pattern.Pattern{Expr: flat}, Out: pattern.NewCall("sin", pattern.Name("x0"))},
		} {
			if _, err := Compile(w.lang, []pattern.Rule{{Name: "r", Cases: []pattern.Rewrite{rw}}}); err != nil {
				t.Errorf("%.40s…: %v", rw, err)
			}
		}
	}
}

// BenchmarkCompile compiles many rules, which share ops from the root on.
func BenchmarkCompile(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var rules []pattern.Rule
			for i := range n {
				rw, err := pattern.ParseRewrite(fmt.Sprintf("(add (mul x %d) (sin y)) => (sub y (mul x %d))", i, i+1))
				if err != nil {
					b.Fatal(err)
				}
				rules = append(rules, pattern.Rule{Name: fmt.Sprint("r", i), Cases: []pattern.Rewrite{rw}})
			}
			for b.Loop() {
				if _, err := Compile(newMath(b).lang, rules); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
