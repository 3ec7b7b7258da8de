package pattern_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

// valuedToys is toys for a vocabulary that knows values.
type valuedToys struct{ toys }

func (valuedToys) Number(v *fgraph.Variable) (float64, bool) {
	switch x := v.Data().(type) {
	case float64:
		return x, true
	case int64:
		return float64(x), true
	}
	return 0, false
}

func (valuedToys) Broadcasts() []rewrite.Track { return nil }

var vocabularies = []pattern.Vocabulary{toys{}, valuedToys{}, sums{}}

// randomExpr returns a random pattern. All alternatives bind x, y and nothing else.
func randomExpr(r *rand.Rand, depth int, names []string) pattern.Expr {
	if depth <= 0 || r.IntN(3) == 0 {
		switch r.IntN(6) {
		case 0:
			return pattern.Any{}
		case 1:
			return pattern.Literal([]string{"0", "1", "2", "-0", "1.0", "1:float", "2:int"}[r.IntN(7)])
		}
		return pattern.Name(names[r.IntN(len(names))])
	}
	switch r.IntN(8) {
	case 0:
		var or pattern.Or
		for range 1 + r.IntN(3) {
			or = append(or, pattern.NewCall([]string{"op1", "add", "mul"}[r.IntN(3)], pattern.Name("x"), randomCall(r, depth-1, []string{"y"})))
			if bound := or.String(); !strings.Contains(bound, "y") {
				or[len(or)-1] = pattern.NewCall("add", pattern.Name("y"), pattern.Name("x"))
			}
		}
		return or
	case 1:
		return &pattern.Bind{Name: fmt.Sprint("b", r.IntN(20)), Expr: randomCall(r, depth, names)}
	}
	return randomCall(r, depth, names)
}

func randomCall(r *rand.Rand, depth int, names []string) pattern.Expr {
	ops := []string{"op1", "op2", "add", "mul", "add", "mul", "exp", "sum{0}", "sum{1}", "sum{a}", "sum{b}", "true_div", "two", "zeros", "matched_only", "equal", "clip"}
	op := ops[r.IntN(len(ops))]
	n := 1 + r.IntN(3)
	switch op {
	case "exp", "sum{0}", "sum{1}", "sum{a}", "sum{b}", "equal":
		n = 1
	case "true_div":
		n = 2
	case "zeros":
		n = 0
	case "matched_only":
		n = 0
	}
	call := pattern.NewCall(op)
	for range n {
		call.Args = append(call.Args, randomExpr(r, depth-1, names))
	}
	if r.IntN(4) == 0 && op != "true_div" && op != "exp" {
		call.Args = append(call.Args, pattern.Rest([]string{"", "rest", "more"}[r.IntN(3)]))
	}
	if op == "two" {
		call.Output = r.IntN(2)
	}
	return call
}

// randomRules returns rules that compile.
func randomRules(r *rand.Rand, v pattern.Vocabulary, n int) []rewrite.NodeRewriter {
	var rules []rewrite.NodeRewriter
	for len(rules) < n {
		var cases []pattern.Rewrite
		for range 1 + r.IntN(2) {
			in := randomCall(r, 1+r.IntN(3), []string{"x", "y", "z"})
			if r.IntN(8) == 0 {
				in = randomExpr(r, 2, []string{"x", "y"})
			}
			out := pattern.Expr(pattern.Literal("7"))
			if strings.Contains(in.String(), "x") && r.IntN(2) == 0 {
				out = pattern.Name("x")
			}
			cases = append(cases, pattern.Rewrite{In: pattern.Pattern{Expr: in}, Out: out})
		}
		list := []pattern.Option{pattern.Named(fmt.Sprint("rule", len(rules)))}
		if r.IntN(2) == 0 {
			list = append(list, pattern.Shared())
		}
		if rule, err := pattern.New(v, pattern.Rule{Cases: cases}, list...); err == nil {
			rules = append(rules, rule)
		}
	}
	return rules
}

// randomToys returns a graph of the ops in random patterns.
func randomToys(tb testing.TB, seed uint64, n int) *fgraph.FunctionGraph {
	b := newBuilder(seed)
	for range n {
		ins := make([]*fgraph.Variable, 1+b.IntN(4))
		for i := range ins {
			ins[i] = b.any()
			if b.IntN(5) == 0 {
				ins[i] = b.number(float64(b.IntN(3)))
			}
		}
		switch b.IntN(14) {
		case 0:
			b.apply(toy("op1"), ins...)
		case 1:
			b.apply(toy("op2"), ins...)
		case 2, 3, 4:
			b.apply(toy("add"), ins...)
		case 5, 6, 7:
			b.apply(toy("mul"), ins...)
		case 8:
			b.apply(toy("exp"), ins[0])
		case 9:
			b.apply(toy(fmt.Sprintf("sum{%d}", b.IntN(3))), ins[0])
		case 10:
			b.apply(toy("true_div"), ins[0], b.any())
		case 11:
			b.apply(&pointer{"equal"}, ins[0])
		case 12:
			b.apply(toy([]string{"zeros", "matched_only"}[b.IntN(2)]))
		case 13:
			a := fgraph.NewApply(toy("two"), ins, float, float)
			b.vars = append(b.vars, a.Outputs()...)
		}
	}
	return b.functionGraph(tb)
}

