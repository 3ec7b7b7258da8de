package pipeline_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/passes"
)

// TestStreams feeds random networks chunk by chunk, and expects the rows that the chunks have when
// they are compiled one after the other without a loop or an optimizer. Where no row depends on
// whether there are frames after a chunk and its context, it also expects those of the whole
// utterance computed at once, with the same context.
//
// A row that a chunk computes is not computed again, in Kaldi as here. So if a chunk needs it with
// fewer frames than there are later, as with pooling or IfDefined, the chunks after it use it as it
// is.
func TestStreams(t *testing.T) {
	fast := build(t, passes.Default(), fastRun)
	tried, alike := 0, 0
	for i := range uint64(cases()) {
		seed := *firstSeed + i
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			c, err := New(seed)
			if err != nil {
				t.Fatal(err)
			}
			if compile.CheckSimple(c.Net) != nil {
				return
			}
			calibrate(t, c.Net, c)
			rnd := rand.New(rand.NewPCG(seed, 3))
			opts := decodable.Options{FramesPerChunk: 1 + rnd.IntN(12), FrameSubsampling: 1 + rnd.IntN(3), ExtraLeftContextInitial: new(rnd.IntN(4))}
			if rnd.IntN(3) > 0 {
				opts.Optimizer = fast
			}
			s, err := decodable.NewStreamer(t.Context(), c.Net, opts)
			if errors.Is(err, compile.ErrNotComputable) || errors.Is(err, compile.ErrUnbounded) {
				return
			} else if err != nil {
				t.Fatalf("%v\n%s", err, c.Config)
			}
			tried++
			u := utterance{chunks: 3 + rnd.IntN(4), streamer: s, opts: opts}
			got := u.streamed(t, rnd)
			fail := func(d float64, from string) {
				t.Errorf("%s, chunks of %d frames: rows differ by %.2g of their norm from those of %s\n%s", c.Family, s.FramesPerChunk(), d, from, c.Config)
			}
			if d := apart(got, u.inTurn(t, c.Net)); d > tolerance {
				fail(d, "the chunks in turn")
			}
			if u.dependsOnEnd(t, c) {
				return
			}
			alike++
			if d := apart(got, u.whole(t, c.Net, u.chunks)); d > tolerance {
				fail(d, "the whole utterance")
			}
		})
	}
	if cases() >= 40 && (tried < cases()/8 || alike < cases()/8) {
		t.Errorf("only %d of %d networks were tried, %d with whole utterances", tried, cases(), alike)
	}
	t.Logf("%d of %d networks were tried, %d with whole utterances", tried, cases(), alike)
}

// calibrate prepares a network of a case for inference.
func calibrate(t *testing.T, nn *nnet3.Nnet, c *Case) {
	t.Helper()
	if err := pipeline.Calibrate(t.Context(), nn, c.Request, c.Seed); err != nil {
		t.Fatal(err)
	}
	nn.SetTestMode(true)
}

// dependsOnEnd reports whether some row depends on whether there are frames after a chunk and its
// context. A part that is scaled by 0 would hide that from the output, but not from rows that use
// the same part elsewhere, so such scales are 1 here.
func (u *utterance) dependsOnEnd(t *testing.T, c *Case) bool {
	t.Helper()
	nn, err := nnet3.ParseConfig(strings.NewReader(strings.ReplaceAll(c.Config, "Scale(0, ", "Scale(1, ")), "config", c.Seed)
	if err != nil {
		t.Fatal(err)
	}
	calibrate(t, nn, c)
	want := u.whole(t, nn, u.chunks)
	for n := 1; n < u.chunks; n++ {
		if part := u.whole(t, nn, n); apart(part, kernel.Rows(want, 0, part.Rows)) > 1e-5 {
			return true
		}
	}
	return false
}

