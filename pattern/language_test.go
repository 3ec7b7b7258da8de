package pattern_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// sums is toys with families, functions, known numbers and replacements that conform: sum and max
// are families whose parameters are the text in the braces, op5 of a number is that number, and
// where a float is wanted, an integer is converted by "tofloat".
type sums struct{ toys }

// Operator has no op whose parameters are a letter: that is a name.
func (s sums) Operator(name string) (pattern.Operator, bool) {
	if _, params, ok := strings.Cut(name, "{"); ok && !strings.ContainsAny(params, "0123456789") {
		return pattern.Operator{}, false
	}
	return s.toys.Operator(name)
}

func (sums) Family(name string) (pattern.Operator, bool) {
	if name != "sum" && name != "max" {
		return pattern.Operator{}, false
	}
	return pattern.Operator{
		Match: func(o fgraph.Op) bool { return strings.HasPrefix(o.String(), name+"{") },
		Param: func(o fgraph.Op) any { return strings.TrimSuffix(strings.TrimPrefix(o.String(), name+"{"), "}") },
		Make: func(m pattern.Making) (*fgraph.Variable, error) {
			return fgraph.NewApply(toy(fmt.Sprintf("%s{%s}", name, m.Param)), m.Inputs, float).Out(), nil
		},
		MinInputs: 1, MaxInputs: 1, Tracks: []rewrite.Track{rewrite.TrackType[toy]()},
	}, true
}

func (s sums) Number(v *fgraph.Variable) (float64, bool) {
	if a := v.Owner(); a != nil && a.Op() == toy("op5") {
		return s.Number(a.Inputs()[0])
	}
	x, ok := v.Data().(float64)
	return x, ok && v.IsConstant()
}

func (s sums) Equal(l pattern.Literal, v *fgraph.Variable) bool {
	x, ok := s.Number(v)
	return ok && x == l.Float() && (l.Type() == "" || l.Type() == fmt.Sprint(v.Type()))
}

func (sums) Conform(_ *fgraph.Apply, old, v *fgraph.Variable) (*fgraph.Variable, error) {
	if old.Type() == float && v.Type() == whole {
		return fgraph.NewApply(toy("tofloat"), []*fgraph.Variable{v}, float).Out(), nil
	}
	return v, nil
}

func (sums) Functions() []pattern.Function {
	return []pattern.Function{
		{Name: "single", Usage: "single({a})", Depth: 1, Doc: "there is one axis",
			Holds: func(a pattern.Args) bool { return len(a.Params[0].(string)) == 1 }},
		{Name: "input", Usage: "input(x)", Depth: 2, Doc: "nothing computes x",
			Holds: func(a pattern.Args) bool {
				for _, v := range a.Vars {
					if v.Owner() != nil {
						return false
					}
				}
				return true
			}},
		{Name: "join", Usage: "join({a}, {b})", Depth: 1, Doc: "the axes of both",
			Param: func(a pattern.Args) (any, error) {
				if a.Params[0] == a.Params[1] {
					return nil, errors.New("the axes overlap")
				}
				return fmt.Sprint(a.Params[0], a.Params[1]), nil
			}},
	}
}

