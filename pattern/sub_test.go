package pattern_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// The numbers in names refer to behaviours of Theano's PatternSub.
func TestSub(t *testing.T) {
	tests := []struct {
		name  string
		rule  string
		graph string
		want  string
	}{
		{"the tutorial's simplification", "(true_div (mul x y) y) => x", "(op1 z (mul (true_div (mul y x) y) (true_div z x)))", "op1(z, mul(x, true_div(z, x)))"},
		{"case 27: arguments move", "(op1 (op2 a b) c) => (op4 c b)", "(op1 (op2 x y) z)", "op4(z, y)"},
		{"case 28: the same variable", "(op2 a a) => (op3 a)", "(op2 x x)", "op3(x)"},
		{"case 28: not the same", "(op2 a a) => (op3 a)", "(op2 x y)", "op2(x, y)"},
		{"case 28: equal constants", "(op2 a a) => (op3 a)", "(op2 2 2)", "op3(2)"},
		{"case 28: constants that differ", "(op2 a a) => (op3 a)", "(op2 2 3)", "op2(2, 3)"},
		{"case 29: four nested", "(op1 (op1 a)) => a", "(op1 (op1 (op1 (op1 x))))", "x"},
		{"case 29: five nested", "(op1 (op1 a)) => a", "(op1 (op1 (op1 (op1 (op1 x)))))", "op1(x)"},
		{"case 30: new applies are left alone", "(op1 a) => (op2 (op1 a))", "(op1 (op1 (op1 x)))", "op2(op1(op2(op1(op2(op1(x))))))"},
		{"case 31: a swap applies once", "(op2 a b) => (op2 b a)", "(op2 x y)", "op2(y, x)"},
		{"case 32: a constant by value", "(op1 2 a) => (op3 a)", "(op1 2.0 x)", "op3(x)"},
		{"case 32: another value", "(op1 2 a) => (op3 a)", "(op1 3 x)", "op1(3, x)"},
		{"case 32: not a constant", "(op1 2 a) => (op3 a)", "(op1 y x)", "op1(y, x)"},
		{"case 32: a constant in the replacement", "(op1 a) => (op2 -0.5 a)", "(op1 x)", "op2(-0.5, x)"},
		{"case 35: a type that does not fit", "(op1 a) => (toint a)", "(op1 x)", "op1(x)"},
		{"case 36: one of two outputs as an input", "(op1 a b) => (op2 b a)", "(op1 (two x) (two y).1)", "op2(two(y)::1, two(x)::0)"},
		{"case 36: below the root", "(op1 (two a).1) => (op3 a)", "(op1 (two x).1)", "op3(x)"},
		{"case 36: the other output", "(op1 (two a).1) => (op3 a)", "(op1 (two x))", "op1(two(x)::0)"},
		{"case 36: an output in the replacement", "(op1 a) => (two a).1", "(op3 (op1 x))", "op3(two(x)::1)"},
		{"case 38: equal ops", "(equal a b) => (op1 b a)", "(equal x y)", "op1(y, x)"},
		{"case 39: the parameter it asks for", "(sum{0} a) => (op1 a)", "(sum{0} x)", "op1(x)"},
		{"case 39: another parameter", "(sum{0} a) => (op1 a)", "(sum{1} x)", "sum{1}(x)"},
		{"case 40: swapped operands", "(add (exp a) b) => (op1 a b)", "(add x (exp y))", "op1(y, x)"},
		{"case 40: in order where the op has one", "(op2 (exp a) b) => (op1 a b)", "(op2 x (exp y))", "op2(x, exp(y))"},
		{"case 40: the rest", "(add 0 ...ys) => (add ...ys)", "(add x 0 y z)", "add(x, y, z)"},
		{"case 40: no rest", "(add 0 ...ys) => (op1 ...ys)", "(add 0)", "op1()"},
		{"the rest, in order", "(op1 a b ...ys) => (op2 ...ys b ...ys a)", "(op1 x y z w)", "op2(z, w, y, z, w, x)"},
		{"an expression of each of the rest", "(op1 a ...ys) => (op2 a ...(op3 ys (op4 a)) a)", "(op1 x y z)", "op2(x, op3(y, op4(x)), op3(z, op4(x)), x)"},
		{"an expression of none", "(op1 a ...ys) => (op2 a ...(op3 ys))", "(op1 x)", "op2(x)"},
		{"two rests in step", "(op1 (op2 ...xs) (op3 ...ys)) => (op4 ...(add xs ys))", "(op1 (op2 x y) (op3 z w))", "op4(add(x, z), add(y, w))"},
		{"two rests that differ in length", "(op1 (op2 ...xs) (op3 ...ys)) => (op4 ...(add xs ys))", "(op1 (op2 x y) (op3 z))", "op1(op2(x, y), op3(z))"},
		{"the rest twice", "(op1 (op2 ...xs) (op3 ...xs)) => (op4 ...xs)", "(op1 (op2 x y) (op3 x y))", "op4(x, y)"},
		{"the rest twice, but another", "(op1 (op2 ...xs) (op3 ...xs)) => (op4 ...xs)", "(op1 (op2 x y) (op3 y x))", "op1(op2(x, y), op3(y, x))"},
		{"the rest twice, but shorter", "(op1 (op2 ...xs) (op3 ...xs)) => (op4 ...xs)", "(op1 (op2 x y) (op3 x))", "op1(op2(x, y), op3(x))"},
		{"a nameless rest", "(op1 a ...) => a", "(op1 x y z)", "x"},
		{"too few inputs", "(op1 a b ...) => a", "(op1 x)", "op1(x)"},
		{"too many inputs", "(op1 a b) => a", "(op1 x y z)", "op1(x, y, z)"},
		{"any", "(op1 _ _ a) => a", "(op1 x y z)", "z"},
		{"the first alternative", "(op1 (or (op2 a) (op3 a))) => (op4 a)", "(op1 (op2 x))", "op4(x)"},
		{"the second alternative", "(op1 (or (op2 a) (op3 a))) => (op4 a)", "(op1 (op3 x))", "op4(x)"},
		{"no alternative", "(op1 (or (op2 a) (op3 a))) => (op4 a)", "(op1 (op5 x))", "op1(op5(x))"},
		{"alternatives at the root", "(or (op1 a) (op2 a)) => (op3 a)", "(op2 (op1 x))", "op3(op3(x))"},
		{"an alternative that fails later", "(op1 (or (op2 a _) (op2 _ a)) a) => (op3 a)", "(op1 (op2 x y) y)", "op3(y)"},
		{"a named op", "(op1 e@(exp a)) => (op2 a e)", "(op1 (exp x))", "op2(x, exp(x))"},
		{"a named constant", "(op1 c@2) => (op2 c c)", "(op1 2.0)", "op2(2.0, 2.0)"},
		{"a named op twice", "(op1 e@(exp a) e) => a", "(op1 (exp x) (exp x))", "op1(exp(x), exp(x))"},
		{"operands that have to be sorted out", "(add (mul a b) (mul a c)) => (mul a (add b c))", "(add (mul x y) (mul z y))", "mul(y, add(x, z))"},
		{"operands that can't", "(add (mul a b) (mul a c)) => (mul a (add b c))", "(add (mul x y) (mul z w))", "add(mul(x, y), mul(z, w))"},
		{"x is not two of one x", "(add a a ...r) => (add (mul 2 a) ...r)", "(add x y z)", "add(x, y, z)"},
		{"two of one", "(add a a ...r) => (add (mul 2 a) ...r)", "(add x y z x)", "add(mul(2, x), y, z)"},
		{"a made op that refuses its input", "(op1 a) => (exp (toint a))", "(op1 x)", "op1(x)"},
		{"too many for the made op", "(op1 ...r) => (clip ...r)", "(op1 x y z w)", "op1(x, y, z, w)"},
		{"just enough", "(op1 ...r) => (clip ...r)", "(op1 x y z)", "clip(x, y, z)"},
		{"an output that the made op has not", "(op1 a) => (op2 a).1", "(op1 x)", "op1(x)"},
		{"a match below another op", "(exp a) => a", "(op1 (exp x) (exp (exp y)))", "op1(x, y)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := newWorld(t).graph(test.graph)
			walk(t, g, rewrite.In2Out("", compile(t, test.rule)))
			if got := strings.Trim(g.String(), "[]"); got != test.want {
				t.Errorf("%s by %s: %s, want %s", test.graph, test.rule, got, test.want)
			}
		})
	}
}

