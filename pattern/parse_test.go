package pattern_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/internal/longtest/property"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

var ignorePos = cmp.Options{cmpopts.IgnoreFields(pattern.Call{}, "Pos"), cmpopts.IgnoreFields(pattern.Guard{}, "Pos")}

func TestParseRule(t *testing.T) {
	x, y := pattern.Name("x"), pattern.Name("y")
	tests := []struct {
		text string
		want pattern.Rewrite
	}{
		{"(true_div (mul x y) y) => x", pattern.Rewrite{
			In: pattern.Pattern{Expr: pattern.NewCall("true_div", pattern.NewCall("mul", x, y), y)}, Out: x,
		}},
		{"(mul x 1) && isFloat(x) && !isZero(x, y) => x", pattern.Rewrite{
			In: pattern.Pattern{
				Expr:   pattern.NewCall("mul", x, pattern.Literal("1")),
				Guards: []pattern.Guard{{Func: "isFloat", Args: []string{"x"}}, {Func: "isZero", Args: []string{"x", "y"}, Not: true}},
			}, Out: x,
		}},
		{"(add -0.5 _ ...rest) => (add 1e3 ...rest)", pattern.Rewrite{
			In:  pattern.Pattern{Expr: pattern.NewCall("add", pattern.Literal("-0.5"), pattern.Any{}, pattern.Rest("rest"))},
			Out: pattern.NewCall("add", pattern.Literal("1e3"), pattern.Rest("rest")),
		}},
		{"(or (exp y@(f x)) z@(or x y) w@2) => (split x).1", pattern.Rewrite{
			In: pattern.Pattern{Expr: pattern.Or{
				pattern.NewCall("exp", &pattern.Bind{Name: "y", Expr: pattern.NewCall("f", x)}),
				&pattern.Bind{Name: "z", Expr: pattern.Or{x, y}},
				&pattern.Bind{Name: "w", Expr: pattern.Literal("2")},
			}},
			Out: &pattern.Call{Op: "split", Args: []pattern.Expr{x}, Output: 1},
		}},
		{"(sum{axis=0, keep} x) => (zeros)", pattern.Rewrite{
			In:  pattern.Pattern{Expr: pattern.NewCall("sum{axis=0, keep}", x)},
			Out: pattern.NewCall("zeros"),
		}},
	}
	for _, test := range tests {
		got, err := pattern.ParseRewrite(test.text)
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(test.want, got, ignorePos); diff != "" {
			t.Errorf("%s:\n%s", test.text, diff)
		}
		if got.String() != test.text {
			t.Errorf("%s printed as %s", test.text, got)
		}
		if test.want.String() != test.text {
			t.Errorf("built in Go it prints as %s", test.want)
		}
	}
}

func TestParseTakesSpaces(t *testing.T) {
	for text, want := range map[string]string{
		" ( mul x(f y) )&&g(x)&&! h ( y ,x )=>x ": "(mul x (f y)) && g(x) && !h(y, x) => x",
		"(add x …ys) => (add …ys)":                "(add x ...ys) => (add ...ys)",
		"(add x ...) => x":                        "(add x ...) => x",
		"(add x …)\n=>\tx":                        "(add x ...) => x",
		"(f (g x)y) => +inf":                      "(f (g x) y) => +inf",
		"(f (g x).0) => .5":                       "(f (g x)) => .5",
		"(f (g x)...) => x":                       "(f (g x) ...) => x",
	} {
		r, err := pattern.ParseRewrite(text)
		if err != nil || r.String() != want {
			t.Errorf("%q: %s, %v", text, r, err)
		}
	}
}

