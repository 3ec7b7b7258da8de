package pipeline_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/internal/export"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor/array"
)

// parse makes a network of config lines.
func parse(t *testing.T, config string) *nnet3.Nnet {
	t.Helper()
	nn, err := nnet3.ParseConfig(strings.NewReader(config), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	return nn
}

// compareModel exports a request, and compares what the model computes for each number of units with the
// engine. It returns the model.
func compareModel(t *testing.T, nn *nnet3.Nnet, req *computation.Request, query string) *onnx.Model {
	t.Helper()
	opt := passtest.Optimizer(t, query)
	m, err := pipeline.Export(t.Context(), nn, req, opt)
	if err == nil {
		err = onnx.Check(m)
	}
	if err != nil {
		t.Fatal(err)
	}
	unit, err := export.UnitOf(req)
	if err != nil {
		t.Fatal(err)
	}
	in, err := pipeline.RandomValues(nn, req, 3)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pipeline.Build(t.Context(), nn, req, pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := pipeline.Run(t.Context(), plan.Optimized, nn, req, pipeline.Values{Inputs: in.Inputs})
	if err != nil {
		t.Fatal(err)
	}
	inputs := make(map[string]*array.Array)
	for _, x := range in.Inputs {
		inputs[x.Name] = batched(unit, x)
	}
	f, err := session.Model(t.Context(), m, session.Options{}, inputs)
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Call(t.Context(), inputs)
	if err != nil {
		t.Fatal(err)
	}
	for _, y := range want.Outputs {
		a := got[y.Name]
		if a.Dim(0) != unit.Sequences {
			t.Fatalf("%s: %s has the sizes %v for %d sequences", query, y.Name, a.Shape(), unit.Sequences)
		}
		ours := unbatched(unit, y.Name, a)
		for i := range y.Matrix.Rows {
			for j, w := range kernel.Row(y.Matrix, i) {
				if d := kernel.Row(ours, i)[j] - w; d > 1e-5 || d < -1e-5 {
					t.Fatalf("%s: %s is\n%v, want\n%v", query, y.Name, ours.Data, y.Matrix.Data)
				}
			}
		}
	}
	return m
}

// grid returns a request for some outputs at times 0 to frames, of some sequences.
func grid(frames, sequences, context int, outputs ...string) *computation.Request {
	req := &computation.Request{Inputs: []computation.IoSpecification{pipeline.Grid("input", sequences, -context, frames+context, 1)}}
	for _, name := range outputs {
		req.Outputs = append(req.Outputs, pipeline.Grid(name, sequences, 0, frames, 1))
	}
	return req
}

const mixed = `
input-node name=input dim=3
component name=c type=ConstantComponent output-dim=3 output-stddev=1
component-node name=c component=c input=c
component name=a type=AffineComponent input-dim=6 output-dim=4
component-node name=a component=a input=Append(input, c)
component name=r type=RectifiedLinearComponent dim=4
component-node name=r component=r input=a
dim-range-node name=half input-node=r dim-offset=2 dim=2
output-node name=same input=input
output-node name=constant input=c
output-node name=first input=r
output-node name=second input=r
output-node name=switch input=Sum(Switch(Offset(input, -1), input, Offset(input, 1)), Sum(Const(0.5, 3), IfDefined(Offset(input, 100))))
output-node name=parts input=Append(half, Failover(Offset(half, 50), Scale(-2, half)), Const(7, 1), Round(half, 2), ReplaceIndex(half, t, 0))
`

// TestExportedModel: outputs that are inputs, constants, or other outputs, and all that descriptors say, for
// any number of sequences.
func TestExportedModel(t *testing.T) {
	nn := parse(t, mixed)
	for _, query := range []string{"none", "+fast_run"} {
		for _, sequences := range []int{1, 3} {
			m := compareModel(t, nn, grid(6, sequences, 1, "same", "constant", "first", "second", "switch", "parts"), query)
			if n := len(m.Graph.Initializers); n > 40 {
				t.Errorf("%d constants: are equal ones made once?", n)
			}
		}
	}
}

// TestExportedPieces: rows that alternate are picked from all that there are, not put together one by one.
func TestExportedPieces(t *testing.T) {
	nn := parse(t, `
input-node name=input dim=2
component name=a type=AffineComponent input-dim=2 output-dim=2
component-node name=a component=a input=input
component name=b type=TanhComponent dim=2
component-node name=b component=b input=Switch(a, input)
output-node name=output input=b
`)
	if m := compareModel(t, nn, grid(40, 2, 0, "output"), "none"); len(m.Graph.Nodes) > 30 {
		t.Errorf("there are %d nodes", len(m.Graph.Nodes))
	}
}

// TestExportedUnit: sequences with the same rows are one unit each, in any order; others are a unit together.
func TestExportedUnit(t *testing.T) {
	rows := func(list ...index.Index) []index.Index { return list }
	request := func(in, out []index.Index) *computation.Request {
		return &computation.Request{Inputs: []computation.IoSpecification{{Name: "input", Indexes: in, HasDeriv: true}},
			Outputs: []computation.IoSpecification{{Name: "output", Indexes: out, HasDeriv: true}}, NeedModelDerivative: true}
	}
	u, err := export.UnitOf(request(rows(index.Index{N: 2, T: 1}, index.Index{N: 5, T: 0}, index.Index{N: 2, T: 0}, index.Index{N: 5, T: 1}), rows(index.Index{N: 5}, index.Index{N: 2})))
	if err != nil {
		t.Fatal(err)
	}
	if u.Sequences != 2 || u.Request.NeedDerivatives() || u.Request.Outputs[0].HasDeriv ||
		!slices.Equal(u.Request.Inputs[0].Indexes, rows(index.Index{T: 1}, index.Index{T: 0})) ||
		!slices.EqualFunc(u.Rows("input"), [][]int32{{0, 2}, {3, 1}}, slices.Equal) || !slices.EqualFunc(u.Rows("output"), [][]int32{{1}, {0}}, slices.Equal) {
		t.Errorf("the unit is %+v with rows %v and %v", u, u.Rows("input"), u.Rows("output"))
	}
	for name, req := range map[string]*computation.Request{
		"other times":     request(rows(index.Index{N: 0, T: 1}, index.Index{N: 1, T: 0}), rows(index.Index{N: 0}, index.Index{N: 1})),
		"other numbers":   request(rows(index.Index{N: 0}, index.Index{N: 1}, index.Index{N: 1, T: 1}), rows(index.Index{N: 0}, index.Index{N: 1})),
		"other sequences": request(rows(index.Index{N: 0}, index.Index{N: 1}), rows(index.Index{N: 0})),
	} {
		if u, err := export.UnitOf(req); err != nil || u.Sequences != 1 || len(u.Request.Inputs[0].Indexes) != len(req.Inputs[0].Indexes) || u.Request.Inputs[0].Indexes[1] != req.Inputs[0].Indexes[1] {
			t.Errorf("%s: %+v, %v", name, u, err)
		}
	}
	if _, err := export.UnitOf(new(computation.Request)); !errors.Is(err, computation.ErrRequest) {
		t.Errorf("an empty request: %v", err)
	}
	if _, err := export.UnitOf(request(nil, nil)); !errors.Is(err, computation.ErrRequest) {
		t.Errorf("a request without rows: %v", err)
	}
	// Sequences of different lengths make a model all the same.
	req := grid(3, 1, 0, "same", "first")
	for i := range req.Inputs {
		req.Inputs[i].Indexes = append(req.Inputs[i].Indexes, index.Index{N: 1})
	}
	for i := range req.Outputs {
		req.Outputs[i].Indexes = append(req.Outputs[i].Indexes, index.Index{N: 1})
	}
	compareModel(t, parse(t, mixed), req, "+fast_run")
}

// TestExportedFaults: everything that can't be said is named, with node and component.
func TestExportedFaults(t *testing.T) {
	nn := parse(t, `
input-node name=input dim=2
component name=d type=DropoutComponent dim=2 dropout-proportion=0.5
component-node name=d1 component=d input=input
component-node name=d2 component=d input=d1
component name=m type=CompositeComponent max-rows-process=8 num-components=2 component1='type=AffineComponent input-dim=2 output-dim=2' component2='type=BatchNormComponent dim=2'
component-node name=m component=m input=d2
output-node name=output input=m
`)
	_, err := pipeline.Export(t.Context(), nn, grid(3, 1, 0, "output"), nil)
	var faults export.Faults
	if !errors.As(err, &faults) || len(faults) != 2 {
		t.Fatalf("the error is %v", err)
	}
	for i, want := range []string{
		"node d1, d2: component d (DropoutComponent) draws random numbers, since it is not in test mode",
		"node m: component m (CompositeComponent) normalizes 8 rows at a time, since its BatchNormComponent is not in test mode",
	} {
		if got := faults[i].String(); got != want {
			t.Errorf("fault %d is %q, want %q", i, got, want)
		}
	}
	nn.SetTestMode(true)
	compareModel(t, nn, grid(3, 2, 0, "output"), "+fast_run")
	// What a gradient needs is not there to be said, either.
	if _, err := pipeline.Export(t.Context(), nn, &computation.Request{}, nil); !errors.Is(err, computation.ErrRequest) {
		t.Errorf("no request: %v", err)
	}
}