// TestSieveKeepsMatches: a sieve excludes no rule that matches, and most of the others.
func TestSieveKeepsMatches(t *testing.T) {
	matches, found, rules := 0, 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		vocab := vocabularies[seed%3]
		list := randomRules(r, vocab, 1+r.IntN(60))
		sift := list[0].(rewrite.Sifter).Sieve(list)()
		g := randomToys(t, seed, 60)
		matchers := make([][]*pattern.Matcher, len(list))
		for i, rule := range list {
			for _, c := range rule.(*pattern.Substitution).Rule().Cases {
				m, err := pattern.NewMatcher(vocab, c.In.String(), pattern.Shared())
				if err != nil {
					t.Fatal(err)
				}
				matchers[i] = append(matchers[i], m)
			}
		}
		for a := range g.Applies() {
			kept := sift(a, nil)
			slices.Sort(kept)
			found, rules = found+len(slices.Compact(kept)), rules+len(list)
			for i, cases := range matchers {
				if !slices.ContainsFunc(cases, func(m *pattern.Matcher) bool { _, ok := m.Match(a); return ok }) {
					continue
				}
				matches++
				if !slices.Contains(kept, i) {
					t.Fatalf("seed %d: %v matches %v, but is excluded", seed, list[i], fgraph.Sprint(4, a.Out()))
				}
			}
		}
	}
	if matches < 1000 || found > matches*5/2 || rules < 20*matches {
		t.Errorf("%d matches among %d rules that were found, of %d", matches, found, rules)
	}
	t.Logf("%d matches among %d rules that were found, of %d", matches, found, rules)
}

// An outcome is what a rewrite of a graph has done.
type outcome struct{ graph, rules, events, misses string }

func runRules(t *testing.T, g *fgraph.FunctionGraph, r rewrite.GraphRewriter, o rewrite.Options) outcome {
	t.Helper()
	var events, misses strings.Builder
	o.Trace = rewrite.TraceTo(&events)
	if o.WhyNot != nil {
		o.WhyNot = func(m rewrite.Miss) { fmt.Fprintf(&misses, "%s %v: %s\n", m.Rule, m.Apply, m.Text) }
	}
	rec := profile.New("test", "")
	if err := rewrite.Run(rewrite.WithOptions(context.Background(), o), r, g, rec); err != nil {
		fmt.Fprintf(&events, "%v\n", err)
	}
	rec.End()
	if err := g.Check(); err != nil {
		t.Error(err)
	}
	var rules strings.Builder
	for _, c := range rec.Record().Rules {
		fmt.Fprintf(&rules, "%s %d %d %d %d\n", c.Name, c.Attempts, c.Applied, c.Refused, c.Created)
	}
	return outcome{g.String(), rules.String(), events.String(), misses.String()}
}

// TestSievedRun: drivers and groups make the same rewrites and counts with sieves and without.
func TestSievedRun(t *testing.T) {
	seeds := uint64(60)
	if !longtest.Enabled() {
		seeds = 6
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 3))
		vocab := vocabularies[seed%3]
		list := randomRules(r, vocab, 2+r.IntN(60))
		nothing := func(*rewrite.Context, *fgraph.Apply) (rewrite.Result, error) { return rewrite.Result{}, nil }
		list = slices.Insert(list, r.IntN(len(list)), rewrite.NodeRewriter(rewrite.Rule{Name: "go", Fn: nothing}))
		list = slices.Insert(list, r.IntN(len(list)), rewrite.As(list[len(list)-1], rewrite.Description{Name: "renamed"}))
		drivers := map[string]rewrite.GraphRewriter{
			"walk":        rewrite.In2Out("walk", list...),
			"all new":     &rewrite.Walk{Rules: list, VisitNew: true, Order: rewrite.OutToIn, MaxUse: 0.2},
			"equilibrium": &rewrite.Equilibrium{Rules: list, MaxUse: 0.2},
			"group":       rewrite.In2Out("group", &rewrite.Group{Name: "group", Rules: list}),
			"again":       rewrite.In2Out("group", &rewrite.Group{Name: "group", Rules: list, ApplyAll: true}),
		}
		for name, d := range drivers {
			// The sieves are made as soon as they pay, so the second run has them.
			for range 3 {
				one := runRules(t, randomToys(t, seed, 150), d, rewrite.Options{AskAll: true})
				all := runRules(t, randomToys(t, seed, 150), d, rewrite.Options{})
				if one != all {
					t.Fatalf("seed %d: %s: one by one\n%v\nsifted\n%v", seed, name, one, all)
				}
			}
			misses := func(rewrite.Miss) {}
			one := runRules(t, randomToys(t, seed, 150), d, rewrite.Options{AskAll: true, WhyNot: misses})
			all := runRules(t, randomToys(t, seed, 150), d, rewrite.Options{WhyNot: misses})
			if one != all {
				t.Fatalf("seed %d: %s: one by one\n%v\nsifted, with reasons\n%v", seed, name, one, all)
			}
		}
	}
}

// TestSieveIsShared: runs on several goroutines use, and make, one sieve.
func TestSieveIsShared(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	w := rewrite.In2Out("walk", randomRules(r, sums{}, 40)...)
	want := runRules(t, randomToys(t, 1, 200), w, rewrite.Options{AskAll: true})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 10 {
				if got := runRules(t, randomToys(t, 1, 200), w, rewrite.Options{}); got != want {
					t.Errorf("%v\nis not\n%v", got, want)
				}
			}
		})
	}
	all.Wait()
}
