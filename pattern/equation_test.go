package pattern_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

func TestDirections(t *testing.T) {
	for text, want := range map[string][2]string{
		"(op1 x y) => (op2 y)":  {"(op1 x y) => (op2 y)"},
		"(op1 x y)<=>(op2 y x)": {"(op1 x y) => (op2 y x)", "(op2 y x) => (op1 x y)"},
		"(op1 x) && f(x) <=> (op2 x) && g(x) && !h(x)": {
			"(op1 x) && f(x) => (op2 x)", "(op2 x) && g(x) && !h(x) => (op1 x)"},
		"(op1 x ...ys) && once(ys) <=> (op2 ...ys x)": {"(op1 x ...ys) && once(ys) => (op2 ...ys x)", "(op2 ...ys x) => (op1 x ...ys)"},
		"(sum{a} (op1 x)) <=> (op1 (sum{a} x))":       {"(sum{a} (op1 x)) => (op1 (sum{a} x))", "(op1 (sum{a} x)) => (sum{a} (op1 x))"},
		// What is bound is written out where it is the replacement.
		"(op1 n@(op2 x) m@2) && once(n) <=> (op3 n m x)":       {"(op1 n@(op2 x) m@2) && once(n) => (op3 n m x)", "(op3 n m x) => (op1 (op2 x) 2)"},
		"(op1 x) <=> (op2 n@(op3 m@(op4 x)) n m) && f(n, m)":   {"(op1 x) => (op2 (op3 (op4 x)) (op3 (op4 x)) (op4 x))", "(op2 n@(op3 m@(op4 x)) n m) && f(n, m) => (op1 x)"},
		"(op1 x) <=> n@(op2 n x)":                              {"(op1 x) => (op2 n x)", "n@(op2 n x) => (op1 x)"},
		"(op1 x) <=> (or (op2 x) (op3 x))":                     {"(op1 x) => (or (op2 x) (op3 x))", "(or (op2 x) (op3 x)) => (op1 x)"},
		"(op1 x) <=> (op2 ...(op3 a@(op1 x)) a)":               {"(op1 x) => (op2 ...(op3 (op1 x)) (op1 x))", "(op2 ...(op3 a@(op1 x)) a) => (op1 x)"},
		"(exp (op1 x\n y)) &&\n f(x) <=>\n (op2 x y) && f( y)": {"(exp (op1 x y)) && f(x) => (op2 x y)", "(op2 x y) && f(y) => (exp (op1 x y))"},
	} {
		r, err := pattern.ParseRewrite(text)
		if err != nil {
			t.Error(err)
			continue
		}
		var got [2]string
		for i, d := range r.Directions() {
			if d.Equation || d.Back != nil {
				t.Errorf("%s has a direction that is an equation", text)
			}
			got[i] = d.String()
		}
		if got != want {
			t.Errorf("%s has the directions %q", text, got)
		}
		if again, err := pattern.ParseRewrite(r.String()); err != nil || again.String() != r.String() {
			t.Errorf("%s reads as %s, %v", r, again, err)
		}
	}
	// Names that double what they are bound to have a bound.
	var deep strings.Builder
	deep.WriteString("(op1 x) <=> (op2 n0@(op3 x)")
	for i := range 60 {
		deep.WriteString(" n" + strings.Repeat("i", i+1) + "@(op3 n" + strings.Repeat("i", i) + " n" + strings.Repeat("i", i) + ")")
	}
	r, err := pattern.ParseRewrite(strings.ReplaceAll(deep.String(), "n0@", "n@") + ")")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.Directions()[0].String()); n > 1<<20 {
		t.Errorf("a replacement of %d bytes", n)
	}
}

func TestEquationFaults(t *testing.T) {
	for text, want := range map[string]error{
		"(op1 x) <=> (op2 x)":             nil,
		"(op1 x) <=> (op2 y)":             pattern.ErrUnbound,
		"(op1 x y) <=> (op2 x)":           pattern.ErrUnbound,
		"(op1 x ...ys) <=> (op2 x)":       pattern.ErrUnbound,
		"(op1 x _) <=> (op2 x)":           pattern.ErrForm,
		"(op1 x) <=> x":                   pattern.ErrForm,
		"(op1 x) <=> 2":                   pattern.ErrForm,
		"(matched_only x) <=> (op1 x)":    pattern.ErrForm,
		"(op1 x) <=> (unknown x)":         pattern.ErrUnknownOp,
		"(op1 x) <=> (op2 x) && f(x)":     pattern.ErrUnknownFunc,
		"(op1 x) <=> (op2 ...(op1 x))":    pattern.ErrForm,
		"(add x y) <=> (add y x)":         pattern.ErrNoChange,
		"(op1 (or x y)) <=> (op2 x)":      pattern.ErrForm,
		"(op1 x) <=> (op2 (or 1 2) x)":    pattern.ErrForm,
		"(op1 n@(op2 x) n) <=> (op3 n x)": nil,
	} {
		_, err := pattern.Compile(toys{}, text)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	_, err := pattern.Compile(toys{}, "(op1 x z) <=> (op2 x)")
	if err == nil || !strings.Contains(err.Error(), `"(op1 x z) <=> (op2 x)": from right to left: unbound name: z in the replacement`) {
		t.Error(err)
	}
	for _, text := range []string{"(op1 x) <=>", "<=> (op1 x)", "(op1 x) <= (op2 x)", "(op1 x) <=> (op2 x) &&", "(op1 x) <=> (op2 x) => x", "(op1 x) => (op2 x) && f(x)"} {
		if _, err := pattern.ParseRewrite(text); !errors.Is(err, pattern.ErrSyntax) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A substitution uses an equation from left to right only, or it would never end.
func TestEquationFromLeftToRight(t *testing.T) {
	s := compile(t, "(op1 (op2 x)) <=> (op2 (op1 x))")
	g := newWorld(t).graph("(op1 (op2 (op2 x)))", "(op2 (op1 y))")
	if err := rewrite.Run(t.Context(), &rewrite.Equilibrium{Name: "all", Rules: []rewrite.NodeRewriter{s}}, g, nil); err != nil {
		t.Fatal(err)
	}
	if got := g.String(); got != "[op2(op2(op1(x))), op2(op1(y))]" {
		t.Error(got)
	}
	if got := s.Describe().Cases; len(got) != 1 || got[0] != "(op1 (op2 x)) <=> (op2 (op1 x))" {
		t.Error(got)
	}
}
