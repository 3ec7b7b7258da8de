package refcase_test

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/blas/blas32"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/exec/refcase"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/kernel/kerneltest"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/passes/passtest"
)

var update = flag.Bool("update", false, "rewrite the checksums in testdata")

// TestKernelSets runs the cases of the project, TestRowsAlone and TestSameBits with every set of
// kernels.
func TestKernelSets(t *testing.T) {
	kerneltest.EachSet(t, "TestCases", "TestRowsAlone", "TestSameBits")
}

// TestSameBits: outputs, derivatives and gradients of the cases of the project have the bits of the
// checksums in testdata on every processor.
func TestSameBits(t *testing.T) {
	if !kernel.HasDGemm() {
		t.Skip("products are gonum's, whose bits are others")
	}
	var sums kerneltest.Checksums
	for _, root := range []string{recipes, "../../nnet3/testdata/random"} {
		addBits(t, &sums, root, func(dir, query, part string) string { return dir + "," + query + "," + part })
	}
	sums.Golden(t, "testdata/bits.txt", "reference cases", *update)
}

// TestSameBitsOfAll is TestSameBits for all reference cases, where they are. A checksum is of a case.
func TestSameBitsOfAll(t *testing.T) {
	if all == "" || !kernel.HasDGemm() {
		t.Skip("NNOPT_GOLDEN names no more reference cases, or products are gonum's")
	}
	var sums kerneltest.Checksums
	for _, root := range []string{"recipes", "random"} {
		addBits(t, &sums, filepath.Join(all, root), func(dir, query, _ string) string { return root + "/" + dir + "," + query })
	}
	sums.Golden(t, "testdata/bitsofall.txt", "reference cases", *update)
}

// addBits computes the cases below a folder, as they are and optimized, and adds their numbers to the
// checksums that name names.
func addBits(t *testing.T, sums *kerneltest.Checksums, root string, name func(dir, query, part string) string) {
	t.Helper()
	dirs, err := refcase.Find(os.DirFS(root), ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		c, err := refcase.LoadDir(filepath.Join(root, dir))
		if errors.Is(err, nnet3.ErrUnsupported) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, query := range []string{"none", "+fast_run"} {
			plan, err := pipeline.Build(t.Context(), c.Net, c.Request, pipeline.Options{Optimizer: passtest.Optimizer(t, query)})
			if err != nil {
				t.Fatal(err)
			}
			res, err := pipeline.Run(t.Context(), plan.Optimized, c.Net, c.Request, pipeline.Values{Inputs: c.Inputs, OutputDerivs: c.OutputDerivs})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range slices.Concat(res.Outputs, res.InputDerivs) {
				for i := range m.Matrix.Rows {
					sums.Float32s(name(dir, query, m.Name), kernel.Row(m.Matrix, i)...)
				}
			}
			if res.Gradient == nil {
				continue
			}
			for _, g := range res.Gradient.Components {
				if g, ok := g.(component.UpdatableComponent); ok {
					sums.Float32s(name(dir, query, "gradient"), component.Vectorize(g, nil)...)
				}
			}
		}
	}
}

// TestRowsAlone: a sequence has the same bits alone and among others, and so has a single time.
func TestRowsAlone(t *testing.T) {
	compared := 0
	for name, nn := range scoringNetworks(t) {
		nn.SetTestMode(true)
		req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 12, Subsampling: 3, ExtraLeft: 9, ExtraRight: 3, Sequences: 3})
		if err != nil {
			t.Fatal(err)
		}
		in, err := pipeline.RandomValues(nn, req, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, query := range []string{"none", "+fast_run"} {
			all := outputs(t, nn, req, in, query)
			for n := range int32(3) {
				one, values := only(req, in, func(i index.Index) bool { return i.N == n }, func(i index.Index) bool { return i.N == n })
				same(t, fmt.Sprint(name, ", ", query, ", sequence ", n), all, req, one, outputs(t, nn, one, values, query))
			}
			one, values := only(req, in, func(i index.Index) bool { return i.N == 1 }, func(i index.Index) bool { return i.N == 1 && i.T == 6 })
			same(t, fmt.Sprint(name, ", ", query, ", time 6"), all, req, one, outputs(t, nn, one, values, query))
			compared++
		}
	}
	if compared < 8 {
		t.Errorf("only %d comparisons", compared)
	}
}

