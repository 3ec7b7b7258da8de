package saturate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/passes/saturate"
	"github.com/nnopt/nnopt/passes/saturate/internal/egraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/rewrite/rewritetest"
)

func TestPass(t *testing.T) {
	for _, c := range []struct {
		rules, graph, want string
	}{
		{"r:\n    (dear x) => (cheap x)\n", "(dear (dear x))", "[cheap(cheap(x))]"},
		{"r:\n    (cheap x) => (dear x)\n", "(cheap x)", "[cheap(x)]"},
		{"r:\n    (f x) <=> (g x)\nq:\n    (h (g x)) => (cheap x)\n", "(h (f x))", "[cheap(x)]"},
		{"r:\n    (f x) <=> (g x)\n", "(h (f x)); (g x)", "[h(*1 -> f(x)), *1]"}, // one of them is enough
		{"r:\n    (neg (neg x)) => x\n", "(neg (neg (neg x)))", "[neg(x)]"},
		{"r:\n    (neg (neg x)) => x\n", "(neg (neg x)); (f (neg (neg x)))", "[x, f(x)]"},
		{"r:\n    (neg n@(neg x)) && once(n) => x\n", "(neg (neg x)); (f (neg x))", "[x, f(neg(x))]"}, // classes have no clients
		// Multisets, rests, equal names.
		{"r:\n    (add (mul x ...ys) (mul x ...zs) ...rest) => (add (mul x (add (mul ...ys) (mul ...zs))) ...rest)\none:\n    (or (add x) (mul x)) => x\n",
			"(add (mul a b) c (mul d a))", "[add(mul(a, add(b, d)), c)]"},
		{"r:\n    (sub x x) => (list)\n", "(sub (f a) (f a))", "[list()]"},
		{"r:\n    (sub (list ...xs) (list ...xs)) => (list)\n", "(sub (list a b) (list a b))", "[list()]"},
		{"r:\n    (sub (list ...xs) (list ...xs)) => (list)\n", "(sub (list a b) (list b a))", "[sub(list(a, b), list(b, a))]"},
		{"r:\n    (list ...xs) => (add ...(cheap xs))\nq:\n    (dear (add ...xs)) => (add ...xs)\n", "(dear (list a b))", "[list(a, b)]"},
		// Numbers, formulas, guards.
		{"r:\n    (mul 1 x) => x\n", "(mul x 1)", "[x]"},
		{"r:\n    (mul 1 x) => x\n", "(mul 2 1)", "[2]"},
		{"r:\n    (mul a b) && constant(a, b) => {a*b}\nq:\n    (mul 6 x) => x\n", "(mul (mul 2 3) x)", "[x]"},
		{"r:\n    (mul x 2.5) => (double x)\n", "(mul x 2)", "[mul(x, 2)]"},
		{"r:\n    (dear x) && !constant(x) => (f x)\n", "(dear 2); (dear y)", "[dear(2), f(y)]"},
		{"r:\n    (dear (list ...xs)) && constant(xs) => (f ...xs)\n", "(dear (list 2)); (dear (list y))", "[f(2), dear(list(y))]"},
		{"r:\n    (dear x) && root_is_number(x) => (f x)\n", "(dear x)", "[f(x)]"},
		// A guard holds once its class is known to be a number.
		{"r:\n    (f 1) => 2\nq:\n    (dear x) && constant(x) => (cheap x)\n", "(dear (f 1))", "[cheap(2)]"},
		{"r:\n    (dear x) && constant(x) => (cheap x)\nq:\n    (f (g 1)) => 2\ns:\n    (g 1) <=> (h 1)\n", "(dear (f (h 1)))", "[cheap(2)]"},
		// The witness is the variable of which most is known.
		{"r:\n    (dear x) && by_f(x) => (cheap x)\nq:\n    (g x) => (f x)\n", "(dear (g x)); (dear (h x))", "[cheap(g(x)), dear(h(x))]"},
		{"r:\n    (dear x) && by_f(x) => (cheap x)\nq:\n    (f x) => (g x)\n", "(dear (f x))", "[cheap(f(x))]"},
		// Families, with ops that have names of their own.
		{"r:\n    (scale{a} (scale{b} x)) => (scale{times(a, b)} x)\n", "(double (scale{3} (double x)))", "[scale{12}(x)]"},
		{"r:\n    (scale{a} (scale{a} x)) => (scale{times(a, a)} x)\n", "(scale{3} (double (double x)))", "[scale{3}(scale{4}(x))]"},
		{"r:\n    (scale{a} x) && even(a) => (cheap x)\nq:\n    (cheap x) => x\n", "(scale{3} (scale{4} x))", "[scale{3}(x)]"},
		{"r:\n    (scale{a} (neg x)) => (neg (scale{a} x))\nq:\n    (double x) => x\nneg:\n    (neg (neg x)) => x\n", "(neg (double (neg (scale{5} x))))", "[scale{5}(x)]"},
		// Alternatives, in which all hold.
		{"r:\n    (dear (or (f x) (g x))) => (cheap x)\n", "(dear (f x)); (dear (g y)); (dear (h z))", "[cheap(x), cheap(y), dear(h(z))]"},
		{"r:\n    (dear x) => (f x)\n    (dear x) => (cheap x)\nq:\n    (g (cheap x)) => x\ns:\n    (h (f x)) => x\n", "(g (dear x)); (h (dear y))", "[x, y]"},
		// Several outputs.
		{"r:\n    (add (split x) (split x).1) => x\n", "(add (split (f x)) (split (f x)).1)", "[f(x)]"},
		{"r:\n    (dear x) => (f x)\n", "(add (split (dear x)) (split (dear x)).1)", "[add(*1 -> split(f(x))::0, *1::1)]"},
		{"r:\n    (dear x) => (split x).1\n", "(dear x); (split x)", "[*1 -> split(x)::1, *1::0]"},
		// A product with 1 in it is itself: this would not end otherwise.
		{"one:\n    (mul 1 x) <=> (f x)\nq:\n    (f x) => x\nflat:\n    (mul (mul ...xs) ...ys) => (mul ...xs ...ys)\n", "(mul 1 (mul 1 (f x)))", "[x]"},
		// Another type.
		{"r:\n    (dear x) => (to_whole x)\n", "(dear x)", "[dear(x)]"},
		{"r:\n    (to_whole x) => (f x)\n", "(to_whole x)", "[to_whole(x)]"},
		{"r:\n    (f (to_whole x)) => (cheap x)\n", "(f (to_whole x))", "[cheap(x)]"},
	} {
		p := pass(t, c.rules)
		g := graph(t, strings.Split(c.graph, ";")...)
		got, rec := result(t, p, g)
		if c.want != "" && got != c.want {
			t.Errorf("%s%s becomes %s, not %s\n%+v", c.rules, c.graph, got, c.want, rec)
		}
		if again, _ := result(t, p, graph(t, strings.Split(c.graph, ";")...)); again != got {
			t.Errorf("%s becomes %s and %s", c.graph, got, again)
		}
		rewritetest.Settled(t, p, g)
	}
}

