package tensorpass_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/passes/tensortest"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestSievedOptimizer: with sieves, an optimizer makes the same rewrites, for the same reasons and
// with the same counts, as when it asks every rule.
func TestSievedOptimizer(t *testing.T) {
	var graphs []func() *fgraph.FunctionGraph
	for _, vars := range expressionVars {
		for _, e := range readExpressions(t) {
			if s, out := parseExpression(t, vars.vars, e.text); out != nil {
				graphs = append(graphs, func() *fgraph.FunctionGraph {
					return newFunctionGraph(t, tensortest.Graph{Inputs: s.Inputs(), Outputs: out})
				})
			}
		}
	}
	_, cases, vars := readRules(t, "rules.txt")
	_, more, _ := readRules(t, "passes.txt")
	for _, c := range append(cases, more...) {
		graphs = append(graphs, func() *fgraph.FunctionGraph { _, _, g := newGraph(t, vars, c.expr); return g })
	}
	for seed := range uint64(60) {
		graphs = append(graphs, func() *fgraph.FunctionGraph {
			g := tensortest.NewGenerator(seed)
			g.Grow(20)
			inputs, _ := g.Inputs()
			return newFunctionGraph(t, tensortest.Graph{Inputs: inputs, Outputs: g.Outputs(2)})
		})
	}
	if !longtest.Enabled() {
		few := graphs[:0]
		for i := 0; i < len(graphs); i += 35 {
			few = append(few, graphs[i])
		}
		graphs = few
	}
	for _, query := range []string{"+fast_run", unfused} {
		opt := passtest.Optimizer(t, query)
		for i, g := range graphs {
			one, all := optimized(t, opt, g(), rewrite.Options{AskAll: true}), optimized(t, opt, g(), rewrite.Options{})
			if one != all {
				t.Fatalf("%s, %v: asking all rules\n%s\nand some\n%s", query, g(), one, all)
			}
			if i%16 > 0 {
				continue
			}
			misses := func(rewrite.Miss) {}
			one = optimized(t, opt, g(), rewrite.Options{AskAll: true, WhyNot: misses})
			all = optimized(t, opt, g(), rewrite.Options{WhyNot: misses})
			if one != all {
				t.Fatalf("%s, %v: asking all rules\n%s\nand some, with reasons\n%s", query, g(), one, all)
			}
		}
	}
}

// optimized returns what an optimizer does with a graph, as text.
func optimized(t *testing.T, opt *optdb.Optimizer, g *fgraph.FunctionGraph, o rewrite.Options) string {
	t.Helper()
	var b strings.Builder
	o.Trace = rewrite.TraceTo(&b)
	if o.WhyNot != nil {
		o.WhyNot = func(m rewrite.Miss) { fmt.Fprintf(&b, "%s, %s, %v: %s\n", m.Pass, m.Rule, m.Apply, m.Text) }
	}
	rec := profile.New("test", "")
	if err := opt.Rewrite(rewrite.WithOptions(t.Context(), o), g, rec); err != nil {
		t.Fatal(err)
	}
	rec.End()
	todo := []*profile.Record{rec.Record()}
	for len(todo) > 0 {
		r := todo[0]
		todo = append(todo[1:], r.Children...)
		fmt.Fprintf(&b, "%s: %d, %d to %d\n", r.Name, r.Changed, r.NodesBefore, r.NodesAfter)
		for _, c := range r.Rules {
			if c.Attempts > 0 {
				fmt.Fprintf(&b, "\t%s: %d attempts, %d applied, %d refused, %d created\n", c.Name, c.Attempts, c.Applied, c.Refused, c.Created)
			}
		}
	}
	fmt.Fprintln(&b, g)
	return b.String()
}

// unaries are the names of the functions in made-up rules. They are all of one Go type.
var unaries = func() (names []string) {
	for o := range array.NumOpcodes {
		if o.NumArgs() == 1 && o != array.Cast {
			names = append(names, o.String())
		}
	}
	return names
}()

