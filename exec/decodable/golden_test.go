package decodable_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"testing"

	"gonum.org/v1/gonum/blas/blas32"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
	"github.com/nnopt/nnopt/passes/passtest"
)

// compute is a folder with models, features, and outputs of Kaldi's nnet3-compute.
const compute = "../../nnet3/testdata/compute/"

// tolerance bounds the distance of a matrix from Kaldi's.
const tolerance = 1e-4

// A goldenRun is a run of nnet3-compute.
type goldenRun struct {
	name, model string
	tables      decodable.TableNames
	opts        decodable.Options
}

func goldenRuns() []goldenRun {
	ivectors := decodable.TableNames{Features: "ark:" + compute + "feats.ark", Ivectors: "ark:" + compute + "ivec.txt"}
	online := decodable.TableNames{Features: "ark:" + compute + "feats.ark", OnlineIvectors: "ark:" + compute + "online_ivec.txt"}
	return []goldenRun{
		{"tdnnf_online", "tdnnf.mdl", online, decodable.Options{FramesPerChunk: 30, FrameSubsampling: 3, OnlineIvectorPeriod: 10}},
		{"tdnnf_ivec_exp", "tdnnf.mdl", ivectors, decodable.Options{FramesPerChunk: 21, FrameSubsampling: 3, ExtraLeftContext: 3, ApplyExp: true}},
		{"lstmp", "lstmp.raw", ivectors, decodable.Options{FramesPerChunk: 20, ExtraLeftContext: 10, ExtraLeftContextInitial: new(0)}},
		{"blstm", "blstm.raw", ivectors, decodable.Options{FramesPerChunk: 20, ExtraLeftContext: 10, ExtraRightContext: 10, ExtraLeftContextInitial: new(0), ExtraRightContextFinal: new(0)}},
	}
}

// TestGolden scores whole utterances like nnet3-compute, with every query and for all sizes of
// batches.
func TestGolden(t *testing.T) {
	for _, g := range goldenRuns() {
		want := readMatrices(t, "ark:"+compute+g.name+".ark")
		for _, query := range []string{"none", "+fast_run"} {
			for _, batch := range []int{0, 1, 4} {
				t.Run(fmt.Sprintf("%s/%s/%d", g.name, query, batch), func(t *testing.T) {
					opts := g.opts
					opts.Optimizer, opts.MinibatchSize, opts.ApplyExp = passtest.Optimizer(t, query), batch, false
					got := runTables(t, newScorer(t, g.model, opts), g.tables, decodable.RunOptions{Workers: 2})
					if !g.opts.ApplyExp {
						compareAll(t, got, want)
						return
					}
					opts.ApplyExp = true
					compareExponentials(t, runTables(t, newScorer(t, g.model, opts), g.tables, decodable.RunOptions{Workers: 2}), got, want)
				})
			}
		}
	}
}

// TestGoldenBits: with sums in the order of OpenBLAS, the output has Kaldi's bits. Exponentials are
// those of package math, whose last bit may differ from Kaldi's.
func TestGoldenBits(t *testing.T) {
	defer blas32.Use(blas32.Implementation())
	blas32.Use(kernel.OpenBLAS())
	for _, g := range goldenRuns() {
		if g.model != "tdnnf.mdl" {
			continue // Kaldi's sigmoid and tanh round differently
		}
		opts := g.opts
		opts.ApplyExp = false
		got := runTables(t, newScorer(t, g.model, opts), g.tables, decodable.RunOptions{Workers: 1})
		for u, w := range readMatrices(t, "ark:"+compute+g.name+".ark") {
			different := 0
			for i, k := range w.rows.Data {
				v, last := got[u].rows.Data[i], uint32(0)
				if g.opts.ApplyExp {
					v, last = float32(math.Exp(float64(v))), 1
				}
				if d := math.Float32bits(v) - math.Float32bits(k); v != k && d+last > 2*last {
					different++
				}
			}
			if different > 0 {
				t.Errorf("%s, %s: %d of %d elements differ", g.name, w.key, different, len(w.rows.Data))
			}
		}
	}
}

