package pipeline_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/profile/profiletest"
)

const config = `
input-node name=ivector dim=3
input-node name=input dim=4
component name=a type=NaturalGradientAffineComponent input-dim=15 output-dim=8
component-node name=a component=a input=Append(Offset(input, -2), input, Offset(input, 1), ReplaceIndex(ivector, t, 0))
component name=a.relu type=RectifiedLinearComponent dim=8
component-node name=a.relu component=a.relu input=a
component name=a.bn type=BatchNormComponent dim=8
component-node name=a.bn component=a.bn input=a.relu
component name=t type=TdnnComponent input-dim=8 output-dim=5 time-offsets=-3,0
component-node name=t component=t input=a.bn
output-node name=output input=t
output-node name=early input=a.bn
`

func smallNetwork(t *testing.T) *nnet3.Nnet {
	t.Helper()
	nn, fromConfig, err := pipeline.LoadFrom(strings.NewReader(config), "net.config", 1)
	if err != nil || !fromConfig {
		t.Fatalf("fromConfig %v, error %v", fromConfig, err)
	}
	return nn
}

func TestNewRequest(t *testing.T) {
	nn := smallNetwork(t)
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 9, Subsampling: 3, ExtraLeft: 2, ExtraRight: 4, Sequences: 2})
	if err != nil {
		t.Fatal(err)
	}
	// The output sees three frames back at layer t, two back and one on at layer a.
	for _, want := range []struct {
		spec        *computation.IoSpecification
		rows        int
		first, last int32
	}{
		{req.Input("ivector"), 2, 0, 0},
		{req.Input("input"), 2 * (7 + 9 + 5), -7, 13},
		{req.Output("output"), 6, 0, 6},
	} {
		rows := want.spec.Indexes
		if len(rows) != want.rows || rows[0].T != want.first || rows[len(rows)-1].T != want.last || rows[len(rows)-1].N != 1 {
			t.Errorf("%s: %d rows, t from %d to %d, n up to %d", want.spec.Name, len(rows), rows[0].T, rows[len(rows)-1].T, rows[len(rows)-1].N)
		}
	}
	if len(req.Outputs) != 1 || req.NeedModelDerivative {
		t.Errorf("outputs %v, gradient %v", req.Outputs, req.NeedModelDerivative)
	}
	req, err = pipeline.NewRequest(nn, pipeline.Chunk{Outputs: []string{"all"}, Derivative: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(req.Outputs) != 2 || !req.Outputs[0].HasDeriv || !req.NeedModelDerivative || len(req.Outputs[1].Indexes) != 150 {
		t.Errorf("request for all outputs with the gradient: %+v", req)
	}
	for _, bad := range []pipeline.Chunk{{Outputs: []string{"outptu"}}, {Frames: -1}, {ExtraLeft: -1}, {Frames: 1 << 20, Sequences: 1 << 20},
		{Frames: math.MaxInt, ExtraLeft: 5}} {
		if _, err := pipeline.NewRequest(nn, bad); !errors.Is(err, computation.ErrRequest) {
			t.Errorf("%+v: error %v", bad, err)
		}
	}
}

// TestLoadSave: both forms hold the same network, and Load recognizes them.
func TestLoadSave(t *testing.T) {
	nn := smallNetwork(t)
	save := func(name string, binary bool) error {
		return fileio.Write(t.Context(), name, func(w io.Writer) error { return pipeline.Save(w, nn, binary) })
	}
	for _, binary := range []bool{true, false} {
		name := filepath.Join(t.TempDir(), "net.raw")
		if err := save(name, binary); err != nil {
			t.Fatal(err)
		}
		again, fromConfig, err := pipeline.Load(name, 0)
		if err != nil || fromConfig {
			t.Fatalf("binary %v: fromConfig %v, error %v", binary, fromConfig, err)
		}
		var a, b bytes.Buffer
		if err := errors.Join(pipeline.Save(&a, nn, false), pipeline.Save(&b, again, false)); err != nil {
			t.Fatal(err)
		}
		if a.String() != b.String() {
			t.Errorf("binary %v: the network has changed", binary)
		}
	}
	if err := save(filepath.Join(t.TempDir(), "no", "such", "folder"), true); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("saving to a folder that is not there: %v", err)
	}
	if _, _, err := pipeline.Load("nowhere", 0); !errors.Is(err, nnet3.ErrRead) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("loading what is not there: %v", err)
	}
	if _, _, err := pipeline.LoadFrom(strings.NewReader("\x1f\x8b\b\x00packed"), "packed", 0); !errors.Is(err, nnet3.ErrRead) || !strings.Contains(err.Error(), "gunzip") {
		t.Errorf("a packed model: %v", err)
	}
	if _, _, err := pipeline.LoadFrom(strings.NewReader("\x00B<Nnet3> \n"), "cut", 0); !errors.Is(err, kaldiio.ErrTruncated) {
		t.Errorf("loading what ends too early: %v", err)
	}
}

