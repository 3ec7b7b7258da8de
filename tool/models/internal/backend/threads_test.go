package backend_test

import (
	"os"
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool/models/internal/backend"
)

// suite is where Debian's libonnx-testdata has ONNX's own tests.
const suite = "/usr/include/onnx/backend/test/data/"

// TestThreads: models have the same bits for any number of threads, even if they divide whatever can be
// divided.
func TestThreads(t *testing.T) {
	if _, err := os.Stat(suite); err != nil {
		t.Skip("there are no tests of ONNX")
	}
	divide.Always.Store(true)
	defer divide.Always.Store(false)
	opt := passtest.Optimizer(t, "+fast_run")
	compared := 0
	for _, kind := range []string{"node", "simple", "pytorch-converted", "pytorch-operator"} {
		dirs, err := backend.Find(suite + kind)
		if err != nil {
			t.Fatal(err)
		}
		for i, dir := range dirs {
			if i%longtest.Of(5, 1) != 0 {
				continue
			}
			c, err := backend.Load(dir)
			if err != nil {
				continue // another test counts those
			}
			for _, set := range c.Sets {
				// Some operators draw random numbers, which is an error for others to find.
				run := func(threads int) (map[string]*array.Array, error) {
					o := session.Options{Options: lower.Options{LeaveOut: true}, Dir: c.Dir, Threads: threads}
					if i%2 == 0 {
						o.Optimizer = opt
					}
					f, err := session.Model(t.Context(), c.Model, o, set.Inputs)
					if err != nil {
						return nil, err
					}
					return f.Call(t.Context(), set.Inputs)
				}
				want, err := run(1)
				if err != nil {
					continue
				}
				for _, n := range []int{3, 2, 5, 8}[:longtest.Of(1, 4)] {
					got, err := run(n)
					if err != nil {
						t.Errorf("%s, %d threads: %v", dir, n, err)
					}
					for name, v := range got {
						if !array.Equal(v, want[name]) {
							t.Errorf("%s, %d threads: other bits of %s", dir, n, name)
						}
					}
					compared++
				}
			}
		}
	}
	if compared < 100 {
		t.Errorf("only %d comparisons", compared)
	}
}