// Two outputs are cheaper together than each by itself.
func TestSharing(t *testing.T) {
	p := pass(t, `
a:
    (dear x) => (f (g (h x)))
b:
    (dear x) => (cheap (neg x))
c:
    (dear_pair x _) => (sub (g (h x)) x)
`)
	got, _ := result(t, p, graph(t, "(dear x)", "(dear_pair x y)"))
	if want := "[f(*1 -> g(h(x))), sub(*1, x)]"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	if got, _ = result(t, p, graph(t, "(dear x)")); got != "[cheap(neg(x))]" {
		t.Error(got)
	}
}

// Applies that destroy something stay where they are, and so do views then.
func TestNotAdmitted(t *testing.T) {
	p := pass(t, "r:\n    (dear x) => (cheap x)\nview:\n    (view x) => x\nover:\n    (overwrite x) => (cheap x)\n")
	for text, want := range map[string]string{
		"(dear (view (dear x)))":                    "[cheap(cheap(x))]",
		"(dear (overwrite (dear (view (dear x)))))": "[cheap(overwrite(cheap(view(cheap(x)))))]",
		"(overwrite (f x))":                         "[overwrite(f(x))]",
		"(overwrite (view (f x)))":                  "[overwrite(view(f(x)))]",
	} {
		if got, _ := result(t, p, graph(t, text)); got != want {
			t.Errorf("%s becomes %s, not %s", text, got, want)
		}
	}
	_, rec := result(t, p, graph(t, "(overwrite x)"))
	if c := fmt.Sprint(rec.Counters); !strings.Contains(c, "not_admitted 1") {
		t.Error(c)
	}
}