// TestCalibrate: batch normalization of the calibration data has mean 0 and deviation 1.
func TestCalibrate(t *testing.T) {
	nn := smallNetwork(t)
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 60, Outputs: []string{"early"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := pipeline.Calibrate(t.Context(), nn, req, 5); err != nil {
		t.Fatal(err)
	}
	bn := nn.Components[nn.ComponentIndex("a.bn")].(component.BatchNorm)
	if !bn.TestMode() {
		t.Error("batch normalization is not in test mode")
	}
	in, err := pipeline.RandomValues(nn, req, 5)
	if err != nil {
		t.Fatal(err)
	}
	out := execute(t, nn, req, in, "none").Outputs[0].Matrix
	for j := range out.Cols {
		var sum, squares float64
		for i := range out.Rows {
			v := float64(kernel.Row(out, i)[j])
			sum, squares = sum+v, squares+v*v
		}
		mean := sum / float64(out.Rows)
		// A rectified column may be zero throughout, or nearly.
		if deviation := math.Sqrt(squares/float64(out.Rows) - mean*mean); math.Abs(mean) > 1e-4 || deviation > 1.001 {
			t.Errorf("column %d: mean %g, deviation %g", j, mean, deviation)
		}
	}
}

// TestDrawZeros: a last layer of zeros gets parameters, the same for the same seed, and others stay.
func TestDrawZeros(t *testing.T) {
	config := `input-node name=input dim=5
component name=a type=NaturalGradientAffineComponent input-dim=5 output-dim=7
component-node name=a component=a input=input
component name=b type=NaturalGradientAffineComponent input-dim=7 output-dim=3 param-stddev=0 bias-stddev=0
component-node name=b component=b input=a
output-node name=output input=b
`
	load := func() *nnet3.Nnet {
		nn, _, err := pipeline.LoadFrom(strings.NewReader(config), "config", 3)
		if err != nil {
			t.Fatal(err)
		}
		return nn
	}
	params := func(nn *nnet3.Nnet, name string) []float32 {
		return component.Vectorize(nn.Components[nn.ComponentIndex(name)].(component.UpdatableComponent), nil)
	}
	plain, nn, again := load(), load(), load()
	pipeline.DrawZeros(nn, 4)
	pipeline.DrawZeros(again, 4)
	b := params(nn, "b")
	if slices.ContainsFunc(params(plain, "b"), func(v float32) bool { return v != 0 }) || slices.Contains(b[:21], 0) || !slices.Equal(b, params(again, "b")) {
		t.Errorf("the last layer: %v", b)
	}
	if !slices.Equal(params(nn, "a"), params(plain, "a")) {
		t.Error("a layer that was not zero has changed")
	}
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 4})
	if err != nil {
		t.Fatal(err)
	}
	in, err := pipeline.RandomValues(nn, req, 5)
	if err != nil {
		t.Fatal(err)
	}
	if out := execute(t, nn, req, in, "none").Outputs[0].Matrix; kernel.MatrixDot(out, out) == 0 {
		t.Error("outputs are still zero")
	}
}

