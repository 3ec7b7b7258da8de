package refcase_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/exec/refcase"
	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/passes/passtest"
)

// TestThreads: a case has the same bits for any number of threads, even if they divide whatever can be
// divided.
func TestThreads(t *testing.T) {
	divide.Always.Store(true)
	defer divide.Always.Store(false)
	sizes := []int{3, 2, 5, 8}[:longtest.Of(1, 4)]
	found := 0
	roots := []string{recipes, "../../nnet3/testdata/random"}
	more, _ := filepath.Glob("../../../shared/golden/*/*/case.json") // where they are
	for _, m := range more {
		if root := filepath.Dir(filepath.Dir(m)); !slices.Contains(roots, root) {
			roots = append(roots, root)
		}
	}
	for _, root := range roots {
		dirs, err := refcase.Find(os.DirFS(root), ".")
		if err != nil {
			t.Fatal(err)
		}
		for i, dir := range dirs {
			if i%longtest.Of(7, 1) != 0 {
				continue
			}
			c, err := refcase.Load(os.DirFS(filepath.Join(root, dir)), dir)
			if err != nil {
				t.Fatal(err)
			}
			found++
			for _, query := range []string{"none", "+fast_run", "+fast_run +int8", "+fast_run +int16"} {
				plan, err := pipeline.Build(t.Context(), c.Net, c.Request, pipeline.Options{Optimizer: passtest.Optimizer(t, query)})
				if err != nil {
					t.Fatal(err)
				}
				run := func(threads int) *pipeline.Results {
					in := pipeline.Values{Inputs: c.Inputs, OutputDerivs: c.OutputDerivs}
					res, err := pipeline.RunWith(t.Context(), plan.Optimized, c.Net, c.Request, in, exec.ComputerOptions{Threads: threads})
					if err != nil {
						t.Fatal(err)
					}
					return res
				}
				want := run(1)
				for _, n := range sizes {
					sameResults(t, fmt.Sprintf("%s, %s, %d threads", dir, query, n), run(n), want)
				}
			}
		}
	}
	if found < 3 {
		t.Errorf("only %d cases", found)
	}
}

// sameResults reports an error unless results have the same bits.
func sameResults(t *testing.T, what string, got, want *pipeline.Results) {
	t.Helper()
	for i, m := range append(want.Outputs, want.InputDerivs...) {
		if !sameMatrix(append(got.Outputs, got.InputDerivs...)[i].Matrix, m.Matrix) {
			t.Errorf("%s: other bits of %s", what, m.Name)
		}
	}
	if want.Gradient == nil {
		return
	}
	for i, c := range want.Gradient.Components {
		if c, ok := c.(component.UpdatableComponent); ok {
			a, b := component.Vectorize(c, nil), component.Vectorize(got.Gradient.Components[i].(component.UpdatableComponent), nil)
			if !sameFloats(a, b) {
				t.Errorf("%s: other bits of the gradient of %s", what, want.Gradient.ComponentNames[i])
			}
		}
	}
}

func sameMatrix(a, b kernel.Matrix) bool {
	if a.Rows != b.Rows || a.Cols != b.Cols {
		return false
	}
	for i := range a.Rows {
		if !sameFloats(kernel.Row(a, i), kernel.Row(b, i)) {
			return false
		}
	}
	return true
}

func sameFloats(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}
