package pattern_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/pattern"
)

// TestDeepRules: rules of any depth compile without much more memory than their size, though each
// part of them may be compared, printed, or put in place of names.
func TestDeepRules(t *testing.T) {
	depth := longtest.Of(4000, 10000)
	var e pattern.Expr = pattern.Name("x")
	for range depth {
		e = pattern.NewCall("add", e, pattern.NewCall("exp", pattern.Name("x")))
	}
	for _, w := range []pattern.Rewrite{
		{In: pattern.Pattern{Expr: e}, Out: pattern.Name("x")},
		{In: pattern.Pattern{Expr: e}, Out: pattern.NewCall("exp", e)},
		{In: pattern.Pattern{Expr: e}, Out: pattern.NewCall("exp", e), Equation: true},
	} {
		if _, err := pattern.New(toys{}, pattern.Rule{Cases: []pattern.Rewrite{w}}); err != nil {
			t.Error(err)
		}
	}
	same := pattern.Rewrite{In: pattern.Pattern{Expr: e}, Out: e}
	if _, err := pattern.New(toys{}, pattern.Rule{Cases: []pattern.Rewrite{same}}); !errors.Is(err, pattern.ErrNoChange) {
		t.Error(err)
	}
}

// TestDeepTexts: texts that nest too deep are refused, and names that are bound to each other are
// written out without repeating the work for each level.
func TestDeepTexts(t *testing.T) {
	const depth = 10000
	nested := func(open, inner, end string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	for _, text := range []string{
		nested("(exp ", "x", ")", depth) + " => x",
		"(exp x) => " + nested("(exp ", "x", ")", depth),
		"(exp x) => {" + nested("(", "x", ")", depth) + "}",
		"(exp x) => {" + nested("-", "x", "", depth) + "}",
		"(add ...xs) => (add " + nested("...(exp ", "xs", ")", depth) + ")",
		nested("(or (exp x) ", "(exp x)", ")", depth) + " => x",
	} {
		if _, err := pattern.Compile(valuedToys{}, text); !errors.Is(err, pattern.ErrSyntax) {
			t.Errorf("%.20s…: %v", text, err)
		}
	}
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, " x%d@(exp x%d)", i, i+1)
	}
	if _, err := pattern.Compile(toys{}, "(add"+b.String()+") <=> (op1 x0 x2000)"); err == nil {
		t.Error("the other direction does not bind all names")
	}
	if _, err := pattern.Compile(toys{}, nested("(add ", "x", " (neg x))", 30)+" => x"); !errors.Is(err, pattern.ErrUnknownOp) {
		t.Error(err)
	}
	if _, err := pattern.Compile(toys{}, nested("(add ", "x", " (exp x))", 90)+" => x"); err != nil {
		t.Error(err)
	}
}

// BenchmarkCompile compiles many rules.
func BenchmarkCompile(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				compileTexts(b, toys{}, "(add (mul x 1) (exp y)) => x")
				for i := range n {
					compileTexts(b, toys{}, fmt.Sprintf("(add (mul x %d) (exp y)) => (mul y %d)", i, i))
				}
			}
		})
	}
}