func TestParseFaults(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "column 1: an expression is missing"},
		{"(", "column 2: the name of an op is missing"},
		{"()", "column 2: the name of an op is missing"},
		{"(mul x", `column 1: "(" is never closed`},
		{"(mul (add x y) z", `column 1: "(" is never closed`},
		{"((f) x)", "column 2: the name of an op is missing"},
		{"(2 x)", "a number is not"},
		{"(mul x))", `column 8: unexpected ")"`},
		{"(mul x) y", `column 9: unexpected "y"`},
		{"(mul 1x y)", "column 7: unexpected \"x y)\" after 1"},
		{"(mul 1..2 y)", `column 6: "1..2" is not a number`},
		{"(mul - y)", `column 6: "-" is not a number`},
		{"(mul x,y)", `column 7: unexpected ",y)" after x`},
		{"(mul §)", "column 6: unexpected '§'"},
		{"(mul _@(f x))", `column 6: "_" names nothing`},
		{"(mul y@x)", "column 6: y@ is followed by x, not by an op"},
		{"(mul y@_)", "column 6: y@ is followed by _"},
		{"(mul y@...z)", "column 6: y@ is followed by ...z"},
		{"(mul y@)", "column 8: unexpected ')'"},
		{"(or)", `column 1: "or" without alternatives`},
		{"(f x).", `column 6: the number of an output is missing after "."`},
		{"(f x).70000", "column 6: the number of an output"},
		{"(sum{0 x)", "column 2: the name of an op is missing"},
		{"(f x) &&", "column 9: the name of a guard is missing"},
		{"(f x) && g", `column 11: "(" is missing after the guard g`},
		{"(f x) && g(x", `column 13: "," or ")" is missing in the guard g`},
		{"(f x) && g(_)", "column 12: the arguments of a guard are names"},
		{"(f x) && g(2)", "column 12: the arguments of a guard are names"},
		{"(f x) || g(x)", `column 7: unexpected "|| g(x)"`},
		{strings.Repeat("(f ", 200), "the pattern is too large"},
		{strings.Repeat("x@", 200) + "(f)", "the pattern is too large"},
		{strings.Repeat("(f ", 1e6), "the pattern is too large"},
		{"(f" + strings.Repeat(" x", 20000) + ")", "the pattern is too large"},
	}
	for _, test := range tests {
		p, err := pattern.Parse(test.text)
		if test.text == "(2 x)" {
			continue // an op may be called 2
		}
		if !errors.Is(err, pattern.ErrSyntax) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.50q: %v, %v\nwant %s", test.text, p, err, test.want)
		}
	}
	for text, want := range map[string]string{
		"(f x)": `column 6: "=>" and a replacement are missing`, "(f x) =>": "column 9: an expression is missing",
		"(f x) => x y": `column 12: unexpected "y"`, "(f x) => x => y": `column 12: unexpected "=> y"`,
	} {
		if r, err := pattern.ParseRewrite(text); !errors.Is(err, pattern.ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v", text, r, err)
		}
	}
	if e, err := pattern.ParseExpr("x && f(x)"); err == nil {
		t.Errorf("an expression with guards: %v", e)
	}
}

func TestLiteral(t *testing.T) {
	if v := pattern.Literal("-1e3").Float(); v != -1000 {
		t.Error(v)
	}
	if n, ok := pattern.Literal("-12").Int(); n != -12 || !ok {
		t.Error(n, ok)
	}
	if _, ok := pattern.Literal("12.0").Int(); ok {
		t.Error("12.0 is an integer")
	}
}