func TestCase33Guards(t *testing.T) {
	isExp := func(a pattern.Args) bool {
		return a.Vars[0].Owner() != nil && a.Vars[0].Owner().Op() == toy("exp")
	}
	three := func(a pattern.Args) bool { return len(a.Vars) == 3 }
	options := []pattern.Option{pattern.WithGuard("isExp", isExp), pattern.WithGuard("three", three)}
	tests := []struct{ rule, graph, want string }{
		{"(op1 a) && isExp(a) => a", "(op1 (exp x))", "exp(x)"},
		{"(op1 a) && isExp(a) => a", "(op1 (op2 x))", "op1(op2(x))"},
		{"(op1 a) && !isExp(a) => a", "(op1 (op2 x))", "op2(x)"},
		{"(op1 a b) && isExp(a) && isExp(b) => a", "(op1 (exp x) y)", "op1(exp(x), y)"},
		{"(add a b) && isExp(b) => a", "(add (exp x) y)", "y"},
		{"(op1 a ...r) && three(r, a) => a", "(op1 x y z)", "x"},
		{"(op1 a ...r) && three(r) => a", "(op1 x y z)", "op1(x, y, z)"},
		{"(or (op1 a b) (op1 b a)) && isExp(a) => b", "(op1 x (exp y))", "x"},
	}
	for _, test := range tests {
		g := newWorld(t).graph(test.graph)
		walk(t, g, rewrite.In2Out("", compile(t, test.rule, options...)))
		if got := strings.Trim(g.String(), "[]"); got != test.want {
			t.Errorf("%s by %s: %s, want %s", test.graph, test.rule, got, test.want)
		}
	}
}

