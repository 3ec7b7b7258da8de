package decodable_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/passes/passtest"
)

// smallConfig is a network with a left context of 2, a right context of 1, an i-vector, and outputs
// of moderate size.
const smallConfig = `
input-node name=input dim=3
input-node name=ivector dim=2
component name=a type=NaturalGradientAffineComponent input-dim=11 output-dim=8
component-node name=a component=a input=Append(Offset(input, -2), input, Offset(input, 1), ReplaceIndex(ivector, t, 0))
component name=b type=RectifiedLinearComponent dim=8
component-node name=b component=b input=a
component name=c type=NaturalGradientAffineComponent input-dim=8 output-dim=4
component-node name=c component=c input=b
output-node name=output input=c
`

// recurrentConfig sums up its input over time.
const recurrentConfig = `
input-node name=input dim=1
component name=a type=NoOpComponent dim=1
component-node name=a component=a input=Sum(input, IfDefined(Offset(a, -1)))
output-node name=output input=a
`

func network(t testing.TB, config string) *nnet3.Nnet {
	t.Helper()
	nn, err := nnet3.ParseConfig(strings.NewReader(config), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	return nn
}

func scorer(t testing.TB, config string, opts decodable.Options) *decodable.Scorer {
	t.Helper()
	s, err := decodable.New(network(t, config), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func random(rows, cols int, seed uint64) kernel.Matrix {
	rng := rand.New(rand.NewPCG(seed, 0))
	m := kernel.New(rows, cols)
	for i := range m.Data {
		m.Data[i] = float32(rng.NormFloat64())
	}
	return m
}

// score scores one utterance.
func score(t testing.TB, s *decodable.Scorer, u decodable.Utterance) kernel.Matrix {
	t.Helper()
	out, err := s.NewWorker().Score(context.Background(), u, kernel.Matrix{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func near(t *testing.T, what string, got, want kernel.Matrix) {
	t.Helper()
	if got.Rows != want.Rows || got.Cols != want.Cols {
		t.Fatalf("%s: %d×%d, want %d×%d", what, got.Rows, got.Cols, want.Rows, want.Cols)
	}
	for i := range got.Rows {
		for j, v := range kernel.Row(got, i) {
			if w := kernel.Row(want, i)[j]; math.Abs(float64(v-w)) > 1e-5*(1+math.Abs(float64(w))) {
				t.Fatalf("%s: (%d, %d) is %g, want %g", what, i, j, v, w)
			}
		}
	}
}

// TestChunksDontMatter: without recurrence, the size of chunks doesn't change results.
func TestChunksDontMatter(t *testing.T) {
	for _, frames := range []int{1, 2, 7, 29, 60} {
		u := decodable.Utterance{Features: random(frames, 3, 1), Ivector: []float32{1, -1}}
		want := score(t, scorer(t, smallConfig, decodable.Options{FramesPerChunk: 1000}), u)
		for _, opts := range []decodable.Options{
			{FramesPerChunk: 1},
			{FramesPerChunk: 7, MinibatchSize: 4},
			{FramesPerChunk: 10, ExtraLeftContext: 3, ExtraRightContextFinal: new(5), MinibatchSize: 2},
			{FramesPerChunk: 10, Optimizer: passtest.Optimizer(t, "+fast_run")},
		} {
			near(t, "chunks", score(t, scorer(t, smallConfig, opts), u), want)
		}
		subsampled := score(t, scorer(t, smallConfig, decodable.Options{FramesPerChunk: 10, FrameSubsampling: 3}), u)
		near(t, "every third row", subsampled, kernel.EveryNth(want, 0, (frames+2)/3, 3))
	}
}

// TestContexts: a recurrent network sees the context of the options.
func TestContexts(t *testing.T) {
	u := decodable.Utterance{Features: kernel.New(7, 1)}
	for i := range 7 {
		u.Features.Data[i] = float32(i + 1)
	}
	for _, c := range []struct {
		name string
		opts decodable.Options
		want []float32
	}{
		{"none", decodable.Options{}, []float32{1, 3, 6, 4, 9, 15, 7}},
		{"the first frame is used for those before it", decodable.Options{ExtraLeftContext: 2}, []float32{3, 5, 8, 9, 14, 20, 18}},
		{"but at the beginning", decodable.Options{ExtraLeftContext: 2, ExtraLeftContextInitial: new(0)}, []float32{1, 3, 6, 9, 14, 20, 18}},
		{"only at the beginning", decodable.Options{ExtraLeftContextInitial: new(1)}, []float32{2, 4, 7, 4, 9, 15, 7}},
	} {
		for _, batch := range []int{1, 8} {
			c.opts.FramesPerChunk, c.opts.MinibatchSize = 3, batch
			if got := score(t, scorer(t, recurrentConfig, c.opts), u); !slices.Equal(got.Data, c.want) {
				t.Errorf("%s: %v, want %v", c.name, got.Data, c.want)
			}
		}
	}
}

// TestOnlineIvectors: a chunk uses the i-vector of its middle, or the last one if that is missing.
func TestOnlineIvectors(t *testing.T) {
	const config = `
input-node name=input dim=1
input-node name=ivector dim=1
output-node name=output input=Sum(Scale(0, input), ReplaceIndex(ivector, t, 0))
`
	u := decodable.Utterance{Features: kernel.New(26, 1), OnlineIvectors: kernel.Matrix{Rows: 3, Cols: 1, Stride: 2, Data: []float32{0, -9, 1, -9, 2}}}
	s := scorer(t, config, decodable.Options{FramesPerChunk: 8, OnlineIvectorPeriod: 5, MinibatchSize: 2})
	got := score(t, s, u)
	for row, want := range map[int]float32{0: 0, 7: 0, 8: 2, 15: 2, 16: 2, 25: 2} {
		if v := got.Data[row]; v != want {
			t.Errorf("row %d has i-vector %g, want %g", row, v, want)
		}
	}
	u.Features = kernel.New(200, 1)
	if _, err := s.NewWorker().Score(context.Background(), u, kernel.Matrix{}); !errors.Is(err, decodable.ErrIvector) {
		t.Errorf("i-vectors that end 100 frames too early: %v", err)
	}
}

// TestOutput: priors, scale and exponential, in this order, each rounded as in Kaldi.
func TestOutput(t *testing.T) {
	u := decodable.Utterance{Features: random(5, 3, 2), Ivector: []float32{0, 1}}
	want := score(t, scorer(t, smallConfig, decodable.Options{}), u)
	priors := []float32{0.1, 0.2, 0.3, 0.4}
	plain := append([]float32(nil), want.Data...)
	scaled := score(t, scorer(t, smallConfig, decodable.Options{Priors: priors, AcousticScale: 0.3}), u)
	for i, v := range plain {
		plain[i] = (v - float32(math.Log(float64(priors[i%4])))) * 0.3
	}
	if !slices.Equal(scaled.Data, plain) {
		t.Errorf("priors and scale: %v, want %v", scaled.Data, plain)
	}
	for i := range want.Data {
		want.Data[i] = float32(math.Exp(0.5 * (float64(want.Data[i]) - math.Log(float64(priors[i%4])))))
	}
	near(t, "output", score(t, scorer(t, smallConfig, decodable.Options{Priors: priors, AcousticScale: 0.5, ApplyExp: true}), u), want)
}

func TestBadUtterances(t *testing.T) {
	good := decodable.Utterance{Features: random(5, 3, 3), Ivector: []float32{0, 1}}
	w := scorer(t, smallConfig, decodable.Options{OnlineIvectorPeriod: 10}).NewWorker()
	for _, c := range []struct {
		name   string
		change func(u *decodable.Utterance)
		want   error
	}{
		{"no frames", func(u *decodable.Utterance) { u.Features = kernel.Matrix{} }, decodable.ErrEmpty},
		{"no frames of the right size", func(u *decodable.Utterance) { u.Features = kernel.New(0, 3) }, decodable.ErrEmpty},
		{"narrow features", func(u *decodable.Utterance) { u.Features = kernel.New(5, 2) }, decodable.ErrDim},
		{"no i-vector", func(u *decodable.Utterance) { u.Ivector = nil }, decodable.ErrIvector},
		{"features without data", func(u *decodable.Utterance) { u.Features.Data = u.Features.Data[:10] }, decodable.ErrDim},
		{"fewer frames than none", func(u *decodable.Utterance) { u.Features.Rows = -3 }, decodable.ErrDim},
		{"long i-vector", func(u *decodable.Utterance) { u.Ivector = make([]float32, 3) }, decodable.ErrDim},
		{"wide i-vectors", func(u *decodable.Utterance) { u.Ivector, u.OnlineIvectors = nil, kernel.New(1, 3) }, decodable.ErrDim},
		{"two kinds of i-vectors", func(u *decodable.Utterance) { u.OnlineIvectors = kernel.New(1, 2) }, decodable.ErrOptions},
	} {
		u := good
		c.change(&u)
		if _, err := w.Score(context.Background(), u, kernel.Matrix{}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if _, err := w.Score(context.Background(), good, kernel.Matrix{}); err != nil {
			t.Errorf("after %s: %v", c.name, err)
		}
	}
	if _, err := scorer(t, smallConfig, decodable.Options{}).NewWorker().Score(context.Background(),
		decodable.Utterance{Features: good.Features, OnlineIvectors: kernel.New(1, 2)}, kernel.Matrix{}); !errors.Is(err, decodable.ErrOptions) {
		t.Errorf("online i-vectors without a period: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := w.Score(ctx, good, kernel.Matrix{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestNaN: a NaN affects only the rows that depend on it.
func TestNaN(t *testing.T) {
	u := decodable.Utterance{Features: random(20, 3, 4), Ivector: []float32{0, 1}}
	kernel.Row(u.Features, 10)[1] = float32(math.NaN())
	out := score(t, scorer(t, smallConfig, decodable.Options{FramesPerChunk: 6, Optimizer: passtest.Optimizer(t, "+fast_run")}), u)
	for i := range out.Rows {
		nan := false
		for _, v := range kernel.Row(out, i) {
			nan = nan || v != v
		}
		if want := i == 9 || i == 10 || i == 12; nan != want {
			t.Errorf("row %d has a NaN: %v", i, nan)
		}
	}
}

func TestBadOptions(t *testing.T) {
	for name, opts := range map[string]decodable.Options{
		"negative chunk":     {FramesPerChunk: -1},
		"negative context":   {ExtraLeftContext: -1},
		"negative initial":   {ExtraLeftContextInitial: new(-1)},
		"huge context":       {ExtraRightContext: 1 << 40},
		"huge chunk":         {FramesPerChunk: 1<<20 - 1, FrameSubsampling: 1000},
		"negative minibatch": {MinibatchSize: -2},
		"negative cache":     {CacheCapacity: -1},
		"priors":             {Priors: []float32{1}},
	} {
		if _, err := decodable.New(network(t, smallConfig), opts); !errors.Is(err, decodable.ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := decodable.New(network(t, strings.ReplaceAll(smallConfig, "ivector", "voice")), decodable.Options{}); !errors.Is(err, nnet3.ErrNetwork) {
		t.Errorf("a network with another input: %v", err)
	}
}

// TestCache: shapes are compiled once, and the cache doesn't exceed its capacity.
func TestCache(t *testing.T) {
	s := scorer(t, smallConfig, decodable.Options{FramesPerChunk: 10, CacheCapacity: 2})
	utterances := func(yield func(decodable.Utterance, error) bool) {
		for _, frames := range []int{40, 15, 40, 15, 23, 40} {
			if !yield(decodable.Utterance{Features: random(frames, 3, 1), Ivector: []float32{0, 1}}, nil) {
				return
			}
		}
	}
	sum, err := s.Run(t.Context(), utterances, func(decodable.Utterance, kernel.Matrix) error { return nil }, decodable.RunOptions{Workers: 1})
	if err != nil || sum.Utterances != 6 {
		t.Fatalf("%+v, %v", sum, err)
	}
	// Shapes in turn, by rows: 10 10 10 10, 10 5, 10 10 10 10, 10 5, 10 10 3 (without 5), 10 10 10
	// 10.
	if got := sum.Programs; got.Misses != 3 || got.Hits != 16 || got.Evicted != 1 || got.Build <= 0 {
		t.Errorf("%+v", got)
	}
}

// TestSteadyState: a worker that has scored all shapes allocates nothing.
func TestSteadyState(t *testing.T) {
	s := scorer(t, smallConfig, decodable.Options{FramesPerChunk: 10, MinibatchSize: 4, Optimizer: passtest.Optimizer(t, "+fast_run")})
	w := s.NewWorker()
	u := decodable.Utterance{Features: random(66, 3, 1), Ivector: []float32{0, 1}}
	var out kernel.Matrix
	var err error
	if n := testing.AllocsPerRun(20, func() {
		if out, err = w.Score(context.Background(), u, out); err != nil {
			t.Fatal(err)
		}
	}); n != 0 && !raceDetector {
		t.Errorf("%v allocations", n)
	}
}