func TestLanguage(t *testing.T) {
	tests := []struct{ rule, graph, want string }{
		{"(sum{a} (op1 x)) => (op1 (sum{a} x))", "(sum{0} (op1 x))", "op1(sum{0}(x))"},
		{"(sum{a} (op1 x)) => (op1 (sum{a} x))", "(sum{0,1} (op1 x))", "op1(sum{0,1}(x))"},
		{"(sum{a} (op1 x)) => (op1 (sum{a} x))", "(max{0} (op1 x))", "max{0}(op1(x))"},
		{"(sum{a} (op1 x)) => (max{a} x)", "(sum{1} (op1 x))", "max{1}(x)"},
		{"(op1 (sum{a} x) (max{a} y)) => x", "(op1 (sum{0} x) (max{0} y))", "x"},
		{"(op1 (sum{a} x) (max{a} y)) => x", "(op1 (sum{0} x) (max{1} y))", "op1(sum{0}(x), max{1}(y))"},
		{"(op1 (sum{a} x) (sum{b} y)) => (op1 (sum{b} x) (sum{a} y))", "(op1 (sum{0} x) (sum{1} y))", "op1(sum{1}(x), sum{0}(y))"},
		{"(sum{a} (sum{b} x)) => (sum{join(b, a)} x)", "(sum{0} (sum{1} x))", "sum{10}(x)"},
		{"(sum{a} (sum{b} x)) => (sum{join(b, a)} x)", "(sum{0} (sum{0} x))", "sum{0}(sum{0}(x))"},
		{"(sum{a} x) && single(a) => x", "(op1 (sum{0} x) (sum{00} x))", "op1(x, sum{00}(x))"},
		{"(op1 ...xs) && input(xs) => (op2 ...xs)", "(op1 x y)", "op2(x, y)"},
		{"(op1 ...xs) && input(xs) => (op2 ...xs)", "(op1 x (op3 y))", "op1(x, op3(y))"},
		{"(op1 ...xs) && !input(xs) => (op2 ...xs)", "(op1 x (op3 y))", "op2(x, op3(y))"},
		{"(op1 x a b) => (op2 {a*b - 1} x)", "(op1 x 3 4)", "op2(11, x)"},
		{"(op1 x a b) => (op2 {a*b - 1} x)", "(op1 x (op5 3) 4)", "op2(11, x)"},
		{"(op1 x a b) => (op2 {a*b - 1} x)", "(op1 x y 4)", "op1(x, y, 4)"},
		{"(op1 a b) => {-(a + 2*b)**2/4}", "(op1 2 3)", "-16"},
		{"(op1 2 x) => x", "(op1 (op5 (op5 2)) x)", "x"},
		{"(op1 2:float x) => x", "(op1 2 x)", "x"},
		{"(op1 2:int x) => x", "(op1 2 x)", "op1(2, x)"},
		{"(op1 i x) => (op2 2:i x)", "(op1 i x)", "op2(2, x)"},
		{"(op1 x) => (toint x)", "(op1 x)", "tofloat(toint(x))"},
	}
	for _, test := range tests {
		s, err := pattern.Compile(sums{}, test.rule)
		if err != nil {
			t.Error(err)
			continue
		}
		if s.String() != test.rule {
			t.Errorf("%s prints as %s", test.rule, s)
		}
		g := newWorld(t).graph(test.graph)
		walk(t, g, rewrite.In2Out("", s))
		if got := strings.TrimSuffix(strings.TrimPrefix(g.String(), "["), "]"); got != test.want {
			t.Errorf("%s by %s: %s, want %s", test.graph, test.rule, got, test.want)
		}
	}
}

// A typed number is of the type that it names.
func TestTypedNumber(t *testing.T) {
	for rule, want := range map[string]fgraph.Type{"(op1 i x) => (op2 2:i x)": whole, "(op1 i x) => (op2 2:x x)": float, "(op1 i x) => (op2 2 x)": float} {
		g := newWorld(t).graph("(op1 i x)")
		walk(t, g, rewrite.In2Out("", compile(t, rule)))
		if got := g.Outputs()[0].Owner().Inputs()[0].Type(); got != want {
			t.Errorf("%s: the number is of type %v", rule, got)
		}
	}
}

