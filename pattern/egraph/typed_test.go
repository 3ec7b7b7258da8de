package egraph

import (
	"strconv"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/pattern"
)

// typed is a language whose classes are of type i, f or d, from narrow to wide. Ops have the widest
// type of their inputs, to which replacements convert the others.
type typed struct {
	lang                     *Language
	num, sym, cast, neg, mul Symbol
	facts                    *Facts[typedFact]
}

type typedFact struct {
	dtype string
	known bool
	value float64
}

type typedLeaf struct {
	name, dtype string
	value       float64
}

func newTyped(tb testing.TB) *typed {
	tb.Helper()
	w := &typed{lang: NewLanguage()}
	declare := func(name string, n int, commutes bool) Symbol {
		s, err := w.lang.Declare(Signature{Name: name, Inputs: [2]int{n, n}, Commutes: commutes})
		if err != nil {
			tb.Fatal(err)
		}
		return s
	}
	w.num, w.sym = declare("num", 0, false), declare("var", 0, false)
	w.cast, w.neg, w.mul = declare("cast", 1, false), declare("neg", 1, false), declare("mul", 2, true)
	declare("add", 2, true)
	declare("pow", 2, false)
	if err := w.lang.Alias("to_d", w.lang.Op(w.cast, "d")); err != nil {
		tb.Fatal(err)
	}
	w.lang.SetGuard("wide", func(g *Graph, a Args) bool { return w.facts.Get(g, a.Classes[0]).dtype == "d" })
	w.lang.SetFunction("double", func(g *Graph, a Args) (Class, bool) {
		return w.make(g, g.Intern(w.mul, nil), []Class{w.constant(g, 2, w.facts.Get(g, a.Classes[0]).dtype), a.Classes[0]}), true
	})
	w.lang.SetTypes(Types{
		Equal: func(g *Graph, c Class, l pattern.Literal) (Node, bool) {
			f := w.facts.Get(g, c)
			if !f.known || f.value != l.Float() || l.Type() != "" && l.Type() != f.dtype {
				return 0, false
			}
			return w.shows(g, c)
		},
		Number: func(g *Graph, c Class) (float64, Node, bool) {
			f := w.facts.Get(g, c)
			n, ok := w.shows(g, c)
			return f.value, n, f.known && ok
		},
		Constant: func(g *Graph, l pattern.Literal, like Class) (Class, bool) {
			t := l.Type()
			if t == "" {
				t = w.facts.Get(g, like).dtype
			}
			return w.constant(g, l.Float(), t), true
		},
		Make: func(g *Graph, op Op, in []Class, like Class) (Class, bool) { return w.make(g, op, in), true },
		Conform: func(g *Graph, c, like Class) (Class, bool) {
			return w.convert(g, c, w.facts.Get(g, like).dtype), true
		},
	})
	return w
}

// shows returns the constant of a class.
func (w *typed) shows(g *Graph, c Class) (Node, bool) {
	for n := range g.Nodes(c) {
		if g.Symbol(g.Op(n)) == w.num {
			return n, true
		}
	}
	return 0, false
}

func (w *typed) constant(g *Graph, v float64, dtype string) Class {
	return g.Add(g.Intern(w.num, typedLeaf{dtype: dtype, value: v}))
}

func (w *typed) convert(g *Graph, c Class, dtype string) Class {
	if w.facts.Get(g, c).dtype == dtype {
		return c
	}
	return g.Add(g.Intern(w.cast, dtype), c)
}

func (w *typed) make(g *Graph, op Op, in []Class) Class {
	wide := ""
	for _, c := range in {
		wide = wider(wide, w.facts.Get(g, c).dtype)
	}
	out := make([]Class, len(in))
	for i, c := range in {
		if out[i] = c; g.Symbol(op) != w.cast {
			out[i] = w.convert(g, c, wide)
		}
	}
	return g.Add(op, out...)
}

const typeOrder = " ifd"

func wider(a, b string) string {
	if strings.Index(typeOrder, a) > strings.Index(typeOrder, b) && a != "" {
		return a
	}
	return b
}

// graph returns a graph with types as facts.
func (w *typed) graph() *Graph {
	w.facts = &Facts[typedFact]{
		Of: func(g *Graph, n Node) typedFact {
			op := g.Op(n)
			if l, ok := g.Param(op).(typedLeaf); ok {
				return typedFact{l.dtype, g.Symbol(op) == w.num, l.value}
			}
			if t, ok := g.Param(op).(string); ok {
				return typedFact{dtype: t}
			}
			f := typedFact{}
			for i := range g.Arity(n) {
				f.dtype = wider(f.dtype, w.facts.Get(g, g.Input(n, i)).dtype)
			}
			return f
		},
		Merge: func(a, b typedFact) (typedFact, bool, bool) {
			if a.dtype != b.dtype {
				panic("classes of different types are united")
			}
			c := a
			if b.known {
				c = b
			}
			return c, c != a, c != b
		},
	}
	return New(w.lang, WithAnalysis(w.facts), WithExplanations())
}