// wideVector is a network whose i-vector is large enough to be multiplied once per sequence.
const wideVector = `
input-node name=input dim=20
input-node name=ivector dim=100
component name=a type=NaturalGradientAffineComponent input-dim=160 output-dim=200
component-node name=a component=a input=Append(Offset(input, -1), input, Offset(input, 1), ReplaceIndex(ivector, t, 0))
component name=r type=RectifiedLinearComponent dim=200
component-node name=r component=r input=a
component name=b type=NaturalGradientAffineComponent input-dim=200 output-dim=30
component-node name=b component=b input=r
output-node name=output input=b
`

// scoringNetworks are the networks of recipes without training, and one more.
func scoringNetworks(t *testing.T) map[string]*nnet3.Nnet {
	t.Helper()
	wide, err := nnet3.ParseConfig(strings.NewReader(wideVector), "wide vector", 1)
	if err != nil {
		t.Fatal(err)
	}
	nets := map[string]*nnet3.Nnet{"wide vector": wide}
	dirs, err := refcase.Find(os.DirFS(recipes), ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if !strings.HasSuffix(dir, "_infer") {
			continue
		}
		if nets[dir], _, err = pipeline.Load(filepath.Join(recipes, dir, "model.raw"), 0); err != nil {
			t.Fatal(err)
		}
	}
	return nets
}

// only returns the part of a request with the rows that in and out select, and its values.
func only(req *computation.Request, values pipeline.Values, in, out func(index.Index) bool) (*computation.Request, pipeline.Values) {
	part, chosen := *req, pipeline.Values{}
	part.Inputs, part.Outputs = slices.Clone(req.Inputs), slices.Clone(req.Outputs)
	for k := range part.Inputs {
		from := values.Inputs[k]
		part.Inputs[k].Indexes = nil
		to := kernel.New(0, from.Matrix.Cols)
		for i, x := range req.Inputs[k].Indexes {
			if in(x) {
				part.Inputs[k].Indexes = append(part.Inputs[k].Indexes, x)
				to.Data = append(to.Data, kernel.Row(from.Matrix, i)...)
				to.Rows++
			}
		}
		chosen.Inputs = append(chosen.Inputs, pipeline.Named{Name: from.Name, Matrix: to})
	}
	for k := range part.Outputs {
		part.Outputs[k].Indexes = slices.DeleteFunc(slices.Clone(req.Outputs[k].Indexes), func(x index.Index) bool { return !out(x) })
	}
	return &part, chosen
}

// outputs computes the first output of a request with packed parameters.
func outputs(t *testing.T, nn *nnet3.Nnet, req *computation.Request, in pipeline.Values, query string) kernel.Matrix {
	t.Helper()
	plan, err := pipeline.Build(t.Context(), nn, req, pipeline.Options{Optimizer: passtest.Optimizer(t, query)})
	if err != nil {
		t.Fatal(err)
	}
	pipeline.Prepare(plan.Optimized, nn)
	res, err := pipeline.Run(t.Context(), plan.Optimized, nn, req, in)
	if err != nil {
		t.Fatal(err)
	}
	return res.Outputs[0].Matrix
}

// same compares the bits of the rows of got, the output of part, with those of all, the output of
// req.
func same(t *testing.T, what string, all kernel.Matrix, req, part *computation.Request, got kernel.Matrix) {
	t.Helper()
	for i, x := range part.Outputs[0].Indexes {
		want := kernel.Row(all, slices.Index(req.Outputs[0].Indexes, x))
		for j, v := range kernel.Row(got, i) {
			if math.Float32bits(v) != math.Float32bits(want[j]) {
				t.Errorf("%s: (n=%d, t=%d), column %d: %g alone, %g among others", what, x.N, x.T, j, v, want[j])
				return
			}
		}
	}
}

// TestBits: with sums in the order of OpenBLAS, outputs and gradients have Kaldi's bits. In the
// training of the x-vector, a difference in the last bit of anything changes the third digit of its
// gradients.
func TestBits(t *testing.T) {
	defer blas32.Use(blas32.Implementation())
	blas32.Use(kernel.OpenBLAS())
	for _, name := range []string{"tdnnf_infer", "xvector_infer", "xvector_train", "tdnn_relu_batchnorm_infer"} {
		c, err := refcase.Load(os.DirFS(filepath.Join(recipes, name)), name)
		if err != nil {
			t.Fatal(err)
		}
		r := c.Run(t.Context(), "none", passtest.Optimizer(t, "none"))
		if !r.OK || r.MaxRelDiff == nil || *r.MaxRelDiff != 0 {
			t.Errorf("%s: %+v", name, r)
		}
		if r.MaxRelDiffBackward != nil && *r.MaxRelDiffBackward != 0 {
			t.Errorf("%s: gradients differ by %g", name, *r.MaxRelDiffBackward)
		}
	}
}
