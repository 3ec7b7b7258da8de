package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/passtest"
)

// models is the folder of full-size networks.
const models = "../../nnet3/testdata/models"

// calibrated returns a full-size network with random parameters and calibrated batch
// normalization, and a request on it.
func calibrated(t *testing.T, name string, seed uint64) (*nnet3.Nnet, *computation.Request) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(models, "kaldi-fullsize.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]struct{ Config, Request json.RawMessage }
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	var config string
	if err := json.Unmarshal(all[name].Config, &config); err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(filepath.Join(models, config))
	if err != nil {
		t.Fatal(err)
	}
	// Before training, the parameters of the last layer are zero.
	random := strings.NewReplacer("param-stddev=0.0", "", "bias-stddev=0.0", "", "param-stddev=0", "").Replace(string(lines))
	nn, err := nnet3.ParseConfig(strings.NewReader(random), config, seed)
	if err != nil {
		t.Fatal(err)
	}
	req, err := computation.ReadRequestJSON(strings.NewReader(string(all[name].Request)), computation.NewNetworkInfo(nn, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := pipeline.Calibrate(context.Background(), nn, req, 7); err != nil {
		t.Fatal(err)
	}
	return nn, req
}

// scores returns the first output of a request on random inputs.
func scores(t *testing.T, nn *nnet3.Nnet, req *computation.Request, query string, seed uint64) kernel.Matrix {
	t.Helper()
	return computed(t, optimized(t, nn, req, query), nn, req, seed)
}

// optimized returns the computation for a request.
func optimized(t *testing.T, nn *nnet3.Nnet, req *computation.Request, query string) *computation.Computation {
	t.Helper()
	plan, err := pipeline.Build(t.Context(), nn, req, pipeline.Options{Optimizer: passtest.Optimizer(t, query)})
	if err != nil {
		t.Fatal(err)
	}
	return plan.Optimized
}

// computed returns the first output of a computation on random inputs.
func computed(t *testing.T, c *computation.Computation, nn *nnet3.Nnet, req *computation.Request, seed uint64) kernel.Matrix {
	t.Helper()
	in, err := pipeline.RandomValues(nn, req, seed)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pipeline.Run(t.Context(), c, nn, req, in)
	if err != nil {
		t.Fatal(err)
	}
	return out.Outputs[0].Matrix
}

// An agreement is how two outputs agree.
type agreement struct {
	norm   float64 // of the difference, relative
	inner  float64 // the same without the mean of each row
	rows   int
	best   int // rows with the same best class
	clear  int // rows whose best classes differ by more than 0.2 standard deviations
	same   int // of these, those with the same best class
	margin float64
}

func (a agreement) String() string {
	return fmt.Sprintf("error %.2f %% of the norm, %.2f %% without means; best class %d of %d, clear %d of %d, largest margin of another %.2f sd", 100*a.norm, 100*a.inner, a.best, a.rows, a.same, a.clear, a.margin)
}

func agree(got, want kernel.Matrix) (a agreement) {
	var diff, norm, innerDiff, innerNorm float64
	for i := range want.Rows {
		g, w := kernel.Row(got, i), kernel.Row(want, i)
		d := make([]float64, len(w))
		v := make([]float64, len(w))
		for j := range w {
			d[j], v[j] = float64(g[j])-float64(w[j]), float64(w[j])
		}
		dm, ds := moments(d)
		vm, vs := moments(v)
		n := float64(len(w))
		innerDiff, innerNorm = innerDiff+ds*n, innerNorm+vs*n
		diff, norm = diff+(ds+dm*dm)*n, norm+(vs+vm*vm)*n
		first := argmax(w)
		rest := slices.Clone(w)
		rest[first] = float32(math.Inf(-1))
		margin := float64(w[first]-rest[argmax(rest)]) / math.Sqrt(vs)
		a.rows++
		same := argmax(g) == first
		if same {
			a.best++
		} else {
			a.margin = max(a.margin, margin)
		}
		if margin > 0.2 {
			a.clear++
			if same {
				a.same++
			}
		}
	}
	a.norm, a.inner = math.Sqrt(diff/norm), math.Sqrt(innerDiff/innerNorm)
	return a
}

func moments(v []float64) (mean, variance float64) {
	for _, x := range v {
		mean += x
	}
	mean /= float64(len(v))
	for _, x := range v {
		variance += (x - mean) * (x - mean)
	}
	return mean, variance / float64(len(v))
}

func argmax(v []float32) int {
	best := 0
	for i, x := range v {
		if x > v[best] {
			best = i
		}
	}
	return best
}

// TestQuantizedNetworks: the outputs of full-size networks with integers are near those in float32,
// in 8 bits with the same best class in 93 of 100 clear rows of each, and the error that a limit
// permits holds for other inputs, too.
func TestQuantizedNetworks(t *testing.T) {
	longtest.Only(t)
	for _, name := range []string{"tdnnf_1k", "tdnnf_swbd", "cnn_tdnnf", "lstmp", "xvector"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testQuantizedNetwork(t, name)
		})
	}
}

