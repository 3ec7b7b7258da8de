package rulefind_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
	"github.com/nnopt/nnopt/tool/internal/rulefind"
	"github.com/nnopt/nnopt/tool/tensors"
)

// A toy is an op on numbers from 0 to most, which is their type.
type (
	toy  string
	most int
)

func (o toy) String() string              { return string(o) }
func (m most) String() string             { return fmt.Sprintf("0..%d", int(m)) }
func (m most) Accepts(t fgraph.Type) bool { return m == t }

// toys are the ops: those of vectors of bits, and step, which is the identity but for one number.
var toys = map[string]func(x, y, most int) int{
	"And": func(x, y, _ int) int { return x & y }, "Or": func(x, y, _ int) int { return x | y }, "Xor": func(x, y, _ int) int { return x ^ y },
	"Add": func(x, y, most int) int { return (x + y) & most }, "Mul": func(x, y, most int) int { return x * y & most },
	"Sub": func(x, y, most int) int { return (x - y) & most }, "Shl": func(x, y, most int) int { return x << y & most },
	"Shr": func(x, y, _ int) int { return x >> y },
	"Not": func(x, _, most int) int { return most - x }, "Neg": func(x, _, most int) int { return -x & most },
	"Step": func(x, _, _ int) int {
		if x == 77 {
			return 78
		}
		return x
	},
}

// signature returns how many inputs an op has, and whether they commute.
func signature(name string) (inputs int, commutes bool) {
	switch name {
	case "Not", "Neg", "Step":
		return 1, false
	case "Sub", "Shl", "Shr":
		return 2, false
	}
	return 2, true
}

type vocabulary struct{}

func (vocabulary) Equal(l pattern.Literal, v *fgraph.Variable) bool {
	return v.IsConstant() && fmt.Sprint(v.Data()) == string(l)
}

func (vocabulary) Constant(l pattern.Literal, like *fgraph.Variable) (*fgraph.Variable, error) {
	n, err := strconv.Atoi(string(l))
	return fgraph.NewConstant(like.Type(), n, string(l)), err
}

func (vocabulary) Operator(name string) (pattern.Operator, bool) {
	n, commutes := signature(name)
	return pattern.Operator{Match: pattern.Is(toy(name)), MinInputs: n, MaxInputs: n, Commutes: commutes, Tracks: []rewrite.Track{rewrite.TrackOp(toy(name))},
		Make: func(m pattern.Making) (*fgraph.Variable, error) {
			return fgraph.NewApply(toy(name), m.Inputs, m.Inputs[0].Type()).Out(), nil
		}}, toys[name] != nil
}

// world has the numbers up to m.
func world(m most) rulecheck.Domain {
	return rulecheck.World{
		Rules: vocabulary{}, Types: []fgraph.Type{m},
		Values: func(fgraph.Type) []any {
			if m > 15 {
				return nil
			}
			var values []any
			for x := range int(m) + 1 {
				values = append(values, x)
			}
			return values
		},
		Random: func(_ fgraph.Type, _ bool, rng *rand.Rand) any { return rng.IntN(int(m) + 1) },
		Evaluate: func(_ context.Context, g *fgraph.FunctionGraph, inputs []any) ([]any, error) {
			values := make(map[*fgraph.Variable]any)
			for i, v := range g.Inputs() {
				values[v] = inputs[i]
			}
			value := func(v *fgraph.Variable) int {
				if v.IsConstant() {
					return v.Data().(int)
				}
				return values[v].(int)
			}
			for a := range g.Ordered() {
				x, y := value(a.Inputs()[0]), value(a.Inputs()[len(a.Inputs())-1])
				values[a.Out()] = toys[a.Op().String()](x, y, int(m))
			}
			var outputs []any
			for _, v := range g.Outputs() {
				outputs = append(outputs, value(v))
			}
			return outputs, nil
		},
		Compare: func(x, y any) rulecheck.Class {
			if x == y {
				return rulecheck.Exact
			}
			return rulecheck.Wrong
		},
	}.Domain()
}

