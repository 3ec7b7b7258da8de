package pattern_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// BenchmarkRuleWalk walks over 10⁵ applies with 10, 100 and 1,000 rules.
func BenchmarkRuleWalk(b *testing.B) {
	for _, f := range families() {
		for _, n := range []int{10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", f.name, n), func(b *testing.B) {
				w := rewrite.In2Out("walk", f.compileAll(b, n)...)
				best := time.Duration(1 << 62)
				for range b.N {
					b.StopTimer()
					g := f.build(b, 1e5)
					runtime.GC() // do not count garbage of the setup
					start := time.Now()
					b.StartTimer()
					if err := rewrite.Run(b.Context(), w, g, nil); err != nil {
						b.Fatal(err)
					}
					best = min(best, time.Since(start))
				}
				b.ReportMetric(float64(best.Nanoseconds())/1e5, "best-ns/apply")
				b.ReportMetric(float64(best.Microseconds()), "best-us")
			})
		}
	}
}

func compileTexts(tb testing.TB, v pattern.Vocabulary, texts ...string) []rewrite.NodeRewriter {
	var rules []rewrite.NodeRewriter
	for _, text := range texts {
		r, err := pattern.Compile(v, text, pattern.Shared())
		if err != nil {
			tb.Fatal(err)
		}
		rules = append(rules, r)
	}
	return rules
}

// TestStepsDoNotGrow: a sieve makes few steps at an apply, and hardly more for many rules.
func TestStepsDoNotGrow(t *testing.T) {
	for _, f := range families() {
		g := f.build(t, 2000)
		perApply := func(rules int) float64 {
			sift, steps := pattern.CountedSift(f.compileAll(t, rules))
			found := 0
			for a := range g.Applies() {
				kept := sift(a, nil)
				if found += len(kept); len(kept) > 3 {
					t.Errorf("%s: %d rules are left at %v", f.name, len(kept), fgraph.Sprint(4, a.Out()))
				}
			}
			if n := g.NumApplies(); found < n/200 || found > n/20 {
				t.Errorf("%s: %d rules are left at %d applies", f.name, found, n)
			}
			return float64(steps()) / float64(g.NumApplies())
		}
		few, many, more := perApply(10), perApply(1000), perApply(3000)
		t.Logf("%s: %.2f, %.2f and %.2f steps an apply for 10, 1,000 and 3,000 rules", f.name, few, many, more)
		if many > 10 || more > many+1 {
			t.Errorf("%s: %.2f, %.2f and %.2f steps an apply for 10, 1,000 and 3,000 rules", f.name, few, many, more)
		}
	}
}

// TestSieveIsBounded: where inputs are very many, a sieve looks at each a few times or gives up,
// and leaves the rules that it did not get to.
func TestSieveIsBounded(t *testing.T) {
	rules := compileTexts(t, wide{},
		"(mul (f1 x) (f2 y) (f3 z) ...r) => (f1 x)",
		"(mul (f1 x) (f2 (f2 y)) (f4 z) ...r) => (f1 x)",
		"(mul (mul (mul (f5 x) ...a) ...b) ...c) => (f1 x)",
		"(mul (add (f1 x) (f2 x) (f9 x)) (add (f2 x) (f3 x) ...b) (add (f4 x) ...c)) => (f1 x)",
		"(mul x y (f9 z)) => x",
		"(mul (f0 x) ...r) => x")
	const n = 10000
	b := newBuilder(5)
	var in []*fgraph.Variable
	for i := range n {
		in = append(in, b.f(i%5, b.ins[0]))
	}
	flat := b.apply(toy("mul"), in...)
	nested := flat
	for range 3 {
		nested = b.apply(toy("mul"), slices.Repeat([]*fgraph.Variable{nested}, n)...)
	}
	g := b.functionGraph(t)
	sift, steps := pattern.CountedSift(rules)
	for a := range g.Applies() {
		before := steps()
		kept := sift(a, nil)
		if took := steps() - before; took > 8*n {
			t.Errorf("%d steps", took)
		}
		if a == flat.Owner() && !slices.Equal(slices.Sorted(slices.Values(kept)), []int{0, 5}) {
			t.Errorf("rules %v are left for the flat product", kept)
		}
		if a == nested.Owner() && len(kept) == 0 {
			t.Errorf("the sieve claims to have seen everything")
		}
	}
}