func testQuantizedNetwork(t *testing.T, name string) {
	nn, req := calibrated(t, name, 1)
	float := optimized(t, nn, req, "+fast_run")
	var floats []kernel.Matrix // by seed
	for seed := range uint64(4) {
		floats = append(floats, computed(t, float, nn, req, seed))
	}
	compare := func(query string) (list []agreement) {
		c := optimized(t, nn, req, "+fast_run "+query)
		pipeline.Prepare(c, nn)
		for seed, want := range floats {
			a := agree(computed(t, c, nn, req, uint64(seed)), want)
			t.Logf("%s, %s: %v", name, query, a)
			list = append(list, a)
		}
		return list
	}
	eight, clear, same := compare("+int8"), 0, 0
	for _, a := range eight {
		clear, same = clear+a.clear, same+a.same
	}
	t.Logf("%s, +int8: best class %d of %d clear rows", name, same, clear)
	if float64(same) < 0.93*float64(clear) {
		t.Errorf("%s, +int8: the best class is the same in %d of %d clear rows", name, same, clear)
	}
	for _, a := range compare("+int16") {
		if a.norm > 0.02 || a.same < a.clear {
			t.Errorf("%s, +int16: %v", name, a)
		}
	}
	for seed, a := range compare("+int8 +int16") {
		if a.inner > eight[seed].inner {
			t.Errorf("%s: 16 bits for some products make the error larger: %v", name, a)
		}
	}
	for _, most := range []float64{0.05, 0.01} {
		for _, a := range compare(fmt.Sprintf("+int8 -bound_quantization_error limit_quantization_error{error=%g}", most)) {
			if a.inner > 1.3*most {
				t.Errorf("%s: the error is %.3f, with a limit of %g", name, a.inner, most)
			}
		}
	}
}