// execute builds and runs a request.
func execute(t *testing.T, nn *nnet3.Nnet, req *computation.Request, in pipeline.Values, query string) *pipeline.Results {
	t.Helper()
	p, err := pipeline.Build(t.Context(), nn, req, pipeline.Options{Optimizer: passtest.Optimizer(t, query), Record: true})
	if err != nil {
		t.Fatal(err)
	}
	if (p.Profile == nil) != (query == "none") || (p.Compiled == p.Optimized) != (query == "none") {
		t.Errorf("%s: profile %v, optimized %v", query, p.Profile != nil, p.Compiled != p.Optimized)
	}
	if p.Profile != nil {
		if err := profiletest.Check(p.Profile); err != nil {
			t.Error(err)
		}
	}
	res, err := pipeline.Run(t.Context(), p.Optimized, nn, req, in)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestBackward: the gradient and the derivative of the input agree with differences for small
// changes, compiled and optimized.
func TestBackward(t *testing.T) {
	nn := smallNetwork(t)
	nn.SetTestMode(true)
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 6, Derivative: true})
	if err != nil {
		t.Fatal(err)
	}
	req.Input("input").HasDeriv = true
	in, err := pipeline.RandomValues(nn, req, 3)
	if err != nil {
		t.Fatal(err)
	}
	// objective is the function whose derivative is the derivative of the output.
	objective := func(in pipeline.Values) float64 {
		out := execute(t, nn, req, in, "none").Outputs[0].Matrix
		var sum float64
		for i := range out.Rows {
			d := kernel.Row(in.OutputDerivs[0].Matrix, i)
			for j, v := range kernel.Row(out, i) {
				sum += float64(v) * float64(d[j])
			}
		}
		return sum
	}
	base := objective(in)
	for _, query := range []string{"none", "+fast_run"} {
		res := execute(t, nn, req, in, query)
		if len(res.InputDerivs) != 1 || res.InputDerivs[0].Name != "input" || res.Gradient == nil {
			t.Fatalf("%s: derivatives %v, gradient %v", query, len(res.InputDerivs), res.Gradient != nil)
		}
		const step = 1e-2
		for _, at := range []int{0, 17, 30} {
			x := slices.IndexFunc(in.Inputs, func(n pipeline.Named) bool { return n.Name == "input" })
			data := in.Inputs[x].Matrix.Data
			saved := data[at]
			data[at] += step
			got, want := (objective(in)-base)/step, float64(res.InputDerivs[0].Matrix.Data[at])
			data[at] = saved
			if math.Abs(got-want) > 0.02*max(1, math.Abs(want)) {
				t.Errorf("%s: derivative of element %d: %g, small changes give %g", query, at, want, got)
			}
		}
		k := nn.ComponentIndex("t")
		weights := nn.Components[k].(component.UpdatableComponent).Params()[0].Values.Data
		gradient := res.Gradient.Components[k].(component.UpdatableComponent).Params()[0].Values.Data
		saved := weights[3]
		weights[3] += step
		got, want := (objective(in)-base)/step, float64(gradient[3])
		weights[3] = saved
		if math.Abs(got-want) > 0.02*max(1, math.Abs(want)) {
			t.Errorf("%s: gradient %g, small changes give %g", query, want, got)
		}
	}
}

// TestPrepare: packing parameters doesn't change results.
func TestPrepare(t *testing.T) {
	nn := smallNetwork(t)
	nn.SetTestMode(true)
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 20})
	if err != nil {
		t.Fatal(err)
	}
	in, err := pipeline.RandomValues(nn, req, 4)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pipeline.Build(t.Context(), nn, req, pipeline.Options{Optimizer: passtest.Optimizer(t, "+fast_run")})
	if err != nil {
		t.Fatal(err)
	}
	var outputs [2][]float32
	for i := range outputs {
		res, err := pipeline.Run(t.Context(), p.Optimized, nn, req, in)
		if err != nil {
			t.Fatal(err)
		}
		outputs[i] = res.Outputs[0].Matrix.Data
		pipeline.Prepare(p.Optimized, nn)
	}
	if len(outputs[0]) != 100 {
		t.Fatalf("%d elements", len(outputs[0]))
	}
	for i, v := range outputs[0] {
		if w := outputs[1][i]; math.Abs(float64(v-w)) > 1e-5*max(1, math.Abs(float64(v))) {
			t.Errorf("element %d: %g, prepared %g", i, v, w)
		}
	}
}
