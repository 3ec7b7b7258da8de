package view_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/tensortest"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tool/internal/view"
)

// large returns a function that makes a graph that the optimizer has much to do with.
func large(tb testing.TB, n int) func() *fgraph.FunctionGraph {
	return func() *fgraph.FunctionGraph {
		e := tensortest.LargeFuse(n)
		g, err := tensor.NewGraph(e.Inputs, e.Outputs)
		if err != nil {
			tb.Fatal(err)
		}
		return g
	}
}

// optimize optimizes a graph, with a profile.
func optimize(tb testing.TB, ctx context.Context, opt *optdb.Optimizer, g *fgraph.FunctionGraph) *profile.Record {
	rec := profile.New("", "")
	if err := opt.Rewrite(ctx, g, rec); err != nil {
		tb.Fatal(err)
	}
	rec.End()
	return rec.Record()
}

// TestRecordingIsCheap: a run that is recorded allocates at most twice as much, and leaves nothing
// behind in the graph; one that is not recorded allocates nothing for it.
func TestRecordingIsCheap(t *testing.T) {
	opt := build(t, "+fast_run")
	makeGraph := large(t, 60)
	least := func(watch func(context.Context) context.Context) uint64 {
		least := uint64(math.MaxUint64)
		for range 4 { // the first run makes what is made once
			g, ctx := makeGraph(), watch(t.Context())
			least = min(least, alloctest.Bytes(func() { optimize(t, ctx, opt, g) }))
			for _, f := range g.Features() {
				if strings.Contains(fmt.Sprintf("%T", f), "view.") {
					t.Errorf("%T is still attached", f)
				}
			}
		}
		return least
	}
	off := least(func(ctx context.Context) context.Context { return ctx })
	on := least(func(ctx context.Context) context.Context { return view.NewRecorder().Watch(ctx) })
	if on > 2*off {
		t.Errorf("%d bytes without, %d with recording", off, on)
	}
	g := large(t, 2)()
	nothing := rewrite.NewSequence("nothing")
	run := func(ctx context.Context) float64 {
		return testing.AllocsPerRun(100, func() {
			if err := rewrite.Run(ctx, nothing, g, nil); err != nil {
				t.Fatal(err)
			}
		})
	}
	plain, without := run(t.Context()), run(rewrite.WithOptions(t.Context(), rewrite.Options{}))
	if plain != without {
		t.Errorf("%v allocations in a run, %v with options that record nothing", plain, without)
	}
}

// BenchmarkRecording measures the optimizer with and without recording, in turns, and what it
// costs to make data and a page of that.
func BenchmarkRecording(b *testing.B) {
	opt := build(b, "+fast_run")
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("large_fuse/%d", n), func(b *testing.B) {
			makeGraph := large(b, n)
			best := [3]time.Duration{}
			least := func(i int, do func()) {
				start := time.Now()
				do()
				if d := time.Since(start); best[i] == 0 || d < best[i] {
					best[i] = d
				}
			}
			for b.Loop() {
				g := makeGraph()
				least(0, func() { optimize(b, b.Context(), opt, g) })
				g, r := makeGraph(), view.NewRecorder()
				var record *profile.Record
				least(1, func() { record = optimize(b, r.Watch(b.Context()), opt, g) })
				least(2, func() {
					if err := view.WritePage(io.Discard, r.Recording(opt, record, nil)); err != nil {
						b.Fatal(err)
					}
				})
			}
			b.ReportMetric(best[0].Seconds()*1e3, "ms-off")
			b.ReportMetric(best[1].Seconds()*1e3, "ms-on")
			b.ReportMetric(best[2].Seconds()*1e3, "ms-page")
			b.ReportMetric(best[1].Seconds()/best[0].Seconds(), "on/off")
		})
	}
}