// add adds an expression: names end in their types, and numbers have types, "(mul x_f 2:f)".
func (w *typed) add(tb testing.TB, g *Graph, text string) Class {
	tb.Helper()
	e, err := pattern.ParseExpr(text)
	if err != nil {
		tb.Fatal(err)
	}
	var add func(e pattern.Expr) Class
	add = func(e pattern.Expr) Class {
		switch e := e.(type) {
		case pattern.Name:
			_, t, _ := strings.Cut(string(e), "_")
			return g.Add(g.Intern(w.sym, typedLeaf{name: string(e), dtype: t}))
		case pattern.Literal:
			return w.constant(g, e.Float(), e.Type())
		}
		c := e.(*pattern.Call)
		var args []Class
		for _, a := range c.Args {
			args = append(args, add(a))
		}
		name, param, has := strings.Cut(strings.TrimSuffix(c.Op, "}"), "{")
		sym, ok := w.lang.Symbol(name)
		if !ok {
			tb.Fatalf("no op %s", name)
		}
		if has {
			return g.Add(g.Intern(sym, param), args...)
		}
		return g.Add(g.Intern(sym, nil), args...)
	}
	return add(e)
}

// replayer replays explanations on terms, with types.
func (w *typed) replayer(r *Rules) *replayer {
	leaf := func(t *Terms, v float64, dtype string) Term {
		return t.Make(t.g.Intern(w.num, typedLeaf{dtype: dtype, value: v}))
	}
	var typeOf func(t *Terms, x Term) string
	typeOf = func(t *Terms, x Term) string {
		switch p := t.g.Param(t.Op(x)).(type) {
		case typedLeaf:
			return p.dtype
		case string:
			return p
		}
		wide := ""
		for _, a := range t.Args(x) {
			wide = wider(wide, typeOf(t, a))
		}
		return wide
	}
	convert := func(t *Terms, x Term, dtype string) Term {
		if typeOf(t, x) == dtype {
			return x
		}
		return t.Make(t.g.Intern(w.cast, dtype), x)
	}
	build := func(t *Terms, op Op, args []Term) Term {
		wide := ""
		for _, a := range args {
			wide = wider(wide, typeOf(t, a))
		}
		for i, a := range args {
			if t.g.Symbol(op) != w.cast {
				args[i] = convert(t, a, wide)
			}
		}
		return t.Make(op, args...)
	}
	return &replayer{
		r:     r,
		typed: build,
		calls: map[string]func(t *Terms, args []Term) Term{"double": func(t *Terms, args []Term) Term {
			return build(t, t.g.Intern(w.mul, nil), []Term{leaf(t, 2, typeOf(t, args[0])), args[0]})
		}},
		number: func(t *Terms, x Term) (float64, bool) {
			l, ok := t.g.Param(t.Op(x)).(typedLeaf)
			return l.value, ok && t.g.Symbol(t.Op(x)) == w.num
		},
		equal: func(t *Terms, x Term, l pattern.Literal) bool {
			v, ok := t.g.Param(t.Op(x)).(typedLeaf)
			return ok && t.g.Symbol(t.Op(x)) == w.num && v.value == l.Float() && (l.Type() == "" || l.Type() == v.dtype)
		},
		constant: func(t *Terms, l pattern.Literal, like Term) Term {
			dtype := l.Type()
			if dtype == "" {
				dtype = typeOf(t, like)
			}
			return leaf(t, l.Float(), dtype)
		},
		conform: func(t *Terms, x, like Term) Term { return convert(t, x, typeOf(t, like)) },
	}
}