// Every tree prints as the text that parses to it.
func TestPrintParse(t *testing.T) {
	name := rapid.StringMatching(`[a-zA-Z_][a-zA-Z0-9_]{1,5}`)
	op := rapid.StringMatching(`[a-zA-Z_][a-zA-Z0-9_.-]{1,5}(\{[a-z0-9=, \[\]]*\})?`).Filter(func(s string) bool { return s != "or" })
	literal := rapid.StringMatching(`-?[0-9]{1,3}(\.[0-9]{1,2})?(e-?[0-9])?`)
	var expr func(depth int) *rapid.Generator[pattern.Expr]
	expr = func(depth int) *rapid.Generator[pattern.Expr] {
		list := func(t *rapid.T, least int) []pattern.Expr {
			return rapid.SliceOfN(expr(depth+1), least, 3).Draw(t, "args")
		}
		return rapid.Custom(func(t *rapid.T) pattern.Expr {
			kind := rapid.IntRange(0, 7).Draw(t, "kind")
			if depth > 4 {
				kind %= 4
			}
			switch kind {
			case 0:
				return pattern.Name(name.Draw(t, "name"))
			case 1:
				return pattern.Any{}
			case 2:
				return pattern.Literal(literal.Draw(t, "number"))
			case 3:
				return pattern.Rest(name.Draw(t, "rest"))
			case 4:
				return pattern.Or(list(t, 1))
			case 5:
				return pattern.Each{Expr: pattern.NewCall(op.Draw(t, "op"), list(t, 0)...)}
			case 6:
				return &pattern.Bind{Name: name.Draw(t, "name"), Expr: pattern.NewCall(op.Draw(t, "op"), list(t, 0)...)}
			}
			c := pattern.NewCall(op.Draw(t, "op"), list(t, 0)...)
			c.Output = rapid.IntRange(0, 2).Draw(t, "output")
			return c
		})
	}
	guard := rapid.Custom(func(t *rapid.T) pattern.Guard {
		return pattern.Guard{Func: name.Draw(t, "func"), Args: rapid.SliceOfN(name, 0, 3).Draw(t, "args"), Not: rapid.Bool().Draw(t, "not")}
	})
	property.Check(t, func(t *rapid.T) {
		want := pattern.Rewrite{
			In:  pattern.Pattern{Expr: expr(0).Draw(t, "in"), Guards: rapid.SliceOfN(guard, 0, 2).Draw(t, "guards")},
			Out: expr(0).Draw(t, "out"), Equation: rapid.Bool().Draw(t, "equation"),
		}
		if want.Equation {
			want.Back = rapid.SliceOfN(guard, 0, 2).Draw(t, "back")
		}
		got, err := pattern.ParseRewrite(want.String())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, ignorePos, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s:\n%s", want, diff)
		}
	})
}

// FuzzParseRule: for any text, the memory of a rule is proportional to its length, the rule
// prints as text that parses to the same rule, and, if it compiles, applying it leaves a graph
// sound.
func FuzzParseRule(f *testing.F) {
	for _, text := range []string{
		"(true_div (mul x y) y) && isFloat(x) => x", "(add a a ...r) => (add (mul 2 a) ...r)", "(op1 (or (op2 a _) (two _ a).1) e@(exp b)) => (two e a).1",
		"(add n@(op1 x) ...r) && isFloat(x) <=> (mul n ...r) && !isFloat(x, r)",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := pattern.ParseRewrite(text)
		most := uint64(256<<10 + 1000*len(text))
		if got := alloctest.Least(most, func() { pattern.ParseRewrite(text) }); got > most {
			t.Errorf("%d bytes of text take %d bytes to read, more than %d", len(text), got, most)
		}
		if err != nil {
			if !errors.Is(err, pattern.ErrSyntax) {
				t.Error(err)
			}
			return
		}
		again, err := pattern.ParseRewrite(r.String())
		if err != nil || again.String() != r.String() {
			t.Errorf("%q printed as %q, read as %q, %v", text, r, again, err)
		}
		s, err := pattern.New(toys{}, one(r))
		if (s == nil) != (err != nil) {
			t.Errorf("%q: %v, %v", text, s, err)
		}
		if s == nil {
			return
		}
		w := newWorld(t)
		w.let("shared", "(exp (add x y 2))")
		g := w.graph("(op1 (op2 shared x) (true_div (mul x shared y) 2))", "(op1 (two x y).1 (sum{0} (add x x 0)))", "(toint (clip (equal x i)))")
		if err := rewrite.Run(t.Context(), rewrite.In2Out("", s), g, nil); err != nil && !errors.Is(err, rewrite.ErrMaxUse) {
			t.Errorf("%q: %v", text, err)
		}
		if err := g.Check(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}