// TestBoundPrecisions: which products the bound of the error gives 16 bits is the same for chunks of all
// shapes, and more for a lower bound.
func TestBoundPrecisions(t *testing.T) {
	var config strings.Builder
	config.WriteString("input-node name=input dim=40\ninput-node name=ivector dim=20\ncomponent name=a0 type=NaturalGradientAffineComponent input-dim=100 output-dim=64\n" +
		"component-node name=a0 component=a0 input=Append(Offset(input, -1), input, ReplaceIndex(ivector, t, 0))\n")
	for i := 1; i <= 6; i++ {
		fmt.Fprintf(&config, "component name=r%d type=RectifiedLinearComponent dim=64\ncomponent-node name=r%[1]d component=r%[1]d input=a%d\n"+
			"component name=a%[1]d type=TdnnComponent input-dim=64 output-dim=64 time-offsets=-3,0\ncomponent-node name=a%[1]d component=a%[1]d input=r%[1]d\n", i, i-1)
	}
	config.WriteString("output-node name=output input=a6\n")
	nn, err := nnet3.ParseConfig(strings.NewReader(config.String()), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	raised := -1
	for _, most := range []float64{0.5, 0.01, 0.006, 1e-6} {
		opt, err := passes.Default().Build(optdb.Include("fast_run", "int8").Set("bound_quantization_error", "error", fmt.Sprint(most)))
		if err != nil {
			t.Fatal(err)
		}
		var first map[component.Component]kernel.Precision
		for _, chunk := range []pipeline.Chunk{{Frames: 30}, {Frames: 3, Sequences: 4}, {Frames: 60, Subsampling: 3}} {
			req, err := pipeline.NewRequest(nn, chunk)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := pipeline.Build(context.Background(), nn, req, pipeline.Options{Optimizer: opt})
			if err != nil {
				t.Fatal(err)
			}
			precisions, count := map[component.Component]kernel.Precision{}, 0
			for _, c := range plan.Optimized.Derived {
				if p, ok := c.(*component.Product); ok && p.Precision() != kernel.Float32 {
					precisions[p.Base()] = p.Precision()
				}
			}
			for _, p := range precisions {
				if p == kernel.Int16 {
					count++
				}
			}
			if first == nil {
				if count < raised {
					t.Errorf("error=%g: %d products in 16 bits, with more error %d", most, count, raised)
				}
				t.Logf("error=%g: %d of %d products in 16 bits", most, count, len(precisions))
				first, raised = precisions, count
			}
			if !maps.Equal(precisions, first) {
				t.Errorf("error=%g, %+v: other precisions than in the first chunk", most, chunk)
			}
		}
		if all := len(first); most == 0.5 && raised > 0 || most == 1e-6 && raised < all {
			t.Errorf("error=%g: %d of %d products in 16 bits", most, raised, all)
		}
	}
}

// A probe is a quantized product that returns what it gives in float32, and adds up the squares of
// its errors and of the estimates, over all its runs.
type probe struct {
	*component.Product
	float            *component.Product
	errors, estimate float64
}

func (p *probe) Propagate(w *component.Workspace, pass component.ForwardPass, in, out kernel.Matrix) (component.Memo, error) {
	y := kernel.Clone(out)
	if _, err := p.Product.Propagate(w, pass, in, y); err != nil {
		return nil, err
	}
	if _, err := p.float.Propagate(w, pass, in, out); err != nil {
		return nil, err
	}
	sum := 0.0
	for i := range out.Rows {
		for j, v := range kernel.Row(out, i) {
			d := float64(kernel.Row(y, i)[j]) - float64(v)
			sum += d * d
		}
	}
	estimate, ok := p.QuantizationError(pass.Pre, in, out.Rows)
	if !ok {
		return nil, errors.New("no estimate")
	}
	p.errors += sum
	p.estimate += estimate * estimate * float64(out.Rows*out.Cols)
	return nil, nil
}

// TestQuantizedProductsOfNetworks: in every product of the full-size networks the error is at most
// 1.1 times its estimate.
func TestQuantizedProductsOfNetworks(t *testing.T) {
	longtest.Only(t)
	for _, name := range []string{"tdnnf_1k", "tdnnf_swbd", "cnn_tdnnf", "lstmp", "xvector"} {
		nn, req := calibrated(t, name, 1)
		for _, tag := range []string{"int8", "int16"} {
			// Without fusion nothing is done to the results of products.
			opt, err := passes.Default().Build(optdb.Include("fast_run", tag).Excluding("fusion"))
			if err != nil {
				t.Fatal(err)
			}
			plan, err := pipeline.Build(context.Background(), nn, req, pipeline.Options{Optimizer: opt})
			if err != nil {
				t.Fatal(err)
			}
			var probes []*probe
			for i, c := range plan.Optimized.Derived {
				if q, ok := c.(*component.Product); ok && q.Precision() != kernel.Float32 {
					float, _ := q.Quantized(kernel.Float32)
					q.Prepare()
					probes = append(probes, &probe{Product: q, float: float})
					plan.Optimized.Derived[i] = probes[len(probes)-1]
				}
			}
			in, err := pipeline.RandomValues(nn, req, 4)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := pipeline.Run(context.Background(), plan.Optimized, nn, req, in); err != nil {
				t.Fatal(err)
			}
			worst := 0.0
			for _, p := range probes {
				worst = max(worst, math.Sqrt(p.errors/p.estimate))
			}
			t.Logf("%s, %s: of %d products the largest error is %.3f times its estimate", name, tag, len(probes), worst)
			if !(worst > 0.5 && worst <= 1.1) {
				t.Errorf("%s, %s: an error is %.3f times its estimate", name, tag, worst)
			}
		}
	}
}

// The debug mode accepts quantized products, and still compares everything else.
func TestDebugQuantized(t *testing.T) {
	nn, err := nnet3.ParseConfig(strings.NewReader(`
input-node name=input dim=40
component name=a type=NaturalGradientAffineComponent input-dim=40 output-dim=48
component-node name=a component=a input=input
component name=relu type=RectifiedLinearComponent dim=48
component-node name=relu component=relu input=a
component name=t type=TdnnComponent input-dim=48 output-dim=32 time-offsets=-3,0
component-node name=t component=t input=relu
output-node name=output input=t`), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 6})
	if err != nil {
		t.Fatal(err)
	}
	q, _ := optdb.Mode(optdb.ModeDebug)
	opt, err := passes.Default().Build(q.Including("int8"))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pipeline.Build(context.Background(), nn, req, pipeline.Options{Optimizer: opt})
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Optimized.Derived) == 0 || !strings.Contains(plan.Optimized.Derived[0].Type(), "int8") {
		t.Error("no product is quantized")
	}
}

