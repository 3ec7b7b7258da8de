package exec_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// chainOf nests an expression, in which % is what is inside.
func chainOf(step, inside string, times int) string {
	for range times {
		inside = strings.ReplaceAll(step, "%", inside)
	}
	return inside
}

// sideBySide are expressions with two long chains of small ops.
var sideBySide = []struct {
	name, expr string
	regions    int
}{
	{"two chains", chainOf("tanh(dot(%, A))", "X", 12) + " + " + chainOf("tanh(dot(%, B))", "Y", 12), 1},
	// As in two recurrent layers of two directions: what the directions make of an element is joined
	// long before their ends.
	{"twice", chainOf("tanh(dot(%, A))", "(P + Q)", 12) + " + " + chainOf("tanh(dot(%, B))", "(P + Q)", 12), 2},
	{"one chain", chainOf("tanh(dot(%, A))", "X", 12), 0},
	{"short chains", "tanh(X[0]*A[0]) + tanh(Y[0]*B[0])", 0},
}

func parseSides(t *testing.T, text string) (inputs, outputs []*fgraph.Variable) {
	t.Helper()
	s := expr.NewScope()
	if err := s.Declare("X Y A B: float32[50, 50]"); err != nil {
		t.Fatal(err)
	}
	p, q := chainOf("tanh(dot(%, A))", "X", 12), chainOf("tanh(dot(%, B))", "Y", 12)
	out, err := s.Parse(strings.NewReplacer("P", p, "Q", q).Replace(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Inputs(), out
}

// TestRegions: independent ops are computed side by side where that is worth it, with the bits of one
// thread, in at most twice its memory, with results in the memory of others or not.
func TestRegions(t *testing.T) {
	args := make([]*array.Array, 4)
	for i := range args {
		args[i] = uniform(array.Float32, -0.3, 0.3, 50, 50)
	}
	before := runtime.NumGoroutine()
	for _, c := range sideBySide {
		for _, opt := range []exec.Optimizer{nil, fastRun(t)} {
			inputs, outputs := parseSides(t, c.expr)
			var want *array.Array
			var alone int64
			for _, threads := range []int{1, 2, 3} {
				f, err := exec.NewFunction(t.Context(), inputs, outputs, exec.FunctionOptions{Optimizer: opt, Threads: threads})
				if err != nil {
					t.Fatal(err)
				}
				// Fusion and merging leave more, or less, to choose from.
				if n := exec.Regions(f); threads == 1 && n != 0 || threads > 1 && opt == nil && n != c.regions {
					t.Errorf("%s, %d threads: %d regions, want %d", c.name, threads, n, c.regions)
				}
				r := f.NewRunner()
				for _, always := range []bool{false, true} {
					divide.Always.Store(always)
					for range 20 {
						got, err := r.Run(t.Context(), args...)
						if err != nil {
							t.Fatal(err)
						}
						if want == nil {
							want = got[0].Clone()
						}
						if !array.Equal(got[0], want) {
							t.Fatalf("%s, %d threads: %v, not %v", c.name, threads, got[0], want)
						}
					}
					divide.Always.Store(false)
				}
				// Each lane has what one thread has at a time.
				if alone == 0 {
					alone = r.Peak()
				} else if r.Peak() > 2*alone {
					t.Errorf("%s, %d threads: %d bytes at the peak, one thread %d", c.name, threads, r.Peak(), alone)
				}
			}
		}
	}
	settled(t, before)
}

// TestRegionFails: of faults in both lanes, the one that one thread finds is returned, and a lane that
// fails or is cancelled does not leave the other one behind.
func TestRegionFails(t *testing.T) {
	divide.Always.Store(true)
	defer divide.Always.Store(false)
	before := runtime.NumGoroutine()
	side := func(x string) string { return chainOf("tanh(dot(%, A))", "inv("+x+")", 6) }
	s := expr.NewScope()
	if err := s.Declare("X Y A: float64[20, 20]"); err != nil {
		t.Fatal(err)
	}
	out, err := s.Parse(side("X") + " + " + side("Y"))
	if err != nil {
		t.Fatal(err)
	}
	zero, good := array.New(array.Float64, 20, 20), uniform(array.Float64, 1, 2, 20, 20)
	for _, args := range [][]*array.Array{{zero, zero, good}, {zero, good, good}, {good, zero, good}, {good, good, good}} {
		var want string
		for _, threads := range []int{1, 2} {
			f, err := exec.NewFunction(t.Context(), s.Inputs(), out, exec.FunctionOptions{Threads: threads})
			if err != nil {
				t.Fatal(err)
			}
			if threads == 2 && exec.Regions(f) == 0 {
				t.Fatal("no region")
			}
			r := f.NewRunner()
			for range 30 {
				text := "none"
				if _, err := r.Run(t.Context(), args...); err != nil {
					text = err.Error()
				}
				if threads == 1 {
					want = text
				} else if text != want {
					t.Fatalf("the fault is %s, of one thread %s", text, want)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := r.Run(ctx, args...); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
	}
	settled(t, before)
}

// BenchmarkRegions compares two threads with one on recurrent layers of two directions, in turns.
func BenchmarkRegions(b *testing.B) {
	for _, cells := range []int{16, 64, 128} {
		b.Run(map[int]string{16: "16", 64: "64", 128: "128"}[cells], func(b *testing.B) {
			x := fgraph.NewInput(tensor.NewType(array.Float32, 1, cells), "x")
			step := func(h, w *fgraph.Variable) *fgraph.Variable { return tensor.Tanh(tensor.Add(tensor.Dot(h, w), x)) }
			h := [2]*fgraph.Variable{x, x}
			for k := range h {
				w := tensor.Constant(uniform(array.Float32, -0.1, 0.1+0.01*float64(k), cells, cells))
				for range 40 {
					h[k] = step(h[k], w)
				}
			}
			benchmarkTwo(b, []*fgraph.Variable{x}, []*fgraph.Variable{tensor.Add(h[0], h[1])}, []*array.Array{uniform(array.Float32, -1, 1, 1, cells)})
		})
	}
}