// TestTypes saturates expressions with types, and replays the explanations.
func TestTypes(t *testing.T) {
	const zero = "zero:\n    (add x (neg x)) => 0\n"
	for _, c := range []struct {
		name, rules, start, goal string
		equal                    bool
	}{
		{"a number of any type", "r:\n    (mul x 1) => x\n", "(mul a_f 1:f)", "a_f", true},
		{"not equal", "r:\n    (mul x 1) => x\n", "(mul a_f 2:f)", "a_f", false},
		{"of a type", "r:\n    (mul x 1:f) => x\n", "(mul a_f 1:f)", "a_f", true},
		{"of another type", "r:\n    (mul x 1:f) => x\n", "(mul a_d 1:d)", "a_d", false},
		{"conversion of the result", "r:\n    (mul x 1) => x\n", "(mul a_i 1:d)", "(cast{d} a_i)", true},
		{"number of the type replaced", zero, "(add a_f (neg a_f))", "0:f", true},
		{"number of another type", zero, "(add a_f (neg a_f))", "0:d", false},
		{"conversion of an input", "r:\n    (mul (cast{t} x) y) => (mul y (neg (neg x)))\n", "(mul (cast{d} a_i) b_d)", "(mul (cast{d} (neg (neg a_i))) b_d)", true},
		{"number of a type", "r:\n    (neg x) => (mul x -1:d)\n", "(neg a_f)", "(cast{f} (mul (cast{d} a_f) -1:d))", true},
		{"number like a name", "r:\n    (mul (cast{t} x) y) => (mul y (mul x 1:x))\n", "(mul (cast{d} a_f) b_d)", "(mul (cast{d} (mul a_f 1:f)) b_d)", true},
		{"formula", "r:\n    (mul c (mul d x)) => (mul {c*d} x)\n", "(mul 2:f (mul 3:f a_f))", "(mul 6:f a_f)", true},
		{"formula of what is unknown", "r:\n    (mul c (mul d x)) => (mul {c*d} x)\n", "(mul 2:f (mul b_f a_f))", "(mul 6:f a_f)", false},
		{"formula of what gets known", "r:\n    (mul c (mul d x)) => (mul {c*d} x)\n" + zero + "one:\n    (pow x 0) => 1\n",
			"(mul 2:f (mul (pow 7:f (add b_f (neg b_f))) a_f))", "(mul 2:f a_f)", true},
		{"number that gets known", "r:\n    (mul x 0) => 0\n" + zero, "(mul a_f (add b_f (neg b_f)))", "0:f", true},
		{"of many numbers", "r:\n    (pow x c) => (pow x {(c - 1)*2 + c/2 - -c**2})\n", "(pow a_d 4:d)", "(pow a_d 24:d)", true},
		{"alias", "r:\n    (neg (to_d x)) => (to_d (neg x))\n", "(neg (cast{d} a_f))", "(cast{d} (neg a_f))", true},
		{"another parameter", "r:\n    (neg (to_d x)) => (to_d (neg x))\n", "(neg (cast{f} a_i))", "(cast{f} (neg a_i))", false},
		{"alias at the root", "r:\n    (to_d (neg x)) => (neg (to_d x))\n", "(cast{d} (neg a_f))", "(neg (cast{d} a_f))", true},
		{"another one at the root", "r:\n    (to_d (neg x)) => (neg (to_d x))\n", "(cast{f} (neg a_i))", "(neg (cast{f} a_i))", false},
		{"guard", "r:\n    (neg (neg x)) && wide(x) => x\n", "(neg (neg a_d))", "a_d", true},
		{"guard that fails", "r:\n    (neg (neg x)) && wide(x) => x\n", "(neg (neg a_f))", "a_f", false},
		{"no guard", "r:\n    (neg (neg x)) && !wide(x) => x\n", "(neg (neg a_f))", "a_f", true},
		{"function", "r:\n    (add x x) => (double x)\n", "(add a_f a_f)", "(mul 2:f a_f)", true},
		{"function of what is made", "r:\n    (add y@(neg x) y) => (double (neg x))\n", "(add (neg a_f) (neg a_f))", "(mul 2:f (neg a_f))", true},
		{"function of a pattern", "r:\n    (add y@(neg x) z) => (double (mul y z))\nn:\n    (neg (neg x)) => x\n", "(add (neg (neg (neg a_f))) b_f)", "(mul 2:f (mul (neg a_f) b_f))", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTyped(t)
			list, err := pattern.ParseRules("typed", c.rules)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Compile(w.lang, list)
			if err != nil {
				t.Fatal(err)
			}
			g := w.graph()
			start, goal := w.add(t, g, c.start), w.add(t, g, c.goal)
			report, err := g.Saturate(t.Context(), r, Options{Limits: Limits{Nodes: 2000, Laps: 12}})
			if err != nil {
				t.Fatal(err)
			}
			checkInvariants(t, g)
			if (g.Find(goal) == g.Find(start)) != c.equal {
				t.Fatalf("equal: %v\n%s", !c.equal, report)
			}
			if !c.equal {
				return
			}
			e, err := g.Explain(r, start, goal)
			if err != nil {
				t.Fatal(err)
			}
			w.replayer(r).check(t, e)
			if len(e.Steps) == 0 {
				t.Error("no steps")
			}
			t.Log(strconv.Itoa(len(e.Steps)) + " steps\n" + e.String())
		})
	}
}
