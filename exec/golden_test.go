package exec_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/exec/refcase"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/computation/computationtest"
)

// TestGolden compiles and runs the reference cases and compares with Kaldi: outputs, derivatives of
// inputs, gradients.
func TestGolden(t *testing.T) {
	for _, dir := range goldenDirs(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			ref := loadCase(t, dir)
			c, err := compile.Compile(ref.Net, ref.Request, compile.Options{})
			if err != nil {
				t.Fatal(err)
			}
			runCase(t, ref, c)
		})
	}
}

// TestGoldenKaldi runs Kaldi's computations, compiled and optimized, unless they need precomputed
// indexes, which the files don't have.
func TestGoldenKaldi(t *testing.T) {
	for _, dir := range goldenDirs(t) {
		for _, name := range []string{"computation.json", "computation_optimized.json"} {
			t.Run(filepath.Base(dir)+"/"+strings.TrimSuffix(name, ".json"), func(t *testing.T) {
				t.Parallel()
				data, err := os.ReadFile(filepath.Join(dir, name))
				if errors.Is(err, fs.ErrNotExist) {
					t.Skip("the case comes without Kaldi's computations")
				}
				if err != nil {
					t.Fatal(err)
				}
				c, _, err := computationtest.ReadJSON(bytes.NewReader(data))
				if err != nil {
					t.Fatal(err)
				}
				if len(c.PrecomputedIndexes) > 1 {
					t.Skip("needs precomputed indexes")
				}
				ref := loadCase(t, dir)
				c.NeedModelDerivative = ref.Request.NeedModelDerivative
				runCase(t, ref, c)
			})
		}
	}
}

// goldenDirs returns the folders of the reference cases: those of the project, and those in the
// folder of the environment variable NNOPT_GOLDEN, if it is set.
func goldenDirs(t *testing.T) []string {
	t.Helper()
	roots := []string{"../nnet3/testdata"}
	if all := os.Getenv("NNOPT_GOLDEN"); all != "" {
		roots = []string{all}
	}
	var dirs []string
	for _, root := range roots {
		found, err := filepath.Glob(filepath.Join(root, "*/*/case.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			dirs = append(dirs, filepath.Dir(f))
		}
	}
	if len(dirs) == 0 {
		t.Fatal("no reference cases, not even in testdata")
	}
	return dirs
}

func loadCase(t *testing.T, dir string) *refcase.Case {
	t.Helper()
	ref, err := refcase.LoadDir(dir)
	if errors.Is(err, nnet3.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// gradientOf returns a network that accumulates the gradient of nn.
func gradientOf(nn *nnet3.Nnet) *nnet3.Nnet {
	g := nn.Copy()
	for i, c := range g.Components {
		g.Components[i] = component.NewGradient(c)
	}
	return g
}

// runCase runs a computation for a case, twice with one computer, on poisoned memory, and compares
// both times.
func runCase(t *testing.T, ref *refcase.Case, c *computation.Computation) {
	t.Helper()
	opts := exec.ComputerOptions{Poison: true}
	if ref.Backward {
		opts.ToUpdate = gradientOf(ref.Net)
	}
	comp := newComputer(t, c, ref.Net, opts)
	output, derivative, gradient := ref.Bounds()
	for range 2 {
		comp.Reset()
		for _, in := range ref.Inputs {
			if err := comp.AcceptInput(in.Name, in.Matrix); err != nil {
				t.Fatal(err)
			}
		}
		if err := comp.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		for _, want := range ref.Outputs {
			compareOutput(t, comp, want.Name, want.Matrix, output)
		}
		if !ref.Backward {
			continue
		}
		for _, in := range ref.OutputDerivs {
			if err := comp.AcceptInput(in.Name, in.Matrix); err != nil {
				t.Fatal(err)
			}
		}
		if err := comp.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		for _, want := range ref.InputDerivs {
			compareOutput(t, comp, want.Name, want.Matrix, derivative)
		}
	}
	if ref.Gradient != nil {
		compareGradients(t, ref, opts.ToUpdate, 2, gradient)
	}
}

func compareOutput(t *testing.T, comp *exec.Computer, name string, want kernel.Matrix, tolerance float64) {
	t.Helper()
	got, err := comp.Output(name)
	if err != nil {
		t.Fatal(err)
	}
	agree(t, name, got, want, tolerance)
}

// compareGradients compares gradients that were accumulated over some runs.
func compareGradients(t *testing.T, ref *refcase.Case, got *nnet3.Nnet, runs int, tolerance float64) {
	t.Helper()
	for i, w := range ref.Gradient.Components {
		want, ok := w.(component.UpdatableComponent)
		if !ok {
			continue
		}
		a := component.Vectorize(got.Components[i].(component.UpdatableComponent), nil)
		for k := range a {
			a[k] /= float32(runs)
		}
		agree(t, "gradient of "+ref.Gradient.ComponentNames[i], row(a), row(component.Vectorize(want, nil)), tolerance)
	}
}

func row(v []float32) kernel.Matrix {
	return kernel.Matrix{Rows: 1, Cols: len(v), Stride: len(v), Data: v}
}

func agree(t *testing.T, what string, got, kaldi kernel.Matrix, tolerance float64) {
	t.Helper()
	d, err := pipeline.Compare(got, kaldi)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if !d.Agrees(tolerance) {
		t.Errorf("%s: norm of difference %g, of Kaldi's %g", what, d.Norm, d.Wanted)
	}
}