func TestCase34Clients(t *testing.T) {
	tests := []struct {
		name    string
		rule    string
		let     string // of s
		outputs []string
		options []pattern.Option
		want    string
	}{
		{"an inner apply with another client", "(op1 (op2 a)) => a", "(op2 x)", []string{"(op1 s)", "(op3 s)"}, nil, "[op1(*1 -> op2(x)), op3(*1)]"},
		{"an inner apply that is an output", "(op1 (op2 a)) => a", "(op2 x)", []string{"(op1 s)", "s"}, nil, "[op1(*1 -> op2(x)), *1]"},
		{"allowed", "(op1 (op2 a)) => a", "(op2 x)", []string{"(op1 s)", "(op3 s)"}, []pattern.Option{pattern.Shared()}, "[x, op3(op2(x))]"},
		{"a captured input with other clients", "(op1 (op2 a)) => a", "(exp x)", []string{"(op1 (op2 s))", "(op3 s)"}, nil, "[*1 -> exp(x), op3(*1)]"},
		{"a root with several clients", "(op1 (op2 a)) => a", "(op1 (op2 x))", []string{"(op3 s)", "(op4 s)"}, nil, "[op3(x), op4(x)]"},
		{"an inner apply that the match reads twice", "(op1 (op2 a) (op2 a)) => a", "(op2 x)", []string{"(op1 s s)"}, nil, "[x]"},
		{"an inner apply read inside and outside", "(op1 (op2 a) (op2 a)) => a", "(op2 x)", []string{"(op1 s s)", "s"}, nil, "[op1(*1 -> op2(x), *1), *1]"},
		{"one that the replacement goes on using", "(op1 e@(op2 a)) => (op3 e a)", "(op2 x)", []string{"(op1 s)", "s"}, nil, "[op3(*1 -> op2(x), x), *1]"},
		{"below one that the replacement goes on using", "(op1 e@(op2 (op4 a))) => (op3 e a)", "(op4 x)", []string{"(op1 (op2 s))", "s"}, nil, "[op3(op2(*1 -> op4(x)), x), *1]"},
		{"one that is named for nothing", "(op1 e@(op2 a)) => a", "(op2 x)", []string{"(op1 s)", "s"}, nil, "[op1(*1 -> op2(x)), *1]"},
		{"another way to match", "(add (op2 a) b) => (op3 a b)", "(op2 x)", []string{"(add s (op2 y))", "s"}, nil, "[op3(y, *1 -> op2(x)), *1]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.let("s", test.let)
			g := w.graph(test.outputs...)
			walk(t, g, rewrite.In2Out("", compile(t, test.rule, test.options...)))
			if g.String() != test.want {
				t.Errorf("%s, want %s", g, test.want)
			}
		})
	}
}