func TestRefusedRules(t *testing.T) {
	goRule := rewrite.Rule{Name: "local_go", Doc: "Nothing.", Fn: func(*rewrite.Context, *fgraph.Apply) (rewrite.Result, error) { return rewrite.Result{}, nil }}
	destroys := pattern.Must(toys{}, "(f x)", "(overwrite x)", pattern.Named("local_overwrite"))
	for _, r := range []rewrite.NodeRewriter{goRule, rewrite.As(goRule, rewrite.Description{Name: "local_go"}), destroys} {
		err := saturate.Check(r)
		if !errors.Is(err, saturate.ErrRule) {
			t.Error(err)
		}
		p := saturate.Pass{Rules: []rewrite.NodeRewriter{r}}
		if err := p.Prepare(); !errors.Is(err, saturate.ErrRule) || !strings.Contains(err.Error(), rewrite.Describe(r).Name) {
			t.Error(err)
		}
	}
	if err := saturate.Check(rewrite.As(pattern.Must(toys{}, "(f x)", "x"), rewrite.Description{Name: "r"})); err != nil {
		t.Error(err)
	}
	wide := "(list " + strings.Repeat("(or (f x) (g x)) ", 12) + ")"
	p := saturate.Pass{Rules: []rewrite.NodeRewriter{pattern.Must(toys{}, wide, "x", pattern.Named("wide"))}}
	if err := p.Prepare(); !errors.Is(err, saturate.ErrRule) || !strings.Contains(err.Error(), "wide: more than") {
		t.Error(err)
	}
}

// A deep graph needs no deep stack, and a long one no more time an apply.
func TestDeep(t *testing.T) {
	n := 200000
	if !longtest.Enabled() {
		n = 20000
	}
	x := fgraph.NewInput(number, "x")
	v := x
	for range n {
		v = call("dear", v)
	}
	g, err := fgraph.New([]*fgraph.Variable{x}, []*fgraph.Variable{v})
	if err != nil {
		t.Fatal(err)
	}
	if err := rewrite.Run(t.Context(), pass(t, "r:\n    (dear x) => (cheap x)\nq:\n    (cheap (cheap x)) => (f x)\n"), g, nil); err != nil {
		t.Fatal(err)
	}
	if g.NumApplies() != n/2 {
		t.Errorf("%d applies are left", g.NumApplies())
	}
}

func TestLimits(t *testing.T) {
	const rules = "grow:\n    (f x) => (f (g x))\nq:\n    (dear x) => (cheap x)\n"
	p := pass(t, rules)
	p.Nodes, p.Growth, p.Laps, p.Patience = 50, 1, 10, 1000
	got, rec := result(t, p, graph(t, "(f (dear x))"))
	if got != "[f(cheap(x))]" || rec.Saturation.Ended[0].Name != egraph.LapLimit {
		t.Error(got, rec.Saturation)
	}
	p.Laps = 1000
	if _, rec = result(t, p, graph(t, "(f (dear x))")); rec.Saturation.Ended[0].Name != egraph.NodeLimit {
		t.Error(rec.Saturation)
	}
	p.Patience = 3
	if got, rec = result(t, p, graph(t, "(f (dear x))")); got != "[f(cheap(x))]" || rec.Saturation.Ended[0].Name != "stalled" || len(rec.Saturation.Laps) != 4 {
		t.Error(got, rec.Saturation)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g := graph(t, "(f (dear x))")
	if err := rewrite.Run(ctx, p, g, nil); !errors.Is(err, context.Canceled) || g.String() != "[f(dear(x))]" {
		t.Error(err, g)
	}
}

func TestSettings(t *testing.T) {
	p := pass(t, "r:\n    (dear x) => (cheap x)\n")
	for _, s := range []struct{ name, value, want string }{
		{"nodes", "500", ""}, {"laps", "3", ""}, {"matches", "12", ""}, {"growth", "0.5", ""}, {"seconds", "2.5", ""}, {"seconds", "0", ""},
		{"patience", "4", ""}, {"tries", "7", ""}, {"patience", "0", "number from 1"}, {"tries", "-2", "number from 1"},
		{"nodes", "0", "number from 1"}, {"nodes", "1e3", "number from 1"}, {"laps", "-1", "number from 1"}, {"growth", "0", "positive"}, {"growth", "NaN", "positive"},
		{"seconds", "-1", "positive"}, {"seconds", "Inf", "positive"}, {"matches", "99999999999", "number from 1"},
	} {
		next, err := p.Configured(s.name, s.value)
		if s.want != "" {
			if err == nil || !strings.Contains(err.Error(), s.want) {
				t.Errorf("%s=%s: %v", s.name, s.value, err)
			}
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		for _, now := range next.Settings() {
			if now.Name == s.name && now.Value != s.value {
				t.Errorf("%s=%s is %s", s.name, s.value, now.Value)
			}
		}
		if got, _ := result(t, next.(*saturate.Pass), graph(t, "(dear x)")); got != "[cheap(x)]" {
			t.Error(got)
		}
	}
	for _, s := range p.Settings() {
		if s.Value != s.Default || s.Doc == "" {
			t.Errorf("%+v", s)
		}
	}
}
