package decodable_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/passes/passtest"
)

// A loopedRun is a run of Kaldi's looped decodable.
type loopedRun struct {
	name, model, ivectors string
	period                int // frames per row of i-vectors; 0 for one per utterance
	opts                  decodable.Options
}

func loopedRuns() []loopedRun {
	return []loopedRun{
		{"lstmp_20", "lstmp.raw", "ivec.txt", 0, decodable.Options{FramesPerChunk: 20}},
		{"lstmp_7_left3", "lstmp.raw", "ivec.txt", 0, decodable.Options{FramesPerChunk: 7, ExtraLeftContextInitial: new(3)}},
		{"tdnnf_online_30", "tdnnf.mdl", "online_ivec.txt", 10, decodable.Options{FramesPerChunk: 30, FrameSubsampling: 3}},
		{"tdnnf_ivec_21", "tdnnf.mdl", "ivec.txt", 0, decodable.Options{FramesPerChunk: 21, FrameSubsampling: 3, ExtraLeftContextInitial: new(5)}},
	}
}

// feed hands an utterance to a stream in pieces of random sizes, takes rows whenever there are any,
// and returns them all. Row i of ivectors comes before frame i*period.
func feed(ctx context.Context, st *decodable.Stream, features, ivectors kernel.Matrix, period, most int, rnd *rand.Rand) (kernel.Matrix, error) {
	var all kernel.Matrix
	take := func() error {
		for {
			y, err := st.Rows(ctx)
			if err != nil || y.Rows == 0 {
				return err
			}
			all.Rows, all.Cols, all.Stride = all.Rows+y.Rows, y.Cols, y.Cols
			for i := range y.Rows {
				all.Data = append(all.Data, kernel.Row(y, i)...)
			}
		}
	}
	for at := 0; at < features.Rows; {
		if ivectors.Rows > 0 && (at == 0 || period > 0 && at%period == 0) && (period == 0 || at/period < ivectors.Rows) {
			if err := st.AcceptIvector(kernel.Row(ivectors, at/max(period, 1))); err != nil {
				return all, err
			}
		}
		n := min(1+rnd.IntN(most), features.Rows-at)
		if period > 0 {
			n = min(n, period-at%period)
		}
		if err := st.Accept(kernel.Rows(features, at, n)); err != nil {
			return all, err
		}
		at += n
		if err := take(); err != nil {
			return all, err
		}
	}
	st.Finish()
	if err := take(); !errors.Is(err, io.EOF) {
		return all, fmt.Errorf("the stream ends with %w", err)
	}
	return all, nil
}

// ivectorsOf returns the i-vectors of a run, by utterance.
func (l loopedRun) ivectorsOf(t testing.TB) []output {
	if l.period > 0 {
		return readMatrices(t, "ark:"+compute+l.ivectors)
	}
	return readVectors(t, "ark:"+compute+l.ivectors)
}

// TestLoopedGolden: streams have the rows of Kaldi's looped decodable.
func TestLoopedGolden(t *testing.T) {
	features := readMatrices(t, "ark:"+compute+"feats.ark")
	for _, l := range loopedRuns() {
		want, ivectors := readMatrices(t, "ark:"+compute+"looped/"+l.name+".txt"), l.ivectorsOf(t)
		for _, query := range []string{"none", "+fast_run", "+fast_run -inplace", "debug"} {
			t.Run(l.name+"/"+query, func(t *testing.T) {
				opts := l.opts
				opts.Optimizer = passtest.Optimizer(t, query)
				s := streamer(t, l.model, opts)
				rnd := rand.New(rand.NewPCG(1, 2))
				st := s.NewStream()
				var got []output
				for u, f := range features {
					y, err := feed(t.Context(), st, f.rows, ivectors[u].rows, l.period, 1<<rnd.IntN(7), rnd)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, output{f.key, y})
					st.Reset()
				}
				compareAll(t, got, want)
			})
		}
	}
}