func TestCase36RootWithSeveralOutputs(t *testing.T) {
	w := newWorld(t)
	w.let("s", "(two x)")
	g := w.graph("(op1 s)")
	walk(t, g, rewrite.In2Out("", compile(t, "(two a) => (op3 a)")))
	if g.String() != "[op1(two(x)::0)]" {
		t.Error(g)
	}
}

func TestCase39Builders(t *testing.T) {
	calls := 0
	build := func(a pattern.Args) (*fgraph.Variable, error) {
		calls++
		switch a.Vars[0].Name() {
		case "x":
			return fgraph.NewApply(toy("built"), append(a.Vars, a.Root.Inputs()[0]), float).Out(), nil
		case "y":
			return nil, nil
		}
		return nil, errors.New("no such thing")
	}
	s := compile(t, "(op1 a 2) => (op2 (make a 3))", pattern.With(pattern.Function{Name: "make", Build: build}))
	for graph, want := range map[string]string{
		"(op1 x 2)": "[op2(built(x, 3, x))]", "(op1 y 2)": "[op1(y, 2)]", "(op1 z 2)": "[op1(z, 2)]", "(op1 x 3)": "[op1(x, 3)]",
	} {
		g := newWorld(t).graph(graph)
		walk(t, g, rewrite.In2Out("", s))
		if g.String() != want {
			t.Errorf("%s: %s, want %s", graph, g, want)
		}
	}
	if calls != 3 {
		t.Errorf("built %d times", calls)
	}
	if s.Describe().Depth != 0 {
		t.Error("a rule with a Go function may look anywhere")
	}
}

// In an equilibrium, the tutorial's rule fires only after equal computations are merged.
func TestMergeThenSub(t *testing.T) {
	g := newWorld(t).graph("(true_div (mul (add y z) x) (add y z))")
	rule := compile(t, "(true_div (mul x y) y) => x")
	walk(t, g, rewrite.In2Out("", rule))
	if g.String() != "[true_div(mul(add(y, z), x), add(y, z))]" {
		t.Error(g)
	}
	if err := rewrite.Run(t.Context(), &rewrite.Merge{}, g, nil); err != nil {
		t.Fatal(err)
	}
	if err := rewrite.Run(t.Context(), &rewrite.Equilibrium{Rules: []rewrite.NodeRewriter{rule}}, g, nil); err != nil {
		t.Fatal(err)
	}
	if g.String() != "[x]" {
		t.Error(g)
	}
}