func TestLanguageFaults(t *testing.T) {
	tests := []struct {
		rule string
		want error
		text string
	}{
		{"(sum{a} a) => a", pattern.ErrForm, "a is a variable and the parameters of an op"},
		{"(sum{a} ...a) => 1", pattern.ErrForm, "a is a variable and the parameters of an op"},
		{"(sum{a} x) => a", pattern.ErrUnbound, "a in the replacement"},
		{"(sum{a} x) => (max{b} x)", pattern.ErrUnbound, "b in max{b}"},
		{"(sum{a} x) => (max{f(a)} x)", pattern.ErrUnknownFunc, "f in max{f(a)}"},
		{"(sum{a} x) => (max{single(a)} x)", pattern.ErrUnknownFunc, "single in max{single(a)}"},
		{"(sum{a} x) => (max{join(a)} x)", pattern.ErrArity, "join(a) has 1 arguments, the function is join({a}, {b})"},
		{"(sum{a} x) => (max{join(a, x)} x)", pattern.ErrForm, "x in join(a, x): the function is join({a}, {b})"},
		{"(sum{a} x) => (max{join(a, b)} x)", pattern.ErrUnbound, "b in the function join(a, b)"},
		{"(sum{a} x) => (max{a b} x)", pattern.ErrForm, "max{a b}: a name or a function of names is expected in braces"},
		{"(min{a} x) => x", pattern.ErrUnknownOp, "min{a}"},
		{"(sum{join(a)} x) => x", pattern.ErrForm, "a name for the parameters is expected"},
		{"(sum{a} x) && join(a, a) => x", pattern.ErrUnknownFunc, "guard join"},
		{"(sum{a} x) && single(x) => x", pattern.ErrForm, "x in single(x): the function is single({a})"},
		{"(sum{a} x) && input() => x", pattern.ErrArity, "input() has 0 arguments"},
		{"(op1 x) => {x + y}", pattern.ErrUnbound, "y in {x + y}"},
		{"(op1 {2}) => 2", pattern.ErrForm, "{2} in a pattern"},
		{"(or (op1 (sum{a} x)) (op2 x)) => x", pattern.ErrForm, "do not bind the same names"},
	}
	for _, test := range tests {
		_, err := pattern.Compile(sums{}, test.rule)
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v\nwant %v: %s", test.rule, err, test.want, test.text)
		}
	}
	if _, err := pattern.Compile(toys{}, "(op1 x) => {x + 1}"); !errors.Is(err, pattern.ErrForm) {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"(f x) => {x +}": "a number, a name or \"(\" is missing", "(f x) => {x": `"{" is never closed`, "(f x) => {(x}": "\")\" is missing",
		"(f x) => {x y}": `unexpected "y"`, "(f x) => {}": "is missing", "(f x) => 2:": "the type of 2 is missing",
		"(f x) => {" + strings.Repeat("-", 500) + "x}": "too deep", "(f x) => {x" + strings.Repeat("+x", 500) + "}": "too long",
	} {
		if _, err := pattern.ParseRewrite(text); !errors.Is(err, pattern.ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A rule looks as far as its patterns and functions do.
func TestDepth(t *testing.T) {
	for rule, want := range map[string]int{
		"(op1 (op2 x)) => x":                         2,
		"(op1 (op2 x)) && input(x) => x":             3,
		"(sum{a} x) && single(a) => x":               1,
		"(op1 (op2 x)) && other(x) => x":             0,
		"(sum{a} (sum{b} x)) => (sum{join(b, a)} x)": 2,
		"(op1 x) => (build x)":                       0,
	} {
		s, err := pattern.Compile(sums{}, rule, pattern.WithGuard("other", func(pattern.Args) bool { return true }),
			pattern.With(pattern.Function{Name: "build", Build: func(a pattern.Args) (*fgraph.Variable, error) { return a.Vars[0], nil }}))
		if err != nil {
			t.Error(err)
		} else if d := s.Describe().Depth; d != want {
			t.Errorf("%s looks %d levels far, want %d", rule, d, want)
		}
	}
}

// powers is sums with powers of its own.
type powers struct{ sums }

func (powers) Pow(x, y float64) float64 { return 1000*x + y }

// TestPowers: a vocabulary computes the powers in formulas.
func TestPowers(t *testing.T) {
	s, err := pattern.Compile(powers{}, "(op1 a b) => {a**b + 1}")
	if err != nil {
		t.Fatal(err)
	}
	g := newWorld(t).graph("(op1 2 3)")
	if walk(t, g, rewrite.In2Out("", s)); g.String() != "[2004]" {
		t.Error(g)
	}
}