// madeUp are made-up rules of one form. The graph that they are tried on has chains of the first
// half of the functions, so that the beginnings of patterns often match.
var madeUp = []struct {
	name string
	rule func(i int) string
}{
	{"mul", func(i int) string {
		return fmt.Sprintf("(mul (%s (%s x)) (%s y) ...rest) => (mul x ...rest)", unary(i, 0), unary(i, 1), odd(i))
	}},
	{"add_of_mul", func(i int) string {
		return fmt.Sprintf("(add (mul (%s x) (%s y) ...a) (%s z) ...b) => (add x ...b)", unary(i, 0), odd(i), unary(i, 1))
	}},
	{"numbers", func(i int) string { return fmt.Sprintf("(mul %d.5 x ...rest) => (mul x ...rest)", i+50) }},
	{"chains", func(i int) string {
		return fmt.Sprintf("(exp (%s (%s (%s x)))) => x", unary(i, 0), unary(i, 1), odd(i))
	}},
	{"reductions", func(i int) string {
		return fmt.Sprintf("(sum{a} (mul (%s (%s x)) y (%s z))) => (sum{a} x)", unary(i, 0), unary(i, 1), odd(i))
	}},
	{"roots", func(i int) string { return fmt.Sprintf("(%s (%s (%s x))) => x", unary(i, 0), unary(i, 1), odd(i)) }},
}

// unary returns a function of the graph, by the first or second digit of i.
func unary(i, digit int) string {
	half := len(unaries) / 2
	if digit == 1 {
		i /= half
	}
	return unaries[i%half]
}

// odd returns a function that is not in the graph.
func odd(i int) string {
	half := len(unaries) / 2
	return unaries[half+i/half/half%(len(unaries)-half)]
}

func madeUpGraph(size int) tensortest.Graph {
	rng := rand.New(rand.NewPCG(1, 2))
	x := fgraph.NewInput(tensor.NewType(array.Float64, 3), "x")
	vars := []*fgraph.Variable{x}
	last := func() *fgraph.Variable { return vars[max(0, len(vars)-1-rng.IntN(40))] }
	for len(vars) < size {
		var v *fgraph.Variable
		switch o, _ := array.ParseOpcode(unary(rng.IntN(1000), 0)); rng.IntN(7) {
		case 0:
			v = tensor.Mul(last(), last(), last())
		case 1:
			v = tensor.Mul(last(), tensor.Number(float64(rng.IntN(50))+0.5, x))
		case 2:
			v = tensor.Add(last(), last())
		case 3:
			v = tensor.Sum(last())
		default:
			v = tensor.Map(o, last())
		}
		vars = append(vars, v)
	}
	return tensortest.Graph{Inputs: []*fgraph.Variable{x}, Outputs: vars[len(vars)-40:]}
}

// BenchmarkMadeUpRules walks over 10⁵ applies with 10, 100 and 1,000 rules.
func BenchmarkMadeUpRules(b *testing.B) {
	graph := madeUpGraph(2e5)
	for _, f := range madeUp {
		for _, n := range []int{10, 100, 1000} {
			var rules []rewrite.NodeRewriter
			for i := range n {
				r, err := pattern.Compile(tensorpass.Vocabulary(), f.rule(i), pattern.Shared())
				if err != nil {
					b.Fatal(err)
				}
				rules = append(rules, r)
			}
			w := rewrite.In2Out("walk", rules...)
			b.Run(fmt.Sprintf("%s/%d", f.name, n), func(b *testing.B) { benchmarkWalk(b, w, graph, rewrite.Options{}) })
		}
	}
}

// benchmarkWalk measures a walk, mainly in nanoseconds per apply in the best run.
func benchmarkWalk(b *testing.B, w rewrite.GraphRewriter, graph tensortest.Graph, o rewrite.Options) {
	best := 1e18
	applies := 0
	for range b.N {
		b.StopTimer()
		g := newFunctionGraph(b, graph)
		applies = g.NumApplies()
		runtime.GC() // do not count garbage of the setup
		before := b.Elapsed()
		b.StartTimer()
		if err := rewrite.Run(rewrite.WithOptions(context.Background(), o), w, g, nil); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		best = min(best, float64((b.Elapsed() - before).Nanoseconds()))
		b.StartTimer()
	}
	b.ReportMetric(best/float64(applies), "best-ns/apply")
	b.ReportMetric(best/1e3, "best-us")
}

