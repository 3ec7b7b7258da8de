package egraph

import (
	"testing"

	"github.com/nnopt/nnopt/pattern"
)

// TestEquation: an equation is used in both directions, each with its guards.
func TestEquation(t *testing.T) {
	for _, test := range []struct {
		rule, from, to string
		equal          bool
	}{
		{"(mul x (add y z)) <=> (add (mul x y) (mul x z))", "(mul a (add b c))", "(add (mul a b) (mul a c))", true},
		{"(add (mul x y) (mul x z)) <=> (mul x (add y z))", "(mul a (add b c))", "(add (mul a b) (mul a c))", true},
		{"(ln (mul x y)) <=> (add (ln x) (ln y)) && constant(x)", "(add (ln 2) (ln a))", "(ln (mul 2 a))", true},
		{"(ln (mul x y)) <=> (add (ln x) (ln y)) && constant(x)", "(add (ln b) (ln a))", "(ln (mul b a))", false},
		{"(ln (mul x y)) && constant(x) <=> (add (ln x) (ln y))", "(add (ln b) (ln a))", "(ln (mul b a))", true},
		{"(ln (mul x y)) && constant(x) <=> (add (ln x) (ln y)) && constant(x)", "(ln (mul b a))", "(add (ln b) (ln a))", false},
	} {
		w := newMath(t)
		list, err := pattern.ParseRules("test", "equation:\n    "+test.rule+"\n")
		if err != nil {
			t.Fatal(err)
		}
		rules, err := Compile(w.lang, list)
		if err != nil {
			t.Fatal(err)
		}
		g := New(w.lang, WithAnalysis(w.analysis()))
		from := w.add(t, g, test.from)
		if _, err := g.Saturate(t.Context(), rules, Options{Limits: Limits{Laps: 4}}); err != nil {
			t.Fatal(err)
		}
		if got := g.Find(from) == g.Find(w.add(t, g, test.to)); got != test.equal {
			t.Errorf("%s: %s = %s is %v", test.rule, test.from, test.to, got)
		}
	}
}
