package pattern_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// BenchmarkSubWalk walks over a chain of op1(op2(op1(op2(…)))) with a rule that
// replaces each pair with one apply.
func BenchmarkSubWalk(b *testing.B) {
	rule, err := pattern.Compile(toys{}, "(op1 (op2 a)) => (op3 a)")
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{1e3, 1e4, 1e5, 1e6} {
		b.Run(fmt.Sprintf("%.0e", float64(n)), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				x := fgraph.NewInput(float, "x")
				v := x
				for range n / 2 {
					v = fgraph.NewApply(toy("op1"), []*fgraph.Variable{fgraph.NewApply(toy("op2"), []*fgraph.Variable{v}, float).Out()}, float).Out()
				}
				g, err := fgraph.New([]*fgraph.Variable{x}, []*fgraph.Variable{v})
				if err != nil {
					b.Fatal(err)
				}
				runtime.GC() // do not count garbage of the setup
				b.StartTimer()
				if err := rewrite.Run(b.Context(), rewrite.In2Out("walk", rule), g, nil); err != nil {
					b.Fatal(err)
				}
				if g.NumApplies() != n/2 {
					b.Fatal(g.NumApplies())
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/apply")
		})
	}
}