func TestWhyNot(t *testing.T) {
	no := pattern.WithGuard("no", func(a pattern.Args) bool { return false })
	tests := []struct{ rule, graph, want string }{
		{"(op1 (op2 a) b) => a", "(op1 (op3 x) y)", "op3(x) is not (op2 a)"},
		{"(op1 (op2 a) b) => a", "(op1 x y)", "x is not (op2 a)"},
		{"(op1 a) => a", "(op1 x y)", "op1(x, y) does not have the inputs of (op1 a)"},
		{"(op1 a 2) => a", "(op1 x y)", "y is not the constant 2"},
		{"(op1 a (op2 a)) => a", "(op1 x (op2 y))", "y is not what a matches elsewhere"},
		{"(op1 (op2 a)) && no(a) => a", "(op1 (op2 x))", "the guard no(a) is false"},
		{"(op1 a) => (toint a)", "(op1 x)", "the replacement has type int, not float"},
		{"(op1 a) => (exp (toint a))", "(op1 x)", "the replacement can't be made: exp of an integer"},
		{"(add (op2 a) (op3 a)) => a", "(add (op2 x) (op3 y))", "y is not what a matches elsewhere"},
		{"(op1 (op2 a)) => (op1 (op2 a) 1)", "(op1 (op2 x))", ""},
	}
	for _, test := range tests {
		var got []string
		ctx := rewrite.WithOptions(t.Context(), rewrite.Options{WhyNot: func(m rewrite.Miss) { got = append(got, m.Text) }})
		g := newWorld(t).graph(test.graph)
		w := rewrite.In2Out("pass", compile(t, test.rule, no, pattern.Named("rule")))
		if err := rewrite.Run(ctx, w, g, nil); err != nil {
			t.Fatal(err)
		}
		var want []string
		if test.want != "" {
			want = []string{test.want}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s on %s: %s", test.rule, test.graph, diff)
		}
	}
}

func TestNames(t *testing.T) {
	s := compile(t, "(op1 (or (op2 a) (op3 (op4 a)))) => a")
	const text = "(op1 (or (op2 a) (op3 (op4 a)))) => a"
	if s.Describe().Name != text || s.Describe().Doc != text || s.String() != text || s.Rule().Cases[0].String() != text {
		t.Errorf("%s %s %s", s.Describe().Name, s.Describe().Doc, s)
	}
	if s.Describe().Depth != 3 {
		t.Errorf("reach %d", s.Describe().Depth)
	}
	if diff := cmp.Diff("[op1]", strings.Join([]string{"[", s.Tracks()[0].String(), "]"}, "")); diff != "" {
		t.Error(diff)
	}
	s = compile(t, "(or (op1 a) (op2 a) (op1 a a)) => (op3 a)", pattern.Named("drop"), pattern.Doc("Drops."))
	if s.Describe().Name != "drop" || s.Describe().Doc != "Drops." || len(s.Tracks()) != 2 {
		t.Errorf("%s %s %v", s.Describe().Name, s.Describe().Doc, s.Tracks())
	}
	if s := compile(t, "(or (op1 a) (matched_only a)) => a"); s.Tracks() != nil {
		t.Errorf("an op without track, tracks %v", s.Tracks())
	}
}

// The search is bounded: here there are 60!/53! ways.
func TestSearchIsBounded(t *testing.T) {
	var in []string
	for i := range 60 {
		in = append(in, "x"+string(rune('a'+i%26))+string(rune('a'+i/26)))
	}
	no := pattern.WithGuard("no", func(a pattern.Args) bool { return false })
	s := compile(t, "(add a b c d e f g ...r) && no(a) => a", no)
	var got string
	ctx := rewrite.WithOptions(t.Context(), rewrite.Options{WhyNot: func(m rewrite.Miss) { got = m.Text }})
	g := newWorld(t).graph("(add " + strings.Join(in, " ") + ")")
	if err := rewrite.Run(ctx, rewrite.In2Out("", s), g, nil); err != nil {
		t.Fatal(err)
	}
	if got != "gave up after 262144 steps" {
		t.Error(got)
	}
}

func TestTransformAllocatesNothingOnAMiss(t *testing.T) {
	g := newWorld(t).graph("(op1 (op2 (add x (exp y))) z)")
	s := compile(t, "(op1 (op2 (add (exp a) (exp b))) c) => a")
	c := rewrite.NewContext(t.Context(), g)
	root := g.Outputs()[0].Owner()
	allocs := testing.AllocsPerRun(100, func() {
		if r, err := s.Transform(c, root); err != nil || !r.Empty() {
			t.Fatal(r, err)
		}
	})
	if allocs > 0 && !raceDetector {
		t.Errorf("%v allocations", allocs)
	}
}

