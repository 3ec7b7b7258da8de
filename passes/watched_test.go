package passes_test

import (
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/tensortest"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
)

// watched is what was observed of a run of the standard passes.
type watched struct {
	told, asked map[string]int // by pass: changes that were traced, and that Allow was asked about
	record      *profile.Record
	commits     int
}

// watch optimizes a graph within a budget.
func watch(t *testing.T, opt *optdb.Optimizer, g *fgraph.FunctionGraph, budget int) watched {
	t.Helper()
	w := watched{told: make(map[string]int), asked: make(map[string]int)}
	allow := rewrite.Budget(budget)
	ctx := rewrite.WithOptions(t.Context(), rewrite.Options{
		Trace: func(e rewrite.Event) {
			if e.Err == nil {
				w.told[e.Pass]++
			}
		},
		Allow: func(why fgraph.Reason) bool {
			w.asked[why.Pass]++
			return allow(why)
		},
	})
	rec := profile.New(opt.Name(), opt.Class())
	commits := g.Commits()
	if err := opt.Rewrite(ctx, g, rec); err != nil {
		t.Fatal(err)
	}
	rec.End()
	w.record, w.commits = rec.Record(), g.Commits()-commits
	return w
}

// TestWatchedTensorPasses: on random expressions every change by every pass is traced, asked about
// and counted exactly once, and a budget of n permits n changes.
func TestWatchedTensorPasses(t *testing.T) {
	opt, err := passes.Default().Build(optdb.Include("fast_run"))
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for seed := range uint64(60) {
		build := func() *fgraph.FunctionGraph {
			gen := tensortest.NewGenerator(seed)
			gen.Grow(25)
			inputs, _ := gen.Inputs()
			g, err := tensor.NewGraph(inputs, gen.Outputs(2))
			if err != nil {
				t.Fatal(err)
			}
			return g
		}
		all := watch(t, opt, build(), 1<<30)
		total := 0
		for _, n := range all.told {
			total += n
		}
		if total != all.commits || all.record.Changed != total {
			t.Errorf("seed %d: %d changes, %d told, %d counted", seed, all.commits, total, all.record.Changed)
		}
		for _, r := range all.record.All() {
			if len(r.Children) > 0 || r.Class == profile.ClassSequence {
				continue
			}
			seen[r.Name] = seen[r.Name] || r.Changed > 0
			// Cleanup passes run many times under one name.
			if n := sumChanged(all.record, r.Name); n != all.told[r.Name] || all.asked[r.Name] < n {
				t.Errorf("seed %d, %s: %d counted, %d told, %d asked about", seed, r.Name, n, all.told[r.Name], all.asked[r.Name])
			}
		}
		for _, budget := range []int{0, 1, total / 2} {
			g := build()
			before := g.String()
			w := watch(t, opt, g, budget)
			if w.commits != min(budget, total) || budget == 0 && g.String() != before {
				t.Errorf("seed %d, budget %d: %d changes\n%s\n%s", seed, budget, w.commits, before, g)
			}
		}
	}
	for _, name := range []string{"merge1", "composite_elemwise_fusion", "inplace_elemwise_optimizer"} {
		if !seen[name] {
			t.Errorf("%s has changed nothing, so that it was not tested", name)
		}
	}
}

func sumChanged(r *profile.Record, name string) int {
	n := 0
	for _, c := range r.All() {
		if c.Name == name {
			n += c.Changed
		}
	}
	return n
}
