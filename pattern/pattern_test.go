package pattern_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

func TestRuleFaults(t *testing.T) {
	tests := []struct {
		rule string
		want error
		text string
	}{
		{"(op9 x) => x", pattern.ErrUnknownOp, "column 1: unknown op: op9"},
		{"(op1 (op2 (op9 x))) => x", pattern.ErrUnknownOp, "column 11: unknown op: op9"},
		{"(op1 x) => (op9 x)", pattern.ErrUnknownOp, "op9"},
		{"(exp x y) => x", pattern.ErrArity, "column 1: wrong number of arguments: (exp x y) has 2, the op 1"},
		{"(exp) => 1", pattern.ErrArity, "(exp) has 0, the op 1"},
		{"(op1 (true_div x)) => x", pattern.ErrArity, "column 6: wrong number of arguments: (true_div x) has 1, the op 2"},
		{"(clip x x x x) => x", pattern.ErrArity, "has 4, the op 1 to 3"},
		{"(true_div x y z ...) => x", pattern.ErrArity, "has 3, the op 2"},
		{"(op1 x) => (exp x x)", pattern.ErrArity, "(exp x x) has 2"},
		{"(op1 x) => y", pattern.ErrUnbound, "y in the replacement"},
		{"(op1 _) => (op2 x)", pattern.ErrUnbound, "x in the replacement"},
		{"(op1 x) => (op2 ...x)", pattern.ErrUnbound, "...x in the replacement"},
		{"(op1 ...x) => x", pattern.ErrUnbound, "x in the replacement"},
		{"(op1 x) && f(x) => x", pattern.ErrUnknownFunc, "guard f"},
		{"(op1 x) && yes(y) => x", pattern.ErrUnbound, "y in the guard yes(y)"},
		{"x => (op1 x)", pattern.ErrForm, "the pattern is not an op"},
		{"2 => (op1 2)", pattern.ErrForm, "the pattern is not an op"},
		{"(or (op1 x) x) => x", pattern.ErrForm, "the pattern is not an op"},
		{"(or (op1 x) (op2 y)) => 1", pattern.ErrForm, "the alternatives (op1 x) and (op2 y) do not bind the same names"},
		{"(op1 (or (op2 x ...y) (op2 x y))) => x", pattern.ErrForm, "do not bind the same names"},
		{"(op1 ...x y) => y", pattern.ErrForm, "...x is not the last argument"},
		{"(op1 x@(or y@(op2 z) y@(op3 z))) => y", nil, ""},
		{"(op1 x@(op2 x)) => x", nil, ""}, // never matches, but is valid
		{"(op1 x (op2 ...x)) => x", pattern.ErrForm, "x is a variable and a rest"},
		{"(op1 x) => _", pattern.ErrForm, "_ in a replacement"},
		{"(op1 x) => (or x x)", pattern.ErrForm, "(or x x) in a replacement"},
		{"(op1 x) => y@(op2 x)", pattern.ErrForm, "y@(op2 x) in a replacement"},
		{"(op1 ...x) => ...x", pattern.ErrForm, "...x in a replacement"},
		{"(op1 ...x) => ...(op2 x)", pattern.ErrForm, "...(op2 x) in a replacement"},
		{"(op1 ...(op2 x)) => x", pattern.ErrForm, "...(op2 x) in a pattern"},
		{"(op1 x) => (op2 ...(op3 x))", pattern.ErrUnbound, "...(op3 x) without the name of a rest"},
		{"(op1 ...x) => (op2 ...(op3 ...(op4 x)))", pattern.ErrForm, "...(op4 x) inside of another"},
		{"(op1 x) => (matched_only x)", pattern.ErrForm, "the op matched_only can be matched, but not made"},
		{"(op1 x) => (op1 x)", pattern.ErrNoChange, "(op1 x)"},
		{"(add x (mul y 2)) => (add (mul 2 y) x)", pattern.ErrNoChange, ""},
		{"(op1 x y) => (op1 y x)", nil, ""},
		{"(add x y) => (add x x)", nil, ""},
	}
	yes := pattern.WithGuard("yes", func(a pattern.Args) bool { return true })
	for _, test := range tests {
		s, err := pattern.Compile(toys{}, test.rule, yes)
		if !errors.Is(err, test.want) || err != nil && !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v, want %v: %s", test.rule, err, test.want, test.text)
		}
		if (s == nil) != (test.want != nil) {
			t.Errorf("%s: %v with the error %v", test.rule, s, err)
		}
	}
}

