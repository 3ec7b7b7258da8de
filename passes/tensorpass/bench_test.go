package tensorpass_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/passes/tensortest"
	"github.com/nnopt/nnopt/tensor"
)

// A graphCase is a graph, and the figures of the best of Theano and two versions of PyTensor.
type graphCase struct {
	name  string
	size  int
	graph func(size int) tensortest.Graph
	query string
	// The fewest applies that are left, and the seconds of the quickest; 0 if not measured.
	applies int
	seconds float64
}

const noInplace, noFusion = "+fast_run -inplace", "+fast_run -fusion"

// graphCases lists the graphs at the size at which the others were measured, and at ten times that.
func graphCases() []graphCase {
	deep, large, mlp, together := tensortest.DeepSmall, tensortest.LargeFuse, tensortest.MLP, tensortest.MLPTogether
	diamond, chain := tensortest.Diamond, tensortest.InplaceChain
	return []graphCase{
		{"deep_small", 20, deep, "+fast_run", 40, 0.024},
		{"deep_small", 50, deep, "+fast_run", 100, 0.055},
		{"deep_small", 100, deep, "+fast_run", 200, 0.111},
		{"deep_small", 1000, deep, "+fast_run", 2000, 0},
		{"large_fuse", 25, large, "+fast_run", 234, 0.561},
		{"large_fuse", 50, large, "+fast_run", 0, 1.194},
		{"large_fuse", 250, large, "+fast_run", 0, 0},
		{"large_fuse", 500, large, "+fast_run", 0, 0},
		{"mlp", 5, mlp, "+fast_run", 44, 0.048},
		{"mlp", 20, mlp, "+fast_run", 179, 0.238},
		{"mlp", 50, mlp, "+fast_run", 449, 0},
		{"mlp", 200, mlp, "+fast_run", 1799, 0},
		{"mlp_together", 20, together, "+fast_run", 179, 0},
		{"mlp_together", 200, together, "+fast_run", 1799, 0},
		{"mlp_together", 2000, together, "+fast_run", 17999, 0},
		{"addchain", 200, tensortest.AddChain, "+fast_run", 1, 0.020},
		{"addchain", 2000, tensortest.AddChain, "+fast_run", 1, 0},
		{"explog", 50, tensortest.ExpLog, "+fast_run", 1, 0.075},
		{"explog", 500, tensortest.ExpLog, "+fast_run", 0, 0},
		{"dupes", 200, tensortest.Dupes, "+fast_run", 200, 0.586},
		{"dupes", 2000, tensortest.Dupes, "+fast_run", 2000, 0},
		{"diamond", 16, diamond, noInplace, 1, 0.012},
		{"diamond", 64, diamond, noInplace, 0, 0.234},
		{"diamond", 640, diamond, noInplace, 0, 0},
		{"inplace_chain", 50, chain, noFusion, 0, 0.077},
		{"inplace_chain", 100, chain, noFusion, 0, 0.256},
		{"inplace_chain", 200, chain, noFusion, 600, 0.585},
		{"inplace_chain", 2000, chain, noFusion, 6000, 0},
	}
}

func newFunctionGraph(t testing.TB, graph tensortest.Graph) *fgraph.FunctionGraph {
	t.Helper()
	g, err := tensor.NewGraph(graph.Inputs, graph.Outputs)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// BenchmarkGraphs measures the optimization of the graphs. "times" is the speed relative to the
// quickest of the others.
func BenchmarkGraphs(b *testing.B) {
	for _, c := range graphCases() {
		b.Run(fmt.Sprintf("%s/%d", c.name, c.size), func(b *testing.B) {
			graph := c.graph(c.size)
			opt := passtest.Optimizer(b, c.query)
			best := time.Duration(1 << 62)
			var before, after int
			for range b.N {
				b.StopTimer()
				g := newFunctionGraph(b, graph)
				before = g.NumApplies()
				runtime.GC() // what building has left is not on the bill
				start := time.Now()
				b.StartTimer()
				if err := opt.Rewrite(b.Context(), g, nil); err != nil {
					b.Fatal(err)
				}
				best = min(best, time.Since(start))
				after = g.NumApplies()
			}
			b.ReportMetric(float64(before), "before")
			b.ReportMetric(float64(after), "after")
			b.ReportMetric(best.Seconds()*1e6, "best-us")
			b.ReportMetric(best.Seconds()*1e9/float64(before), "best-ns/apply")
			if c.seconds > 0 {
				b.ReportMetric(c.seconds/best.Seconds(), "times")
			}
		})
	}
}

// TestGraphsShrink: no graph has more applies left than the better PyTensor leaves, and the graphs
// are sound.
func TestGraphsShrink(t *testing.T) {
	for _, c := range graphCases() {
		if c.applies == 0 || c.size > 200 || c.name == "mlp" && c.size > 50 {
			continue
		}
		g := newFunctionGraph(t, c.graph(c.size))
		if err := passtest.Optimizer(t, c.query).Rewrite(t.Context(), g, nil); err != nil {
			t.Fatal(err)
		}
		if err := g.Check(); err != nil {
			t.Errorf("%s %d: %v", c.name, c.size, err)
		}
		if g.NumApplies() > c.applies {
			t.Errorf("%s %d: %d applies are left, want %d at most", c.name, c.size, g.NumApplies(), c.applies)
		}
	}
}
