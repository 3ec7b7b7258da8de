package egraph

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/pattern"
)

// The vocabulary of these tests: real functions of variables, with derivatives and integrals.

// mathFact is what is known of a class: its value, and whether it is a variable.
type mathFact struct {
	known, variable bool
	value           float64
}

type mathWorld struct {
	lang     *Language
	num, sym Symbol
	facts    *Facts[mathFact]
}

func newMath(tb testing.TB) *mathWorld {
	tb.Helper()
	w := &mathWorld{lang: NewLanguage()}
	declare := func(name string, n int) Symbol {
		s, err := w.lang.Declare(Signature{Name: name, Inputs: [2]int{n, n}})
		if err != nil {
			tb.Fatal(err)
		}
		return s
	}
	w.num, w.sym = declare("num", 0), declare("var", 0)
	for _, name := range []string{"add", "sub", "mul", "div", "pow", "d", "i"} {
		declare(name, 2)
	}
	for _, name := range []string{"sin", "cos", "ln", "sqrt"} {
		declare(name, 1)
	}
	w.lang.SetNumbers(func(g *Graph, v float64) Op {
		if g == nil {
			return w.lang.Intern(w.num, v)
		}
		return g.Intern(w.num, v)
	})
	w.lang.SetGuard("nonzero", func(g *Graph, a Args) bool {
		f := w.facts.Get(g, a.Classes[0])
		return !f.known || f.value != 0
	})
	w.lang.SetGuard("variable", func(g *Graph, a Args) bool { return w.facts.Get(g, a.Classes[0]).variable })
	w.lang.SetGuard("constant", func(g *Graph, a Args) bool { return w.facts.Get(g, a.Classes[0]).known })
	w.lang.SetGuard("fixed", func(g *Graph, a Args) bool {
		f := w.facts.Get(g, a.Classes[0])
		return f.known || f.variable
	})
	w.lang.SetGuard("distinct", func(g *Graph, a Args) bool { return g.Find(a.Classes[0]) != g.Find(a.Classes[1]) })
	return w
}

// analysis returns a new analysis that folds constants.
func (w *mathWorld) analysis() Analysis {
	w.facts = &Facts[mathFact]{
		Of: w.of,
		Merge: func(a, b mathFact) (mathFact, bool, bool) {
			c := mathFact{a.known || b.known, a.variable || b.variable, a.value}
			if !a.known {
				c.value = b.value
			}
			return c, c != a, c != b
		},
		Change: w.fold,
	}
	return w.facts
}

func (w *mathWorld) of(g *Graph, n Node) mathFact {
	op := g.Op(n)
	switch g.Symbol(op) {
	case w.num:
		return mathFact{known: true, value: g.Param(op).(float64)}
	case w.sym:
		return mathFact{variable: true}
	}
	v, ok := w.value(g, n)
	return mathFact{known: ok, value: v}
}

// value computes a node of constants.
func (w *mathWorld) value(g *Graph, n Node) (float64, bool) {
	if g.Arity(n) != 2 {
		return 0, false
	}
	a, b := w.facts.Get(g, g.Input(n, 0)), w.facts.Get(g, g.Input(n, 1))
	if !a.known || !b.known {
		return 0, false
	}
	return evaluate(g.Name(g.Op(n)), a.value, b.value)
}

func evaluate(name string, x, y float64) (float64, bool) {
	switch name {
	case "add":
		return x + y, true
	case "sub":
		return x - y, true
	case "mul":
		return x * y, true
	case "div":
		return x / y, y != 0
	}
	return 0, false
}

func (w *mathWorld) fold(g *Graph, c Class) {
	f := w.facts.Get(g, c)
	if !f.known {
		return
	}
	if leaf, ok := g.Lookup(g.Intern(w.num, f.value)); !ok || leaf != g.Find(c) {
		for n := range g.Nodes(c) {
			if _, ok := w.value(g, n); ok && g.Fold(n, g.Intern(w.num, f.value), g.Intern(w.num, w.facts.Get(g, g.Input(n, 0)).value), g.Intern(w.num, w.facts.Get(g, g.Input(n, 1)).value)) {
				break
			}
		}
	}
	g.Prune(c)
}

// add adds an expression.
func (w *mathWorld) add(tb testing.TB, g *Graph, text string) Class {
	tb.Helper()
	e, err := pattern.ParseExpr(text)
	if err != nil {
		tb.Fatal(err)
	}
	var add func(e pattern.Expr) Class
	add = func(e pattern.Expr) Class {
		switch e := e.(type) {
		case pattern.Name:
			return g.Add(g.Intern(w.sym, string(e)))
		case pattern.Literal:
			return g.Add(g.Intern(w.num, e.Float()))
		}
		c := e.(*pattern.Call)
		var args []Class
		for _, a := range c.Args {
			args = append(args, add(a))
		}
		s, ok := w.lang.Symbol(c.Op)
		if !ok {
			tb.Fatalf("no op %s", c.Op)
		}
		return g.Add(g.Intern(s, nil), args...)
	}
	return add(e)
}