func TestFaultsAreReportedTogether(t *testing.T) {
	_, err := pattern.Sub(toys{}, "(op9 (exp x y)) && f(q)", "(op8 z)")
	for _, want := range []error{pattern.ErrUnknownOp, pattern.ErrArity, pattern.ErrUnknownFunc, pattern.ErrUnbound} {
		if !errors.Is(err, want) {
			t.Errorf("%v is not %v", err, want)
		}
	}
	if !strings.HasPrefix(err.Error(), "6 faults:\n\tpattern \"(op9 (exp x y)) && f(q) => (op8 z)\": column 1: unknown op: op9") {
		t.Error(err)
	}
	for _, rule := range []pattern.Rewrite{{}, {In: pattern.Pattern{Expr: pattern.NewCall("op1")}}, {Out: pattern.Name("x")}} {
		if _, err := pattern.New(toys{}, one(rule)); !errors.Is(err, pattern.ErrForm) {
			t.Errorf("%v: %v", rule, err)
		}
	}
	for _, e := range []pattern.Expr{pattern.NewCall("op1", nil), pattern.NewCall("op1", pattern.Or{}), pattern.NewCall("op1", &pattern.Bind{Name: "x"})} {
		if _, err := pattern.New(toys{}, one(pattern.Rewrite{In: pattern.Pattern{Expr: e}, Out: pattern.Literal("1")})); !errors.Is(err, pattern.ErrForm) {
			t.Errorf("%v: %v", e, err)
		}
	}
	if _, err := pattern.New(toys{}, one(pattern.Rewrite{In: pattern.Pattern{Expr: pattern.NewCall("op1")}, Out: pattern.NewCall("op1", nil)})); !errors.Is(err, pattern.ErrForm) {
		t.Error(err)
	}
	for _, text := range [][2]string{{"(op1", "x"}, {"(op1 x)", "("}} {
		if s, err := pattern.Sub(toys{}, text[0], text[1]); !errors.Is(err, pattern.ErrSyntax) || s != nil {
			t.Error(s, err)
		}
	}
}

// one returns the rule of one rewrite.
func one(r pattern.Rewrite) pattern.Rule { return pattern.Rule{Cases: []pattern.Rewrite{r}} }

func TestMust(t *testing.T) {
	if s := pattern.Must(toys{}, "(op1 x)", "x"); s.String() != "(op1 x) => x" {
		t.Error(s)
	}
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, pattern.ErrUnbound) {
			t.Error(err)
		}
	}()
	pattern.Must(toys{}, "(op1 x)", "y")
}

func TestMatcher(t *testing.T) {
	m, err := pattern.NewMatcher(toys{}, "(op1 e@(exp x) ...ys)")
	if err != nil {
		t.Fatal(err)
	}
	g := newWorld(t).graph("(op1 (exp x) y z)", "(op1 (exp (op1 (exp y))))", "(op1 x)", "(op2 x)")
	var got []string
	for a, b := range m.All(g) {
		got = append(got, fmt.Sprintf("%s %v %s %v %v %v", fgraph.Sprint(0, a.Out()), b.Variable("x"), fgraph.Sprint(0, b.Variable("e")), b.Rest("ys"), b.Variable("ys"), b.Rest("x")))
	}
	want := []string{
		"[op1(exp(x), y, z)] x [exp(x)] [y z] <nil> []",
		"[op1(exp(y))] y [exp(y)] [] <nil> []",
		"[op1(exp(op1(exp(y))))] op1(exp(y)) [exp(op1(exp(y)))] [] <nil> []",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for range m.All(g) {
		break
	}
	if m.Pattern().String() != "(op1 e@(exp x) ...ys)" {
		t.Error(m.Pattern())
	}
	if _, err := pattern.NewMatcher(toys{}, "(op1 (op9 x)"); !errors.Is(err, pattern.ErrSyntax) {
		t.Error(err)
	}
	if m, err := pattern.NewMatcher(toys{}, "(op1 (op9 x))"); !errors.Is(err, pattern.ErrUnknownOp) || m != nil {
		t.Error(m, err)
	}
}

func TestConcurrentUse(t *testing.T) {
	s := compile(t, "(op1 (add (exp x) y) ...r) => (op2 x y ...r)")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				g := newWorld(t).graph("(op1 (add z (exp x)) y w)")
				if err := rewrite.Run(t.Context(), rewrite.In2Out("", s), g, nil); err != nil || g.String() != "[op2(x, z, y, w)]" {
					t.Error(g, err)
					return
				}
			}
		})
	}
	wg.Wait()
}