func streamer(t testing.TB, model string, opts decodable.Options) *decodable.Streamer {
	t.Helper()
	s, err := decodable.NewStreamer(t.Context(), readModel(t, model).Nnet, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestStreamsTogether: streams that come and go at random, fed in pieces of random sizes by
// goroutines of their own, have the bits that each has alone.
func TestStreamsTogether(t *testing.T) {
	count, utterances := 64, 3
	if !longtest.Enabled() {
		count, utterances = 10, 2
	}
	for _, l := range loopedRuns() {
		t.Run(l.name, func(t *testing.T) {
			opts := l.opts
			opts.Optimizer = passtest.Optimizer(t, "+fast_run")
			s := streamer(t, l.model, opts)
			features, ivectors := readMatrices(t, "ark:"+compute+"feats.ark"), l.ivectorsOf(t)
			var alone []kernel.Matrix
			one := s.NewStream()
			for u, f := range features {
				y, err := feed(t.Context(), one, f.rows, ivectors[u].rows, l.period, 1000, rand.New(rand.NewPCG(1, 1)))
				if err != nil {
					t.Fatal(err)
				}
				alone = append(alone, y)
				one.Reset()
			}
			b, err := s.NewBatcher(t.Context(), decodable.BatcherOptions{Workers: 2, MaxWait: time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			var wait sync.WaitGroup
			for n := range count {
				wait.Go(func() {
					rnd := rand.New(rand.NewPCG(7, uint64(n)))
					st := b.NewStream()
					for range utterances {
						u := rnd.IntN(len(features))
						y, err := feed(t.Context(), st, features[u].rows, ivectors[u].rows, l.period, 40, rnd)
						if err != nil {
							t.Error(err)
							return
						}
						if !slices.Equal(y.Data, alone[u].Data) {
							t.Errorf("stream %d: the rows of %s are not those that it has alone", n, features[u].key)
						}
						if st.Reset(); rnd.IntN(3) == 0 {
							st = b.NewStream()
						}
					}
				})
			}
			wait.Wait()
		})
	}
}

// TestStreamScales: priors, scale and exponential are applied in that order, to the rows of a stream
// alone, which the computation writes in their place, and to those of streams together.
func TestStreamScales(t *testing.T) {
	l := loopedRuns()[0]
	features, ivectors := readMatrices(t, "ark:"+compute+"feats.ark")[0].rows, l.ivectorsOf(t)[0].rows
	rows := func(opts decodable.Options) (rows []float32) {
		s := streamer(t, l.model, opts)
		b, err := s.NewBatcher(t.Context(), decodable.BatcherOptions{MaxStreams: 2, MaxWait: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		var all [3][]float32
		var wait sync.WaitGroup
		for i, st := range []*decodable.Stream{s.NewStream(), b.NewStream(), b.NewStream()} {
			wait.Go(func() {
				y, err := feed(t.Context(), st, features, ivectors, l.period, 1000, rand.New(rand.NewPCG(1, 1)))
				if err != nil {
					t.Error(err)
				}
				all[i] = y.Data
			})
		}
		wait.Wait()
		if !slices.Equal(all[0], all[1]) || !slices.Equal(all[0], all[2]) {
			t.Errorf("scale %g, %d priors: a stream has other rows alone than in a batch", opts.AcousticScale, len(opts.Priors))
		}
		return all[0]
	}
	plain := rows(l.opts)
	opts := l.opts
	opts.Priors = make([]float32, streamer(t, l.model, l.opts).OutputDim())
	for i := range opts.Priors {
		opts.Priors[i] = 1 / float32(2+i)
	}
	for _, c := range []struct {
		scale       float32
		priors, exp bool
	}{{0.5, false, false}, {1, true, false}, {0.25, true, false}, {1e-5, true, true}} {
		o := l.opts
		o.AcousticScale, o.ApplyExp = c.scale, c.exp
		if c.priors {
			o.Priors = opts.Priors
		}
		for i, y := range rows(o) {
			want := float64(plain[i])
			if c.priors {
				want -= math.Log(float64(opts.Priors[i%len(opts.Priors)]))
			}
			if want *= float64(c.scale); c.exp {
				want = math.Exp(want)
			}
			if math.Abs(float64(y)-want) > 1e-5*(1+math.Abs(want)) {
				t.Fatalf("%+v: element %d is %g, want %g", c, i, y, want)
			}
		}
	}
}

// TestStreamMisuse: what can't be is an error, and the stream goes on.
func TestStreamMisuse(t *testing.T) {
	s := streamer(t, "lstmp.raw", decodable.Options{})
	if s.FramesPerChunk() != 24 || s.IvectorDim() == 0 || s.OutputDim() == 0 || s.StateBytes() == 0 {
		t.Errorf("chunks of %d frames, i-vectors of %d, %d columns of output, %d bytes of state", s.FramesPerChunk(), s.IvectorDim(), s.OutputDim(), s.StateBytes())
	}
	features, ivectors := readMatrices(t, "ark:"+compute+"feats.ark"), readVectors(t, "ark:"+compute+"ivec.txt")
	st := s.NewStream()
	is := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	rows := func() error {
		_, err := st.Rows(t.Context())
		return err
	}
	is("rows of nothing", rows(), nil)
	is("narrow frames", st.Accept(kernel.New(3, 2)), decodable.ErrDim)
	is("no frames", st.Accept(kernel.Matrix{}), nil)
	dim := s.InputDim()
	for _, m := range []kernel.Matrix{{Rows: -1, Cols: dim, Stride: dim}, {Rows: 1, Cols: dim}, {Rows: 2, Cols: dim, Stride: -dim, Data: make([]float32, 2*dim)},
		{Rows: 3, Cols: dim, Stride: math.MaxInt / 2, Data: make([]float32, dim)}} {
		is(fmt.Sprintf("%d rows without data", m.Rows), st.Accept(m), decodable.ErrDim)
	}
	is("short i-vector", st.AcceptIvector(make([]float32, 3)), decodable.ErrDim)
	is("frames", st.Accept(features[0].rows), nil)
	is("rows without an i-vector", rows(), decodable.ErrIvector)
	is("i-vector", st.AcceptIvector(ivectors[0].rows.Data), nil)
	is("rows", rows(), nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	_, err := st.Rows(ctx)
	is("cancelled rows", err, gone)
	is("rows after that", rows(), nil)
	st.Finish()
	st.Finish()
	is("frames after the end", st.Accept(features[0].rows), decodable.ErrFinished)
	is("i-vector after the end", st.AcceptIvector(ivectors[0].rows.Data), decodable.ErrFinished)
	for err = rows(); err == nil; err = rows() {
	}
	is("rows after the end", err, io.EOF)
	is("rows after the end, again", rows(), io.EOF)
	if st.Reset(); st.Ready() {
		t.Error("an empty stream is ready")
	}
	st.Finish()
	is("rows of an empty stream", rows(), io.EOF)

	b, err := s.NewBatcher(t.Context(), decodable.BatcherOptions{MaxStreams: 2})
	if err != nil {
		t.Fatal(err)
	}
	st = b.NewStream()
	is("i-vector", st.AcceptIvector(ivectors[0].rows.Data), nil)
	is("frames", st.Accept(features[0].rows), nil)
	is("rows of a batcher", rows(), nil)
	b.Close()
	is("rows of a closed batcher", rows(), decodable.ErrClosed)
	for _, o := range []decodable.BatcherOptions{{MaxStreams: -1}, {MaxStreams: 65}, {Workers: -1}, {MaxWait: -1}} {
		_, err := s.NewBatcher(t.Context(), o)
		is(fmt.Sprint(o), err, decodable.ErrOptions)
	}
	for _, o := range []decodable.Options{{FramesPerChunk: -1}, {FramesPerChunk: 1 << 30}, {FrameSubsampling: -1}, {ExtraLeftContextInitial: new(-1)}, {Priors: make([]float32, 1)}} {
		_, err := decodable.NewStreamer(t.Context(), readModel(t, "lstmp.raw").Nnet, o)
		is(fmt.Sprint(o), err, decodable.ErrOptions)
	}
	far := network(t, `
input-node name=input dim=1
component name=a type=NoOpComponent dim=1
component-node name=a component=a input=Sum(input, IfDefined(Offset(input, -20000)))
output-node name=output input=a
`)
	_, err = decodable.NewStreamer(t.Context(), far, decodable.Options{})
	is("a network that looks far back", err, compile.ErrUnbounded)
}

// TestStreamSteadyState: a stream allocates nothing, alone or in a batcher.
func TestStreamSteadyState(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	l := loopedRuns()[3]
	opts := l.opts
	opts.Optimizer = passtest.Optimizer(t, "+fast_run")
	s := streamer(t, l.model, opts)
	frames := kernel.Rows(readMatrices(t, "ark:"+compute+"feats.ark")[0].rows, 0, s.FramesPerChunk())
	ivector := l.ivectorsOf(t)[0].rows.Data
	b, err := s.NewBatcher(t.Context(), decodable.BatcherOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx := context.Background()
	for name, st := range map[string]*decodable.Stream{"alone": s.NewStream(), "in a batcher": b.NewStream()} {
		chunk := func() {
			if err := errors.Join(st.AcceptIvector(ivector), st.Accept(frames)); err != nil {
				t.Fatal(err)
			}
			for st.Ready() {
				if _, err := st.Rows(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 10 {
			chunk()
		}
		if n := testing.AllocsPerRun(50, chunk); n != 0 {
			t.Errorf("%s: %v allocations a chunk", name, n)
		}
	}
}
