package pattern_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/nnopt/nnopt/rewrite"
)

// BenchmarkRuleWalk walks over 10⁵ applies with 10, 100 and 1,000 rules.
func BenchmarkRuleWalk(b *testing.B) {
	for _, f := range families() {
		for _, n := range []int{10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", f.name, n), func(b *testing.B) {
				w := rewrite.In2Out("walk", f.compileAll(b, n)...)
				for range b.N {
					b.StopTimer()
					g := f.build(b, 1e5)
					size := g.NumApplies()
					runtime.GC() // do not count garbage of the setup
					b.StartTimer()
					if err := rewrite.Run(b.Context(), w, g, nil); err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(size-g.NumApplies()), "gone")
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e5, "ns/apply")
			})
		}
	}
}