// An utterance is random features that fill some chunks.
type utterance struct {
	streamer *decodable.Streamer
	opts     decodable.Options
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

// requests returns the network for chunks of a stream, and the requests for the first three of so
// many frames.
func (u *utterance) requests(t *testing.T, nn *nnet3.Nnet, frames int) (*nnet3.Nnet, [3]*computation.Request) {
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
	requests, err := compile.LoopedRequests(net, compile.LoopedConfig{FramesPerChunk: frames, FrameSubsampling: max(u.opts.FrameSubsampling, 1),
		IvectorPeriod: chunk, LeftContext: left + *u.opts.ExtraLeftContextInitial, RightContext: right})
	if err != nil {
		t.Fatal(err)
	}
	return net, requests
}

// whole computes the rows of the first chunks at once.
func (u *utterance) whole(t *testing.T, nn *nnet3.Nnet, chunks int) kernel.Matrix {
	t.Helper()
	net, requests := u.requests(t, nn, chunks*u.streamer.FramesPerChunk())
	return u.run(t, net, requests[:1])
}

// inTurn computes the rows of all chunks one after the other. It has no loop: each chunk is
// compiled for its own times.
func (u *utterance) inTurn(t *testing.T, nn *nnet3.Nnet) kernel.Matrix {
	t.Helper()
	net, first := u.requests(t, nn, u.streamer.FramesPerChunk())
	requests := first[:]
	for len(requests) < u.chunks {
		requests = append(requests, later(requests[len(requests)-1], u.streamer.FramesPerChunk()))
	}
	return u.run(t, net, requests)
}

// later returns a request for times that are a number of frames later.
func later(req *computation.Request, frames int) *computation.Request {
	moved := func(specs []computation.IoSpecification) (all []computation.IoSpecification) {
		for _, s := range specs {
			s.Indexes = slices.Clone(s.Indexes)
			for i := range s.Indexes {
				s.Indexes[i].T += int32(frames)
			}
			all = append(all, s)
		}
		return all
	}
	return &computation.Request{Inputs: moved(req.Inputs), Outputs: moved(req.Outputs)}
}

// run computes what requests ask for, one after the other, as compiled.
func (u *utterance) run(t *testing.T, nn *nnet3.Nnet, requests []*computation.Request) (all kernel.Matrix) {
	t.Helper()
	c, err := compile.Segments(nn, requests, compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := exec.NewProgram(c, nn)
	if err != nil {
		t.Fatal(err)
	}
	computer, err := p.NewComputer(exec.ComputerOptions{Poison: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, req := range requests {
		for _, s := range req.Inputs {
			m := kernel.New(len(s.Indexes), nn.InputNodeDim(s.Name))
			for i, ix := range s.Indexes {
				v := u.frame(0, m.Cols)
				if s.Name == "input" {
					v = u.frame(int(ix.T), m.Cols)
				}
				copy(kernel.Row(m, i), v)
			}
			if err := computer.AcceptInput(s.Name, m); err != nil {
				t.Fatal(err)
			}
		}
		if err := computer.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		y, err := computer.Output("output")
		if err != nil {
			t.Fatal(err)
		}
		all = appendRows(all, y)
	}
	return all
}

// appendRows appends the rows of y.
func appendRows(all, y kernel.Matrix) kernel.Matrix {
	all.Rows, all.Cols, all.Stride = all.Rows+y.Rows, y.Cols, y.Cols
	for i := range y.Rows {
		all.Data = append(all.Data, kernel.Row(y, i)...)
	}
	return all
}

// streamed computes all rows chunk by chunk.
func (u *utterance) streamed(t *testing.T, rnd *rand.Rand) kernel.Matrix {
	t.Helper()
	return u.feed(t, u.streamer.NewStream(), rnd)
}

// feed feeds a stream in random pieces, and returns all its rows.
func (u *utterance) feed(t *testing.T, st *decodable.Stream, rnd *rand.Rand) (all kernel.Matrix) {
	t.Helper()
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
			all = appendRows(all, y)
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
