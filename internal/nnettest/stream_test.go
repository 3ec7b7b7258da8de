package nnettest

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/passes"
)

// TestStreams feeds random networks chunk by chunk, and expects the rows of the whole utterance
// computed at once, with the same context. Networks whose rows depend on whether there are frames
// after the chunk and its context are left out: in a stream there are none. So are those that scale
// by 0, which hides that a part does.
func TestStreams(t *testing.T) {
	fast := build(t, passes.Default(), fastRun)
	tried := 0
	for i := range uint64(*randomCases) {
		seed := *firstSeed + i
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			c, err := New(seed)
			if err != nil {
				t.Fatal(err)
			}
			if compile.CheckSimple(c.Net) != nil || strings.Contains(c.Config, "Scale(0,") {
				return
			}
			if err := pipeline.Calibrate(t.Context(), c.Net, c.Request, seed); err != nil {
				t.Fatal(err)
			}
			c.Net.SetTestMode(true)
			rnd := rand.New(rand.NewPCG(seed, 3))
			opts := decodable.StreamOptions{FramesPerChunk: 1 + rnd.IntN(12), FrameSubsampling: 1 + rnd.IntN(3), ExtraLeftContextInitial: rnd.IntN(4)}
			if rnd.IntN(3) > 0 {
				opts.Optimizer = fast
			}
			s, err := decodable.NewStreamer(t.Context(), c.Net, opts)
			if errors.Is(err, compile.ErrNotComputable) || errors.Is(err, compile.ErrUnbounded) {
				return
			} else if err != nil {
				t.Fatalf("%v\n%s", err, c.Config)
			}
			u := utterance{chunks: 3 + rnd.IntN(4), streamer: s, opts: opts}
			want := u.whole(t, c.Net, u.chunks)
			for n := 1; n < u.chunks; n++ {
				if part := u.whole(t, c.Net, n); apart(part, kernel.Rows(want, 0, part.Rows)) > 1e-5 {
					return
				}
			}
			tried++
			if d := apart(u.streamed(t, rnd), want); d > tolerance {
				t.Errorf("%s, chunks of %d frames: rows differ by %.2g of their norm\n%s", c.Family, s.FramesPerChunk(), d, c.Config)
			}
		})
	}
	if *randomCases >= 40 && tried < *randomCases/8 {
		t.Errorf("only %d of %d networks were tried", tried, *randomCases)
	}
	t.Logf("%d of %d networks were tried", tried, *randomCases)
}

// An utterance is random features that fill some chunks.
type utterance struct {
	streamer *decodable.Streamer
	opts     decodable.StreamOptions
	chunks   int
}

// frame returns frame t. Beyond the ends it is the first or the last one.
func (u *utterance) frame(t, dim int) []float32 {
	t = min(max(t, 0), u.chunks*u.streamer.FramesPerChunk()-1)
	rnd := rand.New(rand.NewPCG(uint64(t), 4))
	v := make([]float32, dim)
	for i := range v {
		v[i] = float32(rnd.NormFloat64())
	}
	return v
}

// whole computes the rows of the first chunks at once.
func (u *utterance) whole(t *testing.T, nn *nnet3.Nnet, chunks int) kernel.Matrix {
	t.Helper()
	left, right, err := compile.Context(nn)
	if err != nil {
		t.Fatal(err)
	}
	chunk := u.streamer.FramesPerChunk()
	net, err := compile.WithIvectorPeriod(nn, chunk)
	if err != nil {
		t.Fatal(err)
	}
	requests, err := compile.LoopedRequests(net, compile.LoopedConfig{FramesPerChunk: chunks * chunk, FrameSubsampling: max(u.opts.FrameSubsampling, 1),
		IvectorPeriod: chunk, LeftContext: left + u.opts.ExtraLeftContextInitial, RightContext: right})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pipeline.Build(t.Context(), net, requests[0], pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var in pipeline.Values
	for _, s := range requests[0].Inputs {
		m := kernel.New(len(s.Indexes), net.InputNodeDim(s.Name))
		for i, ix := range s.Indexes {
			v := u.frame(0, m.Cols)
			if s.Name == "input" {
				v = u.frame(int(ix.T), m.Cols)
			}
			copy(kernel.Row(m, i), v)
		}
		in.Inputs = append(in.Inputs, pipeline.Named{Name: s.Name, Matrix: m})
	}
	out, err := pipeline.Run(t.Context(), plan.Optimized, net, requests[0], in)
	if err != nil {
		t.Fatal(err)
	}
	return out.Outputs[0].Matrix
}

// streamed computes all rows chunk by chunk.
func (u *utterance) streamed(t *testing.T, rnd *rand.Rand) (all kernel.Matrix) {
	t.Helper()
	st := u.streamer.NewStream()
	if n := u.streamer.IvectorDim(); n > 0 {
		if err := st.AcceptIvector(u.frame(0, n)); err != nil {
			t.Fatal(err)
		}
	}
	frames := u.chunks * u.streamer.FramesPerChunk()
	for at := 0; at <= frames; {
		if at == frames {
			st.Finish()
			at++
		} else {
			n := min(1+rnd.IntN(20), frames-at)
			piece := kernel.New(n, u.streamer.InputDim())
			for i := range n {
				copy(kernel.Row(piece, i), u.frame(at+i, piece.Cols))
			}
			if err := st.Accept(piece); err != nil {
				t.Fatal(err)
			}
			at += n
		}
		for {
			y, err := st.Rows(t.Context())
			if err != nil && err != io.EOF {
				t.Fatal(err)
			} else if y.Rows == 0 {
				break
			}
			all.Rows, all.Cols, all.Stride = all.Rows+y.Rows, y.Cols, y.Cols
			for i := range y.Rows {
				all.Data = append(all.Data, kernel.Row(y, i)...)
			}
		}
	}
	return all
}

// apart returns the norm of a difference, relative to that of b.
func apart(a, b kernel.Matrix) float64 {
	if a.Rows != b.Rows || a.Cols != b.Cols {
		return math.Inf(1)
	}
	d, norm := 0.0, 0.0
	for i := range a.Rows {
		x, y := kernel.Row(a, i), kernel.Row(b, i)
		for k := range x {
			e := float64(x[k]) - float64(y[k])
			d += e * e
			norm += float64(y[k]) * float64(y[k])
		}
	}
	return math.Sqrt(d / (norm + absoluteTolerance*absoluteTolerance*float64(a.Rows*a.Cols)/tolerance/tolerance))
}
