package pipeline_test

import (
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

// TestThreads: random networks compute the same bits with any number of threads, even if they divide
// whatever can be divided.
func TestThreads(t *testing.T) {
	divide.Always.Store(true)
	defer divide.Always.Store(false)
	db := passes.Default()
	opts := []*optdb.Optimizer{build(t, db, fastRun), build(t, db, fastRun.Including("int8")), build(t, db, fastRun.Including("int16"))}
	for i := range uint64(longtest.Of(24, 2000)) {
		seed := *firstSeed + i
		c, err := New(seed)
		if err != nil {
			t.Fatal(err)
		}
		in, err := pipeline.RandomValues(c.Net, c.Request, seed)
		if err != nil {
			t.Fatal(err)
		}
		plan := planned(t, c, opts[i%3], c.Request)
		run := func(threads int) map[string][]float32 {
			res, err := pipeline.RunWith(t.Context(), plan.Optimized, c.Net, c.Request, in, exec.ComputerOptions{Threads: threads})
			if err != nil {
				t.Fatal(err)
			}
			values := make(map[string][]float32)
			for _, m := range append(res.Outputs, res.InputDerivs...) {
				for k := range m.Matrix.Rows {
					values[m.Name] = append(values[m.Name], kernel.Row(m.Matrix, k)...)
				}
			}
			if res.Gradient != nil {
				for k, g := range res.Gradient.Components {
					if g, ok := g.(component.UpdatableComponent); ok {
						values["gradient of "+res.Gradient.ComponentNames[k]] = component.Vectorize(g, nil)
					}
				}
			}
			return values
		}
		want := run(1)
		for _, n := range []int{2, 3, 5, 8}[i%2*2:][:longtest.Of(1, 2)] {
			for name, v := range run(n) {
				if len(v) != len(want[name]) || equalBits(v, want[name]) != len(v) {
					t.Fatalf("seed %d, %s, %d threads: other bits of %s\n%s", seed, c.Family, n, name, c.Config)
				}
			}
		}
	}
}
