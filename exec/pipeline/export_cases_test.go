package pipeline_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/exec/internal/export"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/exec/refcase"
	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor/array"
)

// write is a folder for the models of all cases, each with its inputs and outputs, in the form of ONNX's
// own tests.
var write = flag.String("write", "", "write the exported cases into this folder")

// all is the folder of all reference cases, if there is one.
var all = os.Getenv("NNOPT_GOLDEN")

// chaotic are networks that magnify roundings so much that Kaldi's result is further from the exact
// one than the tolerance: with an order of sums other than Kaldi's, agreement is chance.
var chaotic = map[string]float64{"tdnnf_noiv_infer": 3e-4} // the exact result is 1.9e-4 away from Kaldi's

// TestExportedRecipes exports the inference cases, and compares what the models compute with Kaldi's numbers.
func TestExportedRecipes(t *testing.T) {
	roots := []string{"../../nnet3/testdata/recipes", "../../nnet3/testdata/random"}
	if all != "" {
		roots = []string{filepath.Join(all, "recipes"), filepath.Join(all, "random")}
	}
	ran := 0
	for _, root := range roots {
		dirs, err := refcase.Find(os.DirFS(root), ".")
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range dirs {
			c, err := refcase.LoadDir(filepath.Join(root, dir))
			if err != nil {
				t.Fatal(err)
			}
			if c.Backward {
				continue
			}
			ran++
			for _, query := range []string{"none", "+fast_run", "none"}[ran%2:][:longtest.Of(1, 2)] {
				if err := runCase(t.Context(), c, query, passtest.Optimizer(t, query)); err != nil {
					t.Errorf("%s, %s: %v", dir, query, err)
				}
			}
		}
	}
	if ran < 8 {
		t.Errorf("only %d cases ran", ran)
	}
	t.Logf("%d cases ran", ran)
}

// runCase exports a case and compares.
func runCase(ctx context.Context, c *refcase.Case, query string, opt *optdb.Optimizer) error {
	unit, err := export.UnitOf(c.Request)
	if err != nil {
		return err
	}
	m, err := pipeline.Export(ctx, c.Net, c.Request, opt)
	if err == nil {
		err = onnx.Check(m)
	}
	if err != nil {
		return err
	}
	inputs := make(map[string]*array.Array)
	for _, in := range c.Inputs {
		inputs[in.Name] = batched(unit, in)
	}
	f, err := session.Model(ctx, m, session.Options{}, inputs)
	if err != nil {
		return err
	}
	outputs, err := f.Call(ctx, inputs)
	if err != nil {
		return err
	}
	if *write != "" && query != "none" {
		if err := writeCase(ctx, filepath.Join(*write, c.Name), m, c, unit); err != nil {
			return err
		}
	}
	tolerance, _, _ := c.Bounds()
	if query == "none" {
		tolerance = max(tolerance, chaotic[c.Name])
	}
	var errs []error
	for _, want := range c.Outputs {
		got := outputs[want.Name]
		if shape := []int{unit.Sequences, want.Matrix.Rows / unit.Sequences, want.Matrix.Cols}; got == nil || !slices.Equal(got.Shape(), shape) {
			return fmt.Errorf("output %s is %v", want.Name, got)
		}
		d, err := pipeline.Compare(unbatched(unit, want.Name, got), want.Matrix)
		if err != nil {
			return err
		}
		if !d.Agrees(tolerance) {
			errs = append(errs, fmt.Errorf("output %s differs by %g", want.Name, d.Relative()))
		}
	}
	return errors.Join(errs...)
}

// batched returns the matrix of an input as a tensor.
func batched(u *export.Unit, m pipeline.Named) *array.Array {
	var data []float32
	rows := u.Rows(m.Name)
	for _, list := range rows {
		for _, r := range list {
			data = append(data, kernel.Row(m.Matrix, int(r))...)
		}
	}
	return array.Of(data, len(rows), len(rows[0]), m.Matrix.Cols)
}

// unbatched is the inverse of batched.
func unbatched(u *export.Unit, name string, a *array.Array) kernel.Matrix {
	data, rows := array.Slice[float32](a.Clone()), u.Rows(name)
	m := kernel.New(len(rows)*len(rows[0]), a.Dim(2))
	for _, list := range rows {
		for _, r := range list {
			copy(kernel.Row(m, int(r)), data)
			data = data[m.Cols:]
		}
	}
	return m
}

// writeCase writes a model with the inputs and Kaldi's outputs.
func writeCase(ctx context.Context, dir string, m *onnx.Model, c *refcase.Case, u *export.Unit) error {
	set := filepath.Join(dir, "test_data_set_0")
	if err := os.MkdirAll(set, 0o777); err != nil {
		return err
	}
	for i, info := range m.Graph.Inputs {
		if err := writeTensor(filepath.Join(set, fmt.Sprintf("input_%d.pb", i)), info.Name, u, c.Inputs); err != nil {
			return err
		}
	}
	for i, info := range m.Graph.Outputs {
		if err := writeTensor(filepath.Join(set, fmt.Sprintf("output_%d.pb", i)), info.Name, u, c.Outputs); err != nil {
			return err
		}
	}
	tolerance, _, _ := c.Bounds()
	if err := os.WriteFile(filepath.Join(dir, "tolerance"), fmt.Appendln(nil, tolerance), 0o666); err != nil {
		return err
	}
	return m.WriteFile(ctx, filepath.Join(dir, "model.onnx"))
}

func writeTensor(file, name string, u *export.Unit, list []pipeline.Named) error {
	i := slices.IndexFunc(list, func(m pipeline.Named) bool { return m.Name == name })
	return writeArray(file, name, batched(u, list[i]))
}

func writeArray(file, name string, a *array.Array) error {
	tensor, err := lower.TensorOf(name, a, onnx.Float)
	if err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(tensor.Write(f), f.Close())
}
