package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/nnopt/nnopt/exec/internal/export"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/tensor/array"
)

// Products of a model add up in another order. Where batch normalization in training mode has few rows,
// what is left of them may be rounding alone, so each element may also differ by a small number.
const (
	exportTolerance = 1e-4 // of the norm of a difference, relative to that of the values
	exportRounding  = 3e-4 // of an element
)

// TestExport writes random networks as ONNX models, as compiled and under +fast_run, and compares what
// the models compute with the engine.
func TestExport(t *testing.T) {
	fast := build(t, passes.Default(), fastRun)
	compared := 0
	for i := range uint64(cases()) {
		seed := *firstSeed + i
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			c, err := New(seed)
			if err != nil {
				t.Fatal(err)
			}
			if err := pipeline.Calibrate(t.Context(), c.Net, c.Request, seed); err != nil {
				t.Fatal(err)
			}
			c.Net.SetTestMode(c.TestMode)
			in, err := pipeline.RandomValues(c.Net, c.Request, seed)
			if err != nil {
				t.Fatal(err)
			}
			unit, err := export.UnitOf(c.Request)
			if err != nil {
				t.Fatal(err)
			}
			for _, opt := range []*optdb.Optimizer{nil, fast} {
				m, err := pipeline.Export(t.Context(), c.Net, c.Request, opt)
				var faults export.Faults
				if errors.As(err, &faults) && !c.TestMode {
					return // chance, or statistics of a few rows at a time
				}
				if err == nil {
					err = onnx.Check(m)
				}
				if err != nil {
					t.Fatalf("%s: %v\n%s", c.Family, err, c.Config)
				}
				if err := compareExport(t.Context(), c, unit, m, in); err != nil {
					t.Errorf("%s, optimized: %t: %v\n%s", c.Family, opt != nil, err, c.Config)
				}
				compared++
			}
		})
	}
	if compared < cases() {
		t.Errorf("%d models of %d networks were compared", compared, cases())
	}
}

// compareExport runs a model on the inputs, and compares with the computation as compiled.
func compareExport(ctx context.Context, c *Case, unit *export.Unit, m *onnx.Model, in pipeline.Values) error {
	plan, err := pipeline.Build(ctx, c.Net, c.Request, pipeline.Options{})
	if err != nil {
		return err
	}
	want, err := pipeline.Run(ctx, plan.Optimized, c.Net, c.Request, pipeline.Values{Inputs: in.Inputs})
	if err != nil {
		return err
	}
	inputs := make(map[string]*array.Array)
	for _, x := range in.Inputs {
		var data []float32
		rows := unit.Rows(x.Name)
		for _, list := range rows {
			for _, r := range list {
				data = append(data, kernel.Row(x.Matrix, int(r))...)
			}
		}
		inputs[x.Name] = array.Of(data, len(rows), len(rows[0]), x.Matrix.Cols)
	}
	f, err := session.Model(ctx, m, session.Options{}, inputs)
	if err != nil {
		return err
	}
	outputs, err := f.Call(ctx, inputs)
	if err != nil {
		return err
	}
	for _, y := range want.Outputs {
		a := outputs[y.Name].Clone()
		data := array.Slice[float32](a)
		got := kernel.New(y.Matrix.Rows, y.Matrix.Cols)
		if a.Len() != len(got.Data) {
			return fmt.Errorf("output %s has the sizes %v", y.Name, a.Shape())
		}
		for _, list := range unit.Rows(y.Name) {
			for _, r := range list {
				copy(kernel.Row(got, int(r)), data)
				data = data[got.Cols:]
			}
		}
		if d, norm := distance(y.Matrix.Data, got.Data); !(d <= exportTolerance*norm+exportRounding*math.Sqrt(float64(a.Len()))) {
			return fmt.Errorf("output %s differs by %g of %g", y.Name, d, norm)
		}
	}
	return nil
}