// rewrites returns the rules of a text, which must parse and be what they promise.
func rewrites(t *testing.T, d rulecheck.Domain, text string) (list []string) {
	t.Helper()
	rules, err := pattern.ParseRules("found.rules", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, r := range rules {
		report, err := rulecheck.Check(t.Context(), d, r, rulecheck.Options{Seed: 3})
		if err != nil || !report.Kept || r.Doc == "" {
			t.Errorf("%v is %s: %s %v", r, report.Class, report.Counterexample, err)
		}
		list = append(list, r.Cases[0].String())
	}
	return list
}

// missing fails for rules that were not found.
func missing(t *testing.T, found []string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !slices.Contains(found, w) {
			t.Errorf("%s is not among\n%s", w, strings.Join(found, "\n"))
		}
	}
}

// known returns options by which what was found is known.
func known(t *testing.T, d rulecheck.Domain, o rulefind.Options, r *rulefind.Result) rulefind.Options {
	t.Helper()
	for _, f := range r.Found {
		s, err := pattern.New(d.Vocabulary(), f.Rule, pattern.Shared())
		if err != nil {
			t.Fatal(err)
		}
		o.Known = append(o.Known, s)
	}
	return o
}

// TestBoolean: the laws of truth values come out of three ops, each once, and what is found derives all
// that there is. The same seed gives the same text.
func TestBoolean(t *testing.T) {
	d := world(1)
	o := rulefind.Options{Ops: []string{"And", "Or", "Not"}, Vars: 2, Size: 2}
	r, err := rulefind.Search(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	text := r.Text("simplify", "saturate")
	found := rewrites(t, d, text)
	missing(t, found, "(And x x) => x", "(Or x x) => x", "(Not (Not x)) => x", "(And x (Or x y)) => x", "(Or x (And x y)) => x")
	for _, want := range []string{"# And(x, x) is x.\nfound_And_x_x_is_x: simplify\n", "    # fires: And(x, x)\n    # does not: And(y, x)\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	o = known(t, d, o, r)
	again, err := rulefind.Search(t.Context(), d, rulefind.Options{Ops: o.Ops, Vars: 2, Size: 2})
	if err != nil || again.Text("simplify", "saturate") != text {
		t.Errorf("%v: another text for the same seed:\n%s", err, again.Text("simplify", "saturate"))
	}
	if r.Candidates == 0 || r.Derived < r.Candidates {
		t.Errorf("of what was found follow %d of %d", r.Derived, r.Candidates)
	}
	if more, err := rulefind.Search(t.Context(), d, o); err != nil || len(more.Found) > 0 {
		t.Errorf("what is known was found again: %v\n%s", err, more.Text("", ""))
	}
}

// textbook has the laws of circuits of And, Or, Xor and Not, and their duals.
var textbook = []string{
	"(And x x) => x", "(Or x x) => x", // idempotence
	"(And x y) => (And y x)", "(Or x y) => (Or y x)", "(Xor x y) => (Xor y x)", // commutativity
	"(And x (And y z)) => (And (And x y) z)", "(Or x (Or y z)) => (Or (Or x y) z)", "(Xor x (Xor y z)) => (Xor (Xor x y) z)", // associativity
	"(And x (Or y z)) => (Or (And x y) (And x z))", "(Or x (And y z)) => (And (Or x y) (Or x z))", "(And x (Xor y z)) => (Xor (And x y) (And x z))", // distributivity
	"(And x (Or x y)) => x", "(Or x (And x y)) => x", // absorption
	"(And x (Or (Not x) y)) => (And x y)", "(Or x (And (Not x) y)) => (Or x y)",
	"(And x 1) => x", "(Or x 0) => x", "(Xor x 0) => x", // identity
	"(And x 0) => 0", "(Or x 1) => 1", // domination
	"(And x (Not x)) => 0", "(Or x (Not x)) => 1", "(Xor x (Not x)) => 1", "(Xor x x) => 0", "(Xor x 1) => (Not x)", // complement
	"(Not (Not x)) => x",
	"(Not (And x y)) => (Or (Not x) (Not y))", "(Not (Or x y)) => (And (Not x) (Not y))", // De Morgan
	"(Xor x y) => (Or (And x (Not y)) (And (Not x) y))", "(Xor x y) => (And (Or x y) (Not (And x y)))", "(Not (Xor x y)) => (Xor (Not x) y)",
	"(And (Or x y) (Or x (Not y))) => x", "(Or (And x y) (And x (Not y))) => x", // combining
	"(Or (Or (And x y) (And (Not x) z)) (And y z)) => (Or (And x y) (And (Not x) z))", // consensus
	"(And (And (Or x y) (Or (Not x) z)) (Or y z)) => (And (Or x y) (Or (Not x) z))",
}

// TestTextbook: what is found in terms of three ops derives each law that a textbook has.
func TestTextbook(t *testing.T) {
	longtest.Only(t)
	d := world(1)
	r, err := rulefind.Search(t.Context(), d, rulefind.Options{Ops: []string{"And", "Or", "Xor", "Not"}, Constants: []pattern.Literal{"0", "1"}, Size: 3})
	if err != nil {
		t.Fatal(err)
	}
	ground, err := d.Ground("", 3, rand.New(rand.NewPCG(0, 0)), nil)
	if err != nil {
		t.Fatal(err)
	}
	var rules []pattern.Rule
	for _, f := range r.Found {
		rules = append(rules, f.Rule)
	}
	if left := underived(t, d, rules, ground.Leaves, textbook); len(left) > 0 {
		t.Errorf("the %d rules that are found do not derive %q", len(r.Found), left)
	}
}

// underived returns the laws that do not follow from rules. A law may need another one: those that follow alone are
// rules for the others.
func underived(t *testing.T, d rulecheck.Domain, rules []pattern.Rule, leaves []*fgraph.Variable, left []string) []string {
	t.Helper()
	left = slices.Clone(left)
	var laws [][2]*fgraph.Variable
	for _, text := range left {
		w := law(t, text)
		laws = append(laws, [2]*fgraph.Variable{built(t, d, leaves, w.In.Expr), built(t, d, leaves, w.Out)})
	}
	for proved := true; proved && len(laws) > 0; {
		follows, err := rulefind.Follow(t.Context(), d, rules, laws)
		if err != nil {
			t.Fatal(err)
		}
		proved = false
		for i := len(laws) - 1; i >= 0; i-- {
			if !follows[i] {
				continue
			}
			rule := pattern.Rule{Name: left[i], Cases: []pattern.Rewrite{law(t, left[i])}}
			if _, err := pattern.New(d.Vocabulary(), rule, pattern.Shared()); err == nil { // that an op commutes is no rule
				rules = append(rules, rule)
			}
			left, laws, proved = slices.Delete(left, i, i+1), slices.Delete(laws, i, i+1), true
		}
	}
	return left
}

// law parses a law.
func law(t *testing.T, text string) pattern.Rewrite {
	t.Helper()
	w, err := pattern.ParseRewrite(text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestRefuted: a rule that is wrong for one number of a hundred is refuted, and that number tells terms
// apart from then on: behind the false rule there is a true one.
func TestRefuted(t *testing.T) {
	d := world(99)
	r, err := rulefind.Search(t.Context(), d, rulefind.Options{Ops: []string{"Step"}, Vars: 1, Size: 2, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	found := rewrites(t, d, r.Text("simplify", "saturate"))
	if r.Refuted != 1 || r.Rounds != 2 || !slices.Equal(found, []string{"(Step (Step x)) => (Step x)"}) {
		t.Errorf("%d refuted in %d rounds: %q", r.Refuted, r.Rounds, found)
	}
}

// TestStop: a search that is cancelled keeps what it has found.
func TestStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d := world(1)
	r, err := rulefind.Search(ctx, d, rulefind.Options{Ops: []string{"And", "Or", "Xor", "Not"}, Vars: 2, Progress: func(text string) {
		if strings.Contains(text, " checked") && !strings.Contains(text, " 0 checked") {
			cancel()
		}
	}})
	if err != nil || !r.Stopped || len(r.Found) == 0 {
		t.Fatalf("%+v: %v", r, err)
	}
	rewrites(t, d, r.Text("simplify", "saturate"))
}

// TestRedundant: a rule that follows from two others is superfluous, and they are not.
func TestRedundant(t *testing.T) {
	d := world(1)
	var entries []rulecheck.Entry
	for _, text := range []string{"(Not (Not x)) => x", "(And x x) => x", "(Not (Not (And x x))) => x"} {
		w, err := pattern.ParseRewrite(text)
		if err != nil {
			t.Fatal(err)
		}
		s, err := pattern.New(vocabulary{}, pattern.Rule{Name: text, Cases: []pattern.Rewrite{w}}, pattern.Shared())
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, rulecheck.Entry{Rule: s})
	}
	list, err := rulefind.Redundant(t.Context(), d, entries, nil)
	if err != nil || len(list) != 1 || list[0].Name != "(Not (Not (And x x))) => x" || !list[0].Together {
		t.Errorf("%+v, %v", list, err)
	}
}

// explorer is the dialect of tensors.
func explorer(t *testing.T) rulecheck.Domain {
	t.Helper()
	return tensors.Domain(nil, nil, nil)
}

// TestCases: a set of few has the rule of a maximum whose terms have an order that bounds tell, which no candidate says as it
// is; and of what does not follow at once, some does by the signs of a variable.
func TestCases(t *testing.T) {
	longtest.Only(t)
	d := explorer(t)
	r, err := rulefind.Search(t.Context(), d, rulefind.Options{Ops: []string{"maximum", "minimum", "sub", "abs"}, Vars: 2, Size: 3, Constants: []pattern.Literal{"0", "1"}, Rules: 30})
	if err != nil {
		t.Fatal(err)
	}
	text := r.Text("canonicalize", "saturate")
	if !strings.Contains(text, "(maximum x y) && at_least(") || r.ByCases == 0 || 100*r.Derived < 95*r.Candidates {
		t.Error(text)
	}
}

// TestProved: rules of bools are compared for all values, and those with numbers need a guard.
func TestProved(t *testing.T) {
	d := explorer(t)
	r, err := rulefind.Search(t.Context(), d, rulefind.Options{Ops: []string{"and", "xor"}, Types: "bool", Vars: 1, Size: longtest.Of(1, 2), Constants: []pattern.Literal{"1"}})
	if err != nil {
		t.Fatal(err)
	}
	found := rewrites(t, d, r.Text("canonicalize", "saturate"))
	missing(t, found, "(and x x) => x", "(and x 1) && bool(x) => x")
	for _, f := range r.Found {
		if !f.Proved {
			t.Errorf("%v is not proved", f.Rule)
		}
	}
}

// TestField: the axioms of a field come out of five ops.
func TestField(t *testing.T) {
	longtest.Only(t)
	d := explorer(t)
	o := rulefind.Options{Ops: []string{"add", "sub", "mul", "true_div", "neg"}, Constants: []pattern.Literal{"0", "1"}}
	r, err := rulefind.Search(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%d rules derive %d of %d", len(r.Found), r.Derived, r.Candidates); r.Derived < r.Candidates {
		t.Error("some do not follow")
	}
	found := rewrites(t, d, r.Text("canonicalize", "saturate"))
	if len(found) > 30 {
		t.Errorf("%d rules are not few", len(found))
	}
	missing(t, found, "(add x 0) => x", "(mul x 1) => x", "(sub x x) => 0", "(true_div x x) => 1",
		"(add x (add y z)) <=> (add y (add x z))", "(mul x (mul y z)) <=> (mul y (mul x z))", "(add x (mul x y)) <=> (mul x (add y 1))")
}

// TestNumbers: a rule that holds for other numbers, too, is about numbers, under the weakest condition. Rules
// that say the same of different sides have different names.
func TestNumbers(t *testing.T) {
	d := explorer(t)
	r, err := rulefind.Search(t.Context(), d, rulefind.Options{Ops: []string{"maximum"}, Vars: 1, Constants: []pattern.Literal{"1", "2"}})
	if err != nil {
		t.Fatal(err)
	}
	found := rewrites(t, d, r.Text("canonicalize", "saturate"))
	missing(t, found, "(maximum c (maximum x d)) && descending(c, d) => (maximum x c)")
	names := make(map[string]bool)
	for _, f := range r.Found {
		if names[f.Rule.Name] {
			t.Errorf("%s twice", f.Rule.Name)
		}
		names[f.Rule.Name] = true
	}
}

// TestNoParameter: a number in the name of an op is no parameter, for which conditions would be tried until one hides
// what refutes a wrong rule.
func TestNoParameter(t *testing.T) {
	r, err := rulefind.Search(t.Context(), explorer(t), rulefind.Options{Ops: []string{"Shape_i{0}", "pow"}, Types: "float32[?]", Vars: 2})
	if err != nil {
		t.Fatal(err)
	}
	missing(t, rewrites(t, explorer(t), r.Text("canonicalize", "saturate")), "(Shape_i{0} (pow x x)) => (Shape_i{0} x)")
	if len(r.Found) != 1 {
		t.Error(r.Text("canonicalize", "saturate"))
	}
}
