package egraph

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/pattern"
)

// sums is a language with sums and products of any number of terms.
type sums struct {
	lang     *Language
	num, sym Symbol
}

func newSums(tb testing.TB) *sums {
	tb.Helper()
	s := &sums{lang: NewLanguage()}
	declare := func(sig Signature) Symbol {
		id, err := s.lang.Declare(sig)
		if err != nil {
			tb.Fatal(err)
		}
		return id
	}
	s.num, s.sym = declare(Signature{Name: "num"}), declare(Signature{Name: "var"})
	many := [2]int{0, -1}
	declare(Signature{Name: "add", Inputs: many, Commutes: true})
	declare(Signature{Name: "mul", Inputs: many, Commutes: true})
	declare(Signature{Name: "neg", Inputs: [2]int{1, 1}})
	declare(Signature{Name: "eq", Inputs: [2]int{2, 2}, Commutes: true})
	declare(Signature{Name: "join", Inputs: many})
	declare(Signature{Name: "if", Inputs: [2]int{3, 3}})
	declare(Signature{Name: "split", Inputs: [2]int{1, 1}, Outputs: 2})
	declare(Signature{Name: "sum", Inputs: [2]int{1, 1}})
	s.lang.SetNumbers(func(g *Graph, v float64) Op {
		if g == nil {
			return s.lang.Intern(s.num, v)
		}
		return g.Intern(s.num, v)
	})
	s.lang.SetGuard("numbers", func(g *Graph, a Args) bool {
		return !slices.ContainsFunc(a.Classes, func(c Class) bool { _, ok := s.value(g, c); return !ok })
	})
	s.lang.SetGuard("outside", func(_ *Graph, a Args) bool { return !slices.Contains(a.Classes[1:], a.Classes[0]) })
	s.lang.SetGuard("same", func(_ *Graph, a Args) bool { return a.Params[0] == a.Params[1] })
	s.lang.SetGuard("root", func(g *Graph, a Args) bool { return g.Class(a.Root) == a.Classes[0] })
	return s
}

// value returns the number that a class is.
func (s *sums) value(g *Graph, c Class) (float64, bool) {
	for n := range g.Nodes(c) {
		if g.Symbol(g.Op(n)) == s.num {
			return g.Param(g.Op(n)).(float64), true
		}
	}
	return 0, false
}

// add adds an expression; "sum{a}" has the parameters "a".
func (s *sums) add(tb testing.TB, g *Graph, text string) Class {
	tb.Helper()
	e, err := pattern.ParseExpr(text)
	if err != nil {
		tb.Fatal(err)
	}
	var add func(e pattern.Expr) Class
	add = func(e pattern.Expr) Class {
		switch e := e.(type) {
		case pattern.Name:
			return g.Add(g.Intern(s.sym, string(e)))
		case pattern.Literal:
			return g.Add(g.Intern(s.num, e.Float()))
		}
		c := e.(*pattern.Call)
		name, param, has := strings.Cut(strings.TrimSuffix(c.Op, "}"), "{")
		sym, ok := s.lang.Symbol(name)
		if !ok {
			tb.Fatalf("no op %s", name)
		}
		var args []Class
		for _, a := range c.Args {
			args = append(args, add(a))
		}
		op := g.Intern(sym, nil)
		if has {
			op = g.Intern(sym, param)
		}
		x := g.Add(op, args...)
		if s.lang.sigs[sym].Outputs > 0 {
			x = g.Add(s.lang.Output(c.Output), x)
		}
		return x
	}
	return add(e)
}