const mathRules = `
comm_add:
    (add a b) => (add b a)
comm_mul:
    (mul a b) => (mul b a)
assoc_add:
    (add a (add b c)) => (add (add a b) c)
assoc_mul:
    (mul a (mul b c)) => (mul (mul a b) c)
sub_canon:
    (sub a b) => (add a (mul -1 b))
div_canon:
    (div a b) && nonzero(b) => (mul a (pow b -1))
zero_add:
    (add a 0) => a
zero_mul:
    (mul a 0) => 0
one_mul:
    (mul a 1) => a
add_zero:
    a => (add a 0)
mul_one:
    a => (mul a 1)
cancel_sub:
    (sub a a) => 0
cancel_div:
    (div a a) && nonzero(a) => 1
distribute:
    (mul a (add b c)) => (add (mul a b) (mul a c))
factor:
    (add (mul a b) (mul a c)) => (mul a (add b c))
pow_mul:
    (mul (pow a b) (pow a c)) => (pow a (add b c))
pow0:
    (pow x 0) && nonzero(x) => 1
pow1:
    (pow x 1) => x
pow2:
    (pow x 2) => (mul x x)
pow_recip:
    (pow x -1) && nonzero(x) => (div 1 x)
recip_mul_div:
    (mul x (div 1 x)) && nonzero(x) => 1
d_variable:
    (d x x) && variable(x) => 1
d_constant:
    (d x c) && variable(x) && fixed(c) && distinct(x, c) => 0
d_add:
    (d x (add a b)) => (add (d x a) (d x b))
d_mul:
    (d x (mul a b)) => (add (mul a (d x b)) (mul b (d x a)))
d_sin:
    (d x (sin x)) => (cos x)
d_cos:
    (d x (cos x)) => (mul -1 (sin x))
d_ln:
    (d x (ln x)) && nonzero(x) => (div 1 x)
d_power:
    (d x (pow f g)) && nonzero(f) && nonzero(g) =>
        (mul (pow f g) (add (mul (d x f) (div g f)) (mul (d x g) (ln f))))
i_one:
    (i 1 x) => x
i_power_const:
    (i (pow x c) x) && constant(c) => (div (pow x (add c 1)) (add c 1))
i_cos:
    (i (cos x) x) => (sin x)
i_sin:
    (i (sin x) x) => (mul -1 (cos x))
i_sum:
    (i (add f g) x) => (add (i f x) (i g x))
i_dif:
    (i (sub f g) x) => (sub (i f x) (i g x))
i_parts:
    (i (mul a b) x) => (sub (mul a (i b x)) (i (mul (d x a) (i b x)) x))
`

func (w *mathWorld) rules(tb testing.TB, keep func(name string) bool) *Rules {
	tb.Helper()
	list, err := pattern.ParseRules("math", mathRules)
	if err != nil {
		tb.Fatal(err)
	}
	var some []pattern.Rule
	for _, r := range list {
		if keep == nil || keep(r.Name) {
			some = append(some, r)
		}
	}
	rules, err := Compile(w.lang, some)
	if err != nil {
		tb.Fatal(err)
	}
	return rules
}

// mathProblems are problems with the limits within which they are to be solved.
var mathProblems = []struct {
	name, start, goal string
	limits            Limits
	backoff           bool
	some              []string // rules; all if nil
	seeded            bool     // the goal is in the graph from the beginning
}{
	{"associate_adds", "(add 1 (add 2 (add 3 (add 4 (add 5 (add 6 7))))))", "(add 7 (add 6 (add 5 (add 4 (add 3 (add 2 1))))))", Limits{Nodes: 10000, Laps: 7}, false, []string{"comm_add", "assoc_add"}, false},
	{"simplify_add", "(add x (add x (add x x)))", "(mul 4 x)", Limits{}, true, nil, false},
	{"powers", "(mul (pow 2 x) (pow 2 y))", "(pow 2 (add x y))", Limits{}, true, nil, false},
	{"simplify_const", "(add 1 (sub a (mul (sub 2 1) a)))", "1", Limits{}, true, nil, false},
	{"simplify_root", "(div 1 (sub (div (add 1 (sqrt five)) 2) (div (sub 1 (sqrt five)) 2)))", "(div 1 (sqrt five))", Limits{Nodes: 75000}, true, nil, false},
	{"simplify_factor", "(mul (add x 3) (add x 1))", "(add (add (mul x x) (mul 4 x)) 3)", Limits{}, true, nil, false},
	{"diff_same", "(d x x)", "1", Limits{}, true, nil, false},
	{"diff_different", "(d x y)", "0", Limits{}, true, nil, false},
	{"diff_simple1", "(d x (add 1 (mul 2 x)))", "2", Limits{}, true, nil, false},
	{"diff_simple2", "(d x (add 1 (mul y x)))", "y", Limits{}, true, nil, false},
	{"diff_ln", "(d x (ln x))", "(div 1 x)", Limits{}, true, nil, false},
	{"diff_power_simple", "(d x (pow x 3))", "(mul 3 (pow x 2))", Limits{}, true, nil, false},
	{"diff_power_harder", "(d x (sub (pow x 3) (mul 7 (pow x 2))))", "(mul x (sub (mul 3 x) 14))", Limits{Nodes: 100000, Laps: 60}, true, nil, true},
	{"integ_one", "(i 1 x)", "x", Limits{}, true, nil, false},
	{"integ_sin", "(i (cos x) x)", "(sin x)", Limits{}, true, nil, false},
	{"integ_x", "(i (pow x 1) x)", "(div (pow x 2) 2)", Limits{}, true, nil, false},
	{"integ_part1", "(i (mul x (cos x)) x)", "(add (mul x (sin x)) (cos x))", Limits{}, true, nil, false},
	{"integ_part2", "(i (mul (cos x) x) x)", "(add (mul x (sin x)) (cos x))", Limits{}, true, nil, false},
	{"integ_part3", "(i (ln x) x)", "(sub (mul x (ln x)) x)", Limits{}, true, nil, false},
}