// compareExponentials compares exponentials with Kaldi's. The model is not trained, and its plain
// outputs go up to 10⁵, so almost all exponentials are zero or infinite. The others, such as e^50,
// have only three correct digits, because the terms of the exponent are rounded, in Kaldi as here.
// So the exponents are compared, with the tolerance of plain outputs.
func compareExponentials(t *testing.T, got, plain, want []output) {
	t.Helper()
	if len(got) != len(want) || len(plain) != len(want) {
		t.Fatalf("%d and %d utterances, want %d", len(got), len(plain), len(want))
	}
	for u, w := range want {
		if got[u].rows.Rows != w.rows.Rows || got[u].rows.Cols != w.rows.Cols {
			t.Fatalf("%s is %d×%d, want %d×%d", w.key, got[u].rows.Rows, got[u].rows.Cols, w.rows.Rows, w.rows.Cols)
		}
		difference, norm := 0.0, 0.0
		for i, e := range got[u].rows.Data {
			k, x := float64(w.rows.Data[i]), float64(plain[u].rows.Data[i])
			if exp := math.Exp(x); exp <= math.MaxFloat32 && math.Abs(float64(e)-exp) > 1e-6*exp+1e-44 {
				t.Errorf("%s, element %d: e^%g is %g", w.key, i, x, e)
			}
			norm += x * x
			if k == 0 || math.IsInf(k, 0) {
				if float64(e) != k {
					t.Errorf("%s, element %d is %g, Kaldi's is %g", w.key, i, e, k)
				}
				continue
			}
			d := x - math.Log(k)
			difference += d * d
		}
		if difference, norm = math.Sqrt(difference), math.Sqrt(norm); difference > tolerance*norm {
			t.Errorf("%s: exponents differ by %.2g of their norm", w.key, difference/norm)
		} else {
			t.Logf("%s: exponents differ by %.2g of their norm", w.key, difference/norm)
		}
	}
}

// An output is the result for an utterance.
type output struct {
	key  string
	rows kernel.Matrix
}

// compareAll compares outputs with Kaldi's.
func compareAll(t *testing.T, got, want []output) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d utterances, want %d", len(got), len(want))
	}
	worst := 0.0
	for i, w := range want {
		if got[i].key != w.key {
			t.Errorf("utterance %d is %s, want %s", i, got[i].key, w.key)
		}
		d, err := pipeline.Compare(got[i].rows, w.rows)
		if err != nil {
			t.Errorf("%s: %v", w.key, err)
		} else if !d.Agrees(tolerance) {
			t.Errorf("%s differs from Kaldi's by %.2g of its norm", w.key, d.Relative())
		}
		worst = max(worst, d.Relative())
	}
	t.Logf("largest relative difference %.2g", worst)
}

func readModel(t testing.TB, name string) *nnet3.AmNnetSimple {
	t.Helper()
	f, err := os.Open(compute + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := kaldiio.NewReader(f, name)
	if err != nil {
		t.Fatal(err)
	}
	am, err := nnet3.ReadModel(r)
	if err != nil {
		t.Fatal(err)
	}
	return am
}

func newScorer(t testing.TB, model string, opts decodable.Options) *decodable.Scorer {
	t.Helper()
	s, err := decodable.New(readModel(t, model).Nnet, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// readMatrices reads a table.
func readMatrices(t testing.TB, rspecifier string) []output {
	t.Helper()
	r, err := kaldiio.NewTableReader(new(kaldiio.Opener), rspecifier, kaldiio.MatrixHolder())
	if err != nil {
		t.Fatal(err)
	}
	var all []output
	for key, m := range r.All() {
		all = append(all, output{key, kernel.Matrix{Rows: m.Rows, Cols: m.Cols, Stride: m.Stride, Data: m.Data}})
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}

// runTables scores the utterances of tables. All must succeed.
func runTables(t testing.TB, s *decodable.Scorer, names decodable.TableNames, opts decodable.RunOptions) []output {
	t.Helper()
	tables, err := decodable.OpenTables(new(kaldiio.Opener), names)
	if err != nil {
		t.Fatal(err)
	}
	opts.Failed = func(key string, err error) { t.Errorf("%s: %v", key, err) }
	var all []output
	_, err = s.Run(context.Background(), tables.Utterances(), func(u decodable.Utterance, m kernel.Matrix) error {
		all = append(all, output{u.Key, kernel.Clone(m)})
		return nil
	}, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := tables.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}

// readVectors reads a table of vectors, as matrices with one row.
func readVectors(t testing.TB, rspecifier string) []output {
	t.Helper()
	r, err := kaldiio.NewTableReader(new(kaldiio.Opener), rspecifier, kaldiio.VectorHolder())
	if err != nil {
		t.Fatal(err)
	}
	var all []output
	for key, v := range r.All() {
		all = append(all, output{key, kernel.Matrix{Rows: 1, Cols: len(v), Stride: len(v), Data: v}})
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}