func BenchmarkTransform(b *testing.B) {
	w := newWorld(&testing.T{})
	g := w.graph("(op1 (op2 x y) z)", "(op1 (op3 x y) z)")
	s, err := pattern.Compile(toys{}, "(op1 (op2 a b) c) => (op4 c b)")
	if err != nil {
		b.Fatal(err)
	}
	c := rewrite.NewContext(b.Context(), g)
	for i, name := range []string{"match", "miss"} {
		root := g.Outputs()[i].Owner()
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Transform(c, root)
			}
		})
	}
}

// mirror is an op whose output is a view of its input.
type mirror struct{ name string }

func (m mirror) String() string          { return m.name }
func (m mirror) ViewMap() []fgraph.Alias { return []fgraph.Alias{{Output: 0, Input: 0}} }
func (m mirror) Operator(string) (pattern.Operator, bool) {
	return pattern.Operator{Match: pattern.Is(m), MinInputs: 1, MaxInputs: 1, Tracks: []rewrite.Track{rewrite.TrackOp(m)}}, true
}

// mirrors is a vocabulary of one op.
type mirrors struct {
	toys
	op mirror
}

func (v mirrors) Operator(name string) (pattern.Operator, bool) { return v.op.Operator(name) }

// When views of views disappear, the DestroyHandler notices.
func TestCase16NestedViews(t *testing.T) {
	tv := mirror{"transpose_view"}
	x := fgraph.NewInput(float, "x")
	v := x
	for range 4 {
		v = fgraph.NewApply(tv, []*fgraph.Variable{v}, float).Out()
	}
	g, err := fgraph.New([]*fgraph.Variable{x}, []*fgraph.Variable{v}, fgraph.NewDestroyHandler(nil))
	if err != nil {
		t.Fatal(err)
	}
	rule, err := pattern.Compile(mirrors{op: tv}, "(transpose_view (transpose_view x)) => x")
	if err != nil {
		t.Fatal(err)
	}
	walk(t, g, rewrite.In2Out("", rule))
	if g.String() != "[x]" {
		t.Error(g)
	}
	if err := g.Validate(); err != nil {
		t.Error(err)
	}
}

// Theano attaches a function to the replacement that decides in debug mode whether the
// values before and after are equal. Here the comparison has the tolerance, as in
// rewritetest.KeepsValues, and nothing is attached to variables, whether the rule tracks
// single ops or all.
func TestCase37NothingIsLeftOnTheReplacement(t *testing.T) {
	for _, text := range []string{"(op1 (op2 a)) => (op3 a)", "(or (op1 (op2 a)) (matched_only a)) => (op3 a)"} {
		g := newWorld(t).graph("(op1 (op2 x))")
		walk(t, g, rewrite.In2Out("", compile(t, text)))
		out := g.Outputs()[0]
		if g.String() != "[op3(x)]" || out.Name() != "" || out.Data() != nil || out.Owner().Origin() != -1 {
			t.Errorf("%s: %v, %q, %v", text, g, out.Name(), out.Data())
		}
	}
}

// Two constraints on one name are an error in PyTensor; here both must hold.
func TestCase40TwoGuardsOnOneName(t *testing.T) {
	named := func(names string) func(pattern.Args) bool {
		return func(a pattern.Args) bool { return strings.Contains(names, a.Vars[0].Name()) }
	}
	s := compile(t, "(op1 a) && early(a) && late(a) => a", pattern.WithGuard("early", named("xy")), pattern.WithGuard("late", named("yz")))
	for graph, want := range map[string]string{"(op1 x)": "[op1(x)]", "(op1 y)": "[y]", "(op1 z)": "[op1(z)]"} {
		g := newWorld(t).graph(graph)
		walk(t, g, rewrite.In2Out("", s))
		if g.String() != want {
			t.Errorf("%s: %v, want %s", graph, g, want)
		}
	}
}