// equations are rules that optimizers have, without the conditions under which they hold.
const equations = `
(neg (neg x)) => x
(mul x x) => (sqr x)
(sub x (neg y)) => (add x y)
(sub x x) => (mul x 0)
(sub x 0) => x
(sub 0 x) => (neg x)
(add x 0) => x
(add x (neg y)) => (sub x y)
(add x x) => (mul 2 x)
(mul 1 x) => x
(mul 0 x ...r) => (mul 0 x)
(mul -1 x) => (neg x)
(mul (neg x) (neg y) ...r) => (mul x y ...r)
(mul (exp x) (exp y)) => (exp (add x y))
(mul (inv x) y) => (true_div y x)
(mul (sqrt x) (sqrt x)) => x
(mul (true_div x y) z) => (true_div (mul x z) y)
(mul (sgn x) (abs x)) => x
(add (mul a x) (mul a y)) => (mul a (add x y))
(add (sqr (sin x)) (sqr (cos x))) => (true_div x x)
(add (log x) (log y)) => (log (mul x y))
(true_div (mul x ...ys) x) => (mul ...ys)
(true_div x x) => (exp (mul 0 x))
(true_div x 1) => x
(true_div 0 x) => (mul 0 x)
(true_div 1 x) => (inv x)
(true_div x -1) => (neg x)
(true_div (neg x) (neg y)) => (true_div x y)
(true_div (exp x) (exp y)) => (exp (sub x y))
(true_div x (exp y)) => (mul x (exp (neg y)))
(true_div x (sqrt x)) => (sqrt x)
(true_div (true_div x y) z) => (true_div x (mul y z))
(pow x 2) => (sqr x)
(pow x 1) => x
(pow x 0) => (exp (mul 0 x))
(pow x 0.5) => (sqrt x)
(pow x -1) => (inv x)
(pow x -2) => (inv (sqr x))
(pow x -0.5) => (inv (sqrt x))
(pow (exp x) y) => (exp (mul x y))
(pow (pow x y) z) => (pow x (mul y z))
(sqr (sqrt x)) => x
(sqr (neg x)) => (sqr x)
(sqr (abs x)) => (sqr x)
(sqrt (sqr x)) => (abs x)
(abs (abs x)) => (abs x)
(abs (neg x)) => (abs x)
(abs (exp x)) => (exp x)
(exp (log x)) => x
(exp (log1p x)) => (add 1 x)
(exp (neg (log x))) => (inv x)
(exp (mul y (log x))) => (pow x y)
(log (exp x)) => x
(log (inv x)) => (neg (log x))
(log (sqrt x)) => (mul 0.5 (log x))
(log (mul x (exp y))) => (add (log x) y)
(log (true_div x y)) => (sub (log x) (log y))
(log (pow x y)) => (mul y (log x))
(log (add 1 x)) => (log1p x)
(log (sub 1 x)) => (log1p (neg x))
(log (sigmoid x)) => (neg (softplus (neg x)))
(log (add (exp x) 1)) => (softplus x)
(sub (exp x) 1) => (expm1 x)
(sub 1 (sigmoid x)) => (sigmoid (neg x))
(inv (inv x)) => x
(inv (exp x)) => (exp (neg x))
(inv (add 1 (exp (neg x)))) => (sigmoid x)
(true_div 1 (add 1 (exp (neg x)))) => (sigmoid x)
(true_div (exp x) (add 1 (exp x))) => (sigmoid x)
(tanh (arctanh x)) => x
(sin (arcsin x)) => x
(cos (neg x)) => (cos x)
(sin (neg x)) => (neg (sin x))
(neg (sub x y)) => (sub y x)
(sum{a} (neg x)) => (neg (sum{a} x))
(add 1 (neg (erf x))) => (erfc x)
(sub 1 (erf x)) => (erfc x)
(sub 1 (erfc x)) => (erf x)
`

// BenchmarkEquations walks over graphs with the rules in equations. "all" asks each of them.
func BenchmarkEquations(b *testing.B) {
	var rules []rewrite.NodeRewriter
	for _, text := range strings.Split(strings.TrimSpace(equations), "\n") {
		r, err := pattern.Compile(tensorpass.Vocabulary(), text, pattern.Shared())
		if err != nil {
			b.Fatal(err)
		}
		rules = append(rules, r)
	}
	w := rewrite.In2Out("walk", rules...)
	for _, g := range []struct {
		name  string
		graph tensortest.Graph
	}{
		{"deep_small/1000", tensortest.DeepSmall(1000)},
		{"large_fuse/250", tensortest.LargeFuse(250)},
		{"mlp/50", tensortest.MLP(50)},
		{"addchain/2000", tensortest.AddChain(2000)},
		{"explog/500", tensortest.ExpLog(500)},
		{"diamond/640", tensortest.Diamond(640)},
		{"made_up/10000", madeUpGraph(1e4)},
	} {
		for _, all := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/all=%v", g.name, all), func(b *testing.B) {
				benchmarkWalk(b, w, g.graph, rewrite.Options{AskAll: all})
			})
		}
	}
}