// The error of a network with dropout in test mode is measured: nothing is random there.
func TestLimitWithDropout(t *testing.T) {
	nn, err := nnet3.ParseConfig(strings.NewReader(`
input-node name=input dim=40
component name=a type=NaturalGradientAffineComponent input-dim=40 output-dim=48
component-node name=a component=a input=input
component name=mask type=DropoutMaskComponent output-dim=48 dropout-proportion=0.2
component-node name=mask component=mask input=a
component name=product type=ElementwiseProductComponent input-dim=96 output-dim=48
component-node name=product component=product input=Append(a, mask)
output-node name=output input=product`), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 6})
	if err != nil {
		t.Fatal(err)
	}
	const query = "+fast_run +int8 -bound_quantization_error limit_quantization_error{error=1e-4}"
	opt, err := passes.Default().Build(optdb.Include("fast_run", "int8").Excluding("bound_quantization_error").Set("limit_quantization_error", "error", "1e-4"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pipeline.Build(context.Background(), nn, req, pipeline.Options{Optimizer: opt}); err == nil {
		t.Error("the error of random dropout is measured")
	}
	nn.SetTestMode(true)
	got, want := scores(t, nn, req, query, 1), scores(t, nn, req, "+fast_run", 1)
	if a := agree(got, want); a.inner > 2e-4 {
		t.Errorf("%v, with a limit of 1e-4", a)
	}
}

// TestLimitOfFewRows: a limit holds for other inputs, also if the request asks for a single row.
func TestLimitOfFewRows(t *testing.T) {
	const most = 0.005
	for seed := range uint64(8) {
		nn, err := nnet3.ParseConfig(strings.NewReader(`
input-node name=input dim=40
component name=a type=AffineComponent input-dim=40 output-dim=64
component-node name=a component=a input=input
component name=relu type=RectifiedLinearComponent dim=64
component-node name=relu component=relu input=a
component name=b type=AffineComponent input-dim=64 output-dim=48
component-node name=b component=b input=relu
component name=c type=AffineComponent input-dim=48 output-dim=2
component-node name=c component=c input=b
output-node name=output input=c`), "config", seed)
		if err != nil {
			t.Fatal(err)
		}
		nn.SetTestMode(true)
		req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 1})
		if err != nil {
			t.Fatal(err)
		}
		got, want := kernel.New(0, 2), kernel.New(0, 2)
		for query, all := range map[string]*kernel.Matrix{"+fast_run": &want, fmt.Sprintf("+fast_run +int8 -bound_quantization_error limit_quantization_error{error=%g}", most): &got} {
			c := optimized(t, nn, req, query)
			for input := range uint64(60) {
				row := computed(t, c, nn, req, input)
				all.Data, all.Rows = append(all.Data, row.Data[:2]...), all.Rows+1
			}
		}
		if a := agree(got, want); a.inner > 1.3*most {
			t.Errorf("seed %d: the error is %.4f, with a limit of %g", seed, a.inner, most)
		}
	}
}
