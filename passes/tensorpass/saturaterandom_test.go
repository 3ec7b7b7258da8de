package tensorpass_test

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/passes/tensortest"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
)

// costOf returns what the applies of a graph cost.
func costOf(g *fgraph.FunctionGraph) float64 {
	sum := 0.0
	for a := range g.Applies() {
		sum += tensor.Cost(a)
	}
	return sum
}

// costOptimized returns what an expression costs once it is optimized.
func costOptimized(t testing.TB, opt *optdb.Optimizer, inputs, out []*fgraph.Variable) (float64, *fgraph.FunctionGraph) {
	t.Helper()
	f, err := exec.NewFunction(t.Context(), inputs, out, exec.FunctionOptions{Optimizer: opt})
	if err != nil {
		t.Fatalf("%v: %v", opt.Query(), err)
	}
	return costOf(f.Graph()), f.Graph()
}

// saturatePatterns returns the patterns of all rules, those for saturation four times.
func saturatePatterns() []pattern.Expr {
	list := rulePatterns()
	for _, l := range tensorpass.In(tensorpass.Saturate) {
		if s, ok := rewrite.Undescribed(l.Rule).(*pattern.Substitution); ok {
			for _, c := range s.Cases() {
				e := c.Rewrite().In.Expr
				list = append(list, e, e, e, e)
			}
		}
	}
	return list
}

var saturatedRuns = flag.Int("saturated", 2000, "how many random expressions TestSaturateRandom takes")

// TestSaturateRandom: random expressions keep their values when they are saturated, and never cost
// more than without saturation. A fair share costs less.
func TestSaturateRandom(t *testing.T) {
	runs := *saturatedRuns
	if !longtest.Enabled() {
		runs = min(runs, 24)
	}
	patterns := saturatePatterns()
	workers := runtime.GOMAXPROCS(0)
	cheaper := make([]int, workers)
	t.Run("workers", func(t *testing.T) {
		for w := range workers {
			t.Run(fmt.Sprint(w), func(t *testing.T) {
				t.Parallel()
				with, without := passtest.Optimizer(t, "+fast_run +saturate"), passtest.Optimizer(t, "+fast_run")
				used := make(map[string]int)
				for seed := *randomStart + w; seed < *randomStart+runs && !t.Failed(); seed += workers {
					g := tensortest.NewGenerator(uint64(seed))
					g.Patterns, g.Vocabulary = patterns, tensorpass.Vocabulary()
					g.Grow(2 + seed%15)
					out, f := randomCase(t, seed, g, with, used)
					if f == nil {
						return
					}
					inputs, _ := g.Inputs()
					before, was := costOptimized(t, without, inputs, out)
					after, is := costOf(f.Graph()), f.Graph()
					if after > before {
						t.Errorf("seed %d: %v costs %v, and\n%v without saturation %v", seed, is, after, was, before)
					} else if after < before {
						cheaper[w]++
					}
				}
			})
		}
	})
	sum := 0
	for _, n := range cheaper {
		sum += n
	}
	if t.Logf("%d of %d got cheaper", sum, runs); !t.Failed() && sum < runs/20 {
		t.Error("too few")
	}
}

// TestSaturateGraphs: the graphs by which the speed of others is known, and the expressions that people
// type, never cost more than without saturation.
func TestSaturateGraphs(t *testing.T) {
	opts := make(map[string]*optdb.Optimizer)
	opt := func(query string) *optdb.Optimizer {
		if opts[query] == nil {
			opts[query] = passtest.Optimizer(t, query)
		}
		return opts[query]
	}
	compare := func(name, query string, inputs, out []*fgraph.Variable) {
		t.Helper()
		after, is := costOptimized(t, opt(query+" +saturate"), inputs, out)
		before, was := costOptimized(t, opt(query), inputs, out)
		if after > before {
			t.Errorf("%s: %v costs %v, and\n%v without saturation %v", name, is, after, was, before)
		}
	}
	for _, c := range graphCases() {
		if c.size <= longtest.Of(20, 50) {
			g := c.graph(c.size)
			compare(fmt.Sprint(c.name, " ", c.size), c.query, g.Inputs, g.Outputs)
		}
	}
	for i, e := range readExpressions(t) {
		if !longtest.Enabled() && i%40 > 0 {
			continue
		}
		if s, out := parseExpression(t, expressionVars[i%4].vars, e.text); out != nil {
			compare(e.text, "+fast_run", s.Inputs(), out)
		}
	}
}

// BenchmarkSaturate measures what saturation gains on the graphs, and on the expressions that people type,
// and what it takes. "of-cost" is the cost with saturation as a part of that without, "of-time" the
// time of the optimizer relative to that without.
func BenchmarkSaturate(b *testing.B) {
	type problem struct{ inputs, outputs []*fgraph.Variable }
	measure := func(b *testing.B, query string, list ...problem) {
		opts := [2]*optdb.Optimizer{passtest.Optimizer(b, query), passtest.Optimizer(b, query+" +saturate")}
		var costs, applies [2]float64
		best := [2]time.Duration{1 << 62, 1 << 62}
		cheaper := 0
		for range b.N {
			var spent [2]time.Duration
			costs, applies, cheaper = [2]float64{}, [2]float64{}, 0
			for _, p := range list {
				var own [2]float64
				for i, opt := range opts {
					g, err := tensor.NewGraph(p.inputs, p.outputs)
					if err != nil {
						b.Fatal(err)
					}
					start := time.Now()
					if err := opt.Rewrite(b.Context(), g, nil); err != nil {
						b.Fatal(err)
					}
					spent[i] += time.Since(start)
					own[i] = costOf(g)
					costs[i] += own[i]
					applies[i] += float64(g.NumApplies())
				}
				if own[1] < own[0] {
					cheaper++
				}
			}
			for i := range best {
				best[i] = min(best[i], spent[i])
			}
		}
		b.ReportMetric(applies[0], "left")
		b.ReportMetric(applies[1], "left-saturated")
		b.ReportMetric(costs[1]/costs[0], "of-cost")
		b.ReportMetric(float64(cheaper), "cheaper")
		b.ReportMetric(best[0].Seconds()*1e3, "ms")
		b.ReportMetric(best[1].Seconds()*1e3, "ms-saturated")
		b.ReportMetric(best[1].Seconds()/best[0].Seconds(), "of-time")
	}
	for _, c := range graphCases() {
		b.Run(fmt.Sprintf("%s/%d", c.name, c.size), func(b *testing.B) {
			g := c.graph(c.size)
			measure(b, c.query, problem{g.Inputs, g.Outputs})
		})
	}
	for _, vars := range expressionVars {
		b.Run("expressions/"+vars.name, func(b *testing.B) {
			var list []problem
			for _, e := range readExpressions(b) {
				if s, out := parseExpression(b, vars.vars, e.text); out != nil {
					list = append(list, problem{s.Inputs(), out})
				}
			}
			b.ReportMetric(float64(len(list)), "expressions")
			measure(b, "+fast_run", list...)
		})
	}
}