// solve solves a problem, and returns the graph if it is solved.
func (w *mathWorld) solve(tb testing.TB, k int, rules *Rules, options ...Option) (*Graph, *Report) {
	p := &mathProblems[k]
	if p.some == nil {
		options = append(options, WithAnalysis(w.analysis()))
	}
	g := New(w.lang, options...)
	start := w.add(tb, g, p.start)
	if p.seeded {
		w.add(tb, g, p.goal)
	}
	reached := func(g *Graph) bool {
		c, ok := w.lookup(g, p.goal)
		return ok && g.Find(c) == g.Find(start)
	}
	o := Options{Limits: p.limits, Done: reached}
	if o.Limits.Nodes == 0 {
		o.Limits.Nodes = 10000
	}
	if o.Limits.Laps == 0 {
		o.Limits.Laps = 30
	}
	if p.backoff {
		o.Backoff = Backoff{1000, 5}
	}
	report, err := g.Saturate(tb.Context(), rules, o)
	if err != nil {
		tb.Fatal(err)
	}
	if !reached(g) {
		tb.Errorf("%s is not solved: %s", p.name, report)
	}
	return g, report
}

// rulesOf returns the rules of a problem.
func (w *mathWorld) rulesOf(tb testing.TB, k int) *Rules {
	some := mathProblems[k].some
	return w.rules(tb, func(name string) bool { return some == nil || slices.Contains(some, name) })
}

// TestMath solves the problems.
func TestMath(t *testing.T) {
	w := newMath(t)
	for k, p := range mathProblems {
		t.Run(p.name, func(t *testing.T) {
			g, report := w.solve(t, k, w.rulesOf(t, k), WithExplanations())
			t.Logf("%s after %d laps, %d nodes, %d classes", report.Reason, len(report.Laps), report.Nodes, report.Classes)
			checkInvariants(t, g)
		})
	}
}

// lookup finds the class of an expression that is in the graph.
func (w *mathWorld) lookup(g *Graph, text string) (Class, bool) {
	e, err := pattern.ParseExpr(text)
	if err != nil {
		return 0, false
	}
	var find func(e pattern.Expr) (Class, bool)
	find = func(e pattern.Expr) (Class, bool) {
		switch e := e.(type) {
		case pattern.Name:
			return g.Lookup(g.Intern(w.sym, string(e)))
		case pattern.Literal:
			return g.Lookup(g.Intern(w.num, e.Float()))
		}
		c := e.(*pattern.Call)
		var args []Class
		for _, a := range c.Args {
			k, ok := find(a)
			if !ok {
				return 0, false
			}
			args = append(args, k)
		}
		s, _ := w.lang.Symbol(c.Op)
		return g.Lookup(g.Intern(s, nil), args...)
	}
	return find(e)
}

// checkInvariants compares the graph with what it must be.
func checkInvariants(t *testing.T, g *Graph) {
	t.Helper()
	seen := map[string]Node{}
	roots := 0
	for c := range g.classes {
		if g.find(uint32(c)) == uint32(c) {
			roots++
		}
	}
	if _, n := g.Size(); n != roots {
		t.Errorf("%d classes, Size says %d", roots, n)
	}
	for n := range g.nodes {
		if g.nodes[n].dead() {
			continue
		}
		inputs := g.Inputs(Node(n), nil)
		for i, c := range inputs {
			if uint32(c) != g.kid(uint32(n), i) {
				t.Fatalf("input %d of node %d is stale", i, n)
			}
		}
		k := fmt.Sprint(g.Op(Node(n)), inputs)
		if m, ok := seen[k]; ok {
			t.Fatalf("nodes %d and %d are congruent", n, m)
		}
		seen[k] = Node(n)
		found := false
		for m := range g.Nodes(g.Class(Node(n))) {
			found = found || m == Node(n)
		}
		if !found {
			t.Fatalf("node %d is not among those of its class", n)
		}
	}
}