func (s *sums) rules(tb testing.TB, text string) *Rules {
	tb.Helper()
	list, err := pattern.ParseRules("sums", text)
	if err != nil {
		tb.Fatal(err)
	}
	r, err := Compile(s.lang, list)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// flat are rules by which sums and products are multisets of terms. Without the guard, b = (mul b 1) would be replaced in
// itself for ever.
const flat = `
flatten_add:
    (add x@(add ...xs) ...ys) && outside(x, xs) => (add ...xs ...ys)
    (add 0 ...xs) => (add ...xs)
    (add x) => x
    (add) => 0
flatten_mul:
    (mul x@(mul ...xs) ...ys) && outside(x, xs) => (mul ...xs ...ys)
    (mul 1 ...xs) => (mul ...xs)
    (mul x) => x
    (mul) => 1
`

// TestCases saturates expressions with a rule or two, and says what they equal then. Each
// explanation is replayed.
func TestCases(t *testing.T) {
	const factor = "factor:\n    (add (mul a ...xs) (mul a ...ys) ...zs) => (add (mul a (add (mul ...xs) (mul ...ys))) ...zs)\n"
	for _, c := range []struct {
		name, rules, start, goal string
		equal                    bool
	}{
		{"order and brackets", "", "(add a (add b (add c d)))", "(add (add d b) (add c a))", true},
		{"multisets count", "", "(add a a b)", "(add a b b)", false},
		{"units vanish", "", "(add a (mul b 1) 0)", "(add b a)", true},
		{"factor", factor, "(add (mul x y) (mul x z) (mul w y) (mul w z))", "(mul (add x w) (add y z))", true},
		{"factor of equal terms", factor, "(add (mul x y) (mul x y))", "(mul x (add y y))", true},
		{"no common factor", factor, "(add (mul x y) (mul v z))", "(mul x (add y z))", false},
		{"cancel", "cancel:\n    (add x (neg x) ...ys) => (add ...ys)\n", "(add a b (neg a) c)", "(add b c)", true},
		{"cancel all", "cancel:\n    (add x (neg x) ...ys) => (add ...ys)\n", "(add a (neg a))", "0", true},
		{"same twice", "same:\n    (eq x x) => 1\n", "(eq a (add a 0))", "1", true},
		{"commutes", "eq:\n    (eq (neg x) y) => (if x y 2)\n", "(eq a (neg b))", "(if b a 2)", true},
		{"rest in order", "join:\n    (join a (join ...xs) ...ys) => (join a ...xs ...ys)\n", "(join p (join q r) s)", "(join p q r s)", true},
		{"order counts", "join:\n    (join a (join ...xs) ...ys) => (join a ...xs ...ys)\n", "(join p (join q r) s)", "(join p r q s)", false},
		{"three inputs", "if:\n    (if c x x) => x\n", "(if a b b)", "b", true},
		{"three inputs below", "if:\n    (neg (if c (neg x) (neg y))) => (if c x y)\n", "(neg (if a (neg p) (neg q)))", "(if a p q)", true},
		{"outputs", "split:\n    (split (join a b)) => a\n    (split (join a b)).1 => b\n", "(add (split (join p q)) (split (join p q)).1)", "(add p q)", true},
		{"another output", "split:\n    (split (join a b)).1 => b\n", "(split (join p q))", "q", false},
		{"output below", "split:\n    (neg (split a).1) => (neg (split a))\n", "(neg (split p).1)", "(neg (split p))", true},
		{"parameters", "sum:\n    (sum{a} (sum{b} x)) => (sum{b} (sum{a} x))\n", "(sum{p} (sum{q} x))", "(sum{q} (sum{p} x))", true},
		{"same parameters", "sum:\n    (eq (sum{a} x) (sum{a} y)) => (eq x y)\n", "(eq (sum{p} x) (sum{p} y))", "(eq x y)", true},
		{"other parameters", "sum:\n    (eq (sum{a} x) (sum{a} y)) => (eq x y)\n", "(eq (sum{p} x) (sum{q} y))", "(eq x y)", false},
		{"binding", "bind:\n    (neg y@(neg x)) => (join x y)\n", "(neg (neg a))", "(join a (neg a))", true},
		{"the same rest twice", "r:\n    (join x (neg (join y ...i)) ...i) => (join x y ...i)\n", "(join p (neg (join q a b)) a b)", "(join p q a b)", true},
		{"another rest", "r:\n    (join x (neg (join y ...i)) ...i) => (join x y ...i)\n", "(join p (neg (join q a b)) a c)", "(join p q a b)", false},
		{"another order", "r:\n    (join x (neg (join y ...i)) ...i) => (join x y ...i)\n", "(join p (neg (join q a b)) b a)", "(join p q a b)", false},
		{"the same multiset twice", "r:\n    (mul x (add x ...i) (neg (add ...i))) => (mul x ...i)\n", "(mul a (add a b c) (neg (add c b)))", "(mul a b c)", true},
		{"rests that become the same", "r:\n    (join x (neg (join y ...i)) ...i) => (join x y ...i)\nn:\n    (neg (neg x)) => x\n", "(join p (neg (join q (neg (neg a)))) a)", "(join p q a)", true},
		{"guard of a rest", "r:\n    (join x ...ys) && numbers(ys) => (neg x)\n", "(join a 1 2)", "(neg a)", true},
		{"guard of a rest that fails", "r:\n    (join x ...ys) && numbers(ys) => (neg x)\n", "(join a 1 b)", "(neg a)", false},
		{"guard of picks and a rest", "r:\n    (add x (neg y) ...zs) && numbers(x, zs) => (if x y 1)\n", "(add (neg a) 2 3)", "(if 2 a 1)", true},
		{"guard of parameters", "r:\n    (eq (sum{a} x) (sum{b} y)) && same(a, b) => (eq x y)\n", "(eq (sum{p} x) (sum{p} y))", "(eq x y)", true},
		{"guard of parameters that fails", "r:\n    (eq (sum{a} x) (sum{b} y)) && same(a, b) => (eq x y)\n", "(eq (sum{p} x) (sum{q} y))", "(eq x y)", false},
		{"guard of the root", "r:\n    y@(neg x) && root(y) && !root(x) => (join x)\n", "(neg a)", "(join a)", true},
		{"anything", "any:\n    (if _ x _) => x\n", "(if a b c)", "b", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSums(t)
			r := s.rules(t, flat+c.rules)
			g := New(s.lang, WithExplanations())
			start, goal := s.add(t, g, c.start), s.add(t, g, c.goal)
			report, err := g.Saturate(t.Context(), r, Options{Limits: Limits{Nodes: 5000, Laps: 30}})
			if err != nil {
				t.Fatal(err)
			}
			checkInvariants(t, g)
			if got := g.Find(start) == g.Find(goal); got != c.equal {
				t.Fatalf("equal: %v\n%s", got, report)
			}
			e, err := g.Explain(r, start, goal)
			if !c.equal {
				if err == nil {
					t.Errorf("an explanation of what is wrong: %s", e)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			(&replayer{r: r}).check(t, e)
		})
	}
}

// TestExtract compares costs of choices with those that are known to be the least.
func TestExtract(t *testing.T) {
	for _, c := range []struct {
		name   string
		rules  string
		starts []string
		cost   map[string]float64
		want   float64
	}{
		{"one class", "r:\n    (neg x) => (join x)\n", []string{"(neg a)"}, map[string]float64{"neg": 5, "join": 3}, 3},
		{"nothing better", "r:\n    (neg x) => (join x)\n", []string{"(neg a)"}, map[string]float64{"neg": 2, "join": 3}, 2},
		// Each of p and q is cheaper by itself (5 instead of 7), but both can share (if a a a).
		{"two outputs", "r:\n    (sum{k} x) => (neg (if x x x))\n    (join x) => (eq x (if x x x))\n", []string{"(sum{k} a)", "(join a)"},
			map[string]float64{"sum": 5, "join": 5, "neg": 1, "eq": 1, "if": 6}, 8},
		{"a cycle is no term", "r:\n    (neg x) => x\n    (join x) => (neg (join x))\n", []string{"(join a)"}, map[string]float64{"join": 9}, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSums(t)
			r := s.rules(t, c.rules)
			g := New(s.lang, WithExplanations())
			var roots []Class
			for _, text := range c.starts {
				roots = append(roots, s.add(t, g, text))
			}
			if _, err := g.Saturate(t.Context(), r, Options{Limits: Limits{Laps: 5}}); err != nil {
				t.Fatal(err)
			}
			choice, err := g.Extract(t.Context(), func(g *Graph, n Node) float64 { return c.cost[g.Name(g.Op(n))] }, roots...)
			if err != nil {
				t.Fatal(err)
			}
			if choice.Cost != c.want || !choice.Optimal {
				t.Errorf("cost %v, not %v (optimal: %v)", choice.Cost, c.want, choice.Optimal)
			}
			for _, root := range roots {
				e, err := g.ExplainChoice(r, root, choice)
				if err != nil {
					t.Fatal(err)
				}
				if len(roots) > 0 && e.Start != e.End() && len(e.Steps) == 0 {
					t.Error("no steps")
				}
			}
		})
	}
}

// TestBadCosts refuses costs that have no meaning.
func TestBadCosts(t *testing.T) {
	s := newSums(t)
	for _, bad := range []float64{-1, math.NaN(), math.Inf(1)} {
		g := New(s.lang)
		root := s.add(t, g, "(neg a)")
		if _, err := g.Extract(t.Context(), func(*Graph, Node) float64 { return bad }, root); err == nil {
			t.Errorf("a cost of %v is accepted", bad)
		}
	}
}

// TestBadRules refuses rules that can't be compiled, all at once.
func TestBadRules(t *testing.T) {
	s := newSums(t)
	bad := []string{
		"(unknown x) => x", "(neg x) => (unknown x)", "(neg x) => y", "(neg x y) => x", "(neg x) => (if x x)", "(add x ...ys) => (neg ...ys)",
		"(neg x) && odd(x) => x", "(neg x).1 => x", "(neg x) => {x*y}", "(neg x) => (mul {xs} x)", "x => {x}", "(neg x) => 1:float32", "(neg x) => (sum{p(x)} x)",
		"(add (neg x) ...x) => x", "(add ...x) => (neg x)", "(add x ...ys) => (add ...(neg x))", "(add ...xs) => (add ...(neg (add ...xs)))", "(neg x) && numbers(y) => x", "x => (or x)", "(sum{a} x) => (sum{b} x)", "(sum{a} a) => a", "(neg 1:int64) => 1", "(add ...x y) => y",
		"(add x ...ys) => (add ...(add ...ys))", "x && odd(x) => x", "2 => 3", "(neg x) => (add ...ys)", "(sum{a} x) => (sum{f(a)} x)",
	}
	text := ""
	for i, b := range bad {
		text += fmt.Sprintf("bad%d:\n    %s\n", i, b)
	}
	list, err := pattern.ParseRules("bad", text)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Compile(s.lang, list)
	if err == nil {
		t.Fatal("no error")
	}
	for i := range bad {
		if !strings.Contains(err.Error(), fmt.Sprintf("bad%d:", i)) {
			t.Errorf("no error for %s", bad[i])
		}
	}
	for _, sig := range []Signature{{}, {Name: "neg"}, {Name: "f", Inputs: [2]int{2, 1}}, {Name: "f", Inputs: [2]int{-1, 1}}, {Name: "f", Outputs: -1}} {
		if _, err := s.lang.Declare(sig); err == nil {
			t.Errorf("%+v is accepted", sig)
		}
	}
	if !slices.ContainsFunc(s.lang.sigs, func(s Signature) bool { return s.Name == "neg" }) {
		t.Error("neg is gone")
	}
}
