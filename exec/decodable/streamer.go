package decodable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// A Streamer scores live streams: frames come as they arrive, and rows of output leave as soon as
// they can be computed, chunk by chunk. It does what Kaldi's looped decodables do. A chunk is
// computed from its new frames and from what the chunks before left, so recurrent networks see the
// whole past, and nothing is computed twice.
//
// A Streamer holds what all streams share: the network and the computations. It is safe for
// concurrent use.
type Streamer struct {
	scored
	nn   *nnet3.Nnet
	opts Options

	build sync.Mutex
	loops []*loop // by the logarithm of the number of sequences; nil if not built
	stats CacheStats
}

// maxSequences is the largest number of streams that are computed at once.
const maxSequences = 64

// NewStreamer returns a Streamer for a network, puts the network into test mode and packs its
// parameters; see New. The network may not be changed or used while the Streamer is in use. An error that
// wraps compile.ErrUnbounded says why a network can't be run chunk after chunk, for example because
// it looks at all of the future. Others wrap ErrOptions, or are those of compile.Context.
func NewStreamer(ctx context.Context, nn *nnet3.Nnet, opts Options) (*Streamer, error) {
	n, err := opts.prepare(nn, 24)
	if err != nil {
		return nil, err
	}
	s := &Streamer{scored: n, opts: opts}
	if extra := opts.ExtraLeftContextInitial; extra != nil {
		s.left += *extra
	}
	if s.nn, err = compile.WithIvectorPeriod(nn, s.chunk); err != nil {
		return nil, err
	}
	for n := 1; n <= maxSequences; n *= 2 {
		s.loops = append(s.loops, nil)
	}
	if _, err := s.loop(ctx, 0); err != nil {
		return nil, err
	}
	return s, nil
}

// InputDim returns the number of columns of frames.
func (s *Streamer) InputDim() int { return s.features }

// OutputDim returns the number of columns of the output.
func (s *Streamer) OutputDim() int { return s.outputs }

// StateBytes returns the memory that a stream keeps from chunk to chunk, without frames that have
// not been computed yet.
func (s *Streamer) StateBytes() int {
	return 4 * s.loops[0].stateSize()
}

// A loop is the computations for a number of streams at once.
type loop struct {
	sequences int
	start     int // the chunk that follows the last one
	chunks    []loopChunk
}

// A loopChunk is the program for a chunk.
type loopChunk struct {
	program  *exec.Program
	ports    struct{ input, ivector, output int }
	frames   int // of input, of each sequence
	ivectors int // of each sequence
	rows     int // of output, of each sequence
	taken    []carry
	given    []int // by number in taken of the next chunk: the port of the output for it
	size     int   // of what is taken, of each sequence, in elements
}

// A carry is a matrix of what a chunk takes from the one before.
type carry struct {
	port  int
	rows  [][]int32 // by sequence: its rows
	total int       // rows
	cols  int
	at    int // where it is in the state of a stream

	meaning []pipeline.LoopCarry // the one that it is made of, to compare with others
}

// stateSize returns the largest number of elements that a stream keeps.
func (l *loop) stateSize() int {
	size := 0
	for i := range l.chunks {
		size = max(size, l.chunks[i].size)
	}
	return size
}

// loop returns the computations for 1<<log streams. It makes them when they are first needed.
func (s *Streamer) loop(ctx context.Context, log int) (*loop, error) {
	s.build.Lock()
	defer s.build.Unlock()
	if s.loops[log] == nil {
		start := time.Now()
		l, err := s.makeLoop(ctx, 1<<log)
		if err != nil {
			return nil, err
		}
		s.loops[log] = l
		s.stats.Misses += len(l.chunks)
		s.stats.Build += time.Since(start)
	}
	return s.loops[log], nil
}

func (s *Streamer) makeLoop(ctx context.Context, sequences int) (*loop, error) {
	requests, err := compile.LoopedRequests(s.nn, compile.LoopedConfig{
		FramesPerChunk: s.chunk, FrameSubsampling: s.step, LeftContext: s.left, RightContext: s.right, Sequences: sequences})
	if err != nil {
		return nil, err
	}
	built, err := pipeline.BuildLoop(ctx, s.nn, requests, s.opts.Optimizer)
	if err != nil {
		return nil, err
	}
	l := &loop{sequences: sequences, start: built.Start}
	for _, b := range built.Chunks {
		for _, c := range b.Computation.Derived {
			Pack(c)
		}
		c := loopChunk{frames: rowsOf(b.Request.Inputs, inputNode) / sequences, ivectors: rowsOf(b.Request.Inputs, ivectorNode) / sequences,
			rows: rowsOf(b.Request.Outputs, outputNode) / sequences}
		if c.program, err = exec.NewProgram(b.Computation, built.Net); err != nil {
			return nil, err
		}
		c.ports.input, c.ports.ivector, c.ports.output = c.program.Port(inputNode), c.program.Port(ivectorNode), c.program.Port(outputNode)
		for _, node := range b.Given {
			c.given = append(c.given, c.program.Port(node))
		}
		for i := range b.Taken {
			t := &b.Taken[i]
			k := carry{port: c.program.Port(t.Node), total: len(t.Rows), cols: t.Cols, at: c.size, meaning: b.Taken[i : i+1]}
			if k.rows, err = t.BySequence(sequences); err != nil {
				return nil, err
			}
			c.size += len(k.rows[0]) * t.Cols
			c.taken = append(c.taken, k)
		}
		l.chunks = append(l.chunks, c)
	}
	// A stream moves between computations of different sizes from chunk to chunk, whatever the
	// batcher finds. Its state must therefore mean the same to all of them. The compiler makes them
	// independently, so this is checked, not assumed.
	if sequences > 1 {
		if err := l.like(s.loops[0]); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// rowsOf returns the number of rows of an input or output.
func rowsOf(specs []computation.IoSpecification, name string) int {
	for _, in := range specs {
		if in.Name == name {
			return len(in.Indexes)
		}
	}
	return 0
}

// errUnlike: computations for one and for several streams keep different things.
var errUnlike = errors.New("streams of this network can't be computed together")

// like checks that streams can move between the computations of two loops.
func (l *loop) like(one *loop) error {
	if len(l.chunks) != len(one.chunks) || l.start != one.start {
		return fmt.Errorf("%w: %d chunks for %d, %d for one", errUnlike, len(l.chunks), l.sequences, len(one.chunks))
	}
	for i := range l.chunks {
		a, b := &l.chunks[i], &one.chunks[i]
		if a.size != b.size || a.frames != b.frames || a.ivectors != b.ivectors || len(a.taken) != len(b.taken) {
			return fmt.Errorf("%w: chunk %d takes %d elements of state and %d frames for %d, %d and %d for one", errUnlike, i, a.size, a.frames, l.sequences, b.size, b.frames)
		}
		for j := range a.taken {
			x, y := &a.taken[j], &b.taken[j]
			same := len(x.rows[0]) == len(y.rows[0]) && x.cols == y.cols
			for r := 0; same && r < len(x.rows[0]); r++ {
				// Equal sizes are not enough: rows of other times, or in another order, would be
				// silently exchanged.
				same = x.meaning[0].Rows[x.rows[0][r]] == y.meaning[0].Rows[y.rows[0][r]]
			}
			if !same {
				return fmt.Errorf("%w: chunk %d takes other rows as number %d for %d than for one", errUnlike, i, j, l.sequences)
			}
		}
	}
	return nil
}

// Run scores whole utterances as streams, each from its beginning to its end, and writes the results
// in their order, as Scorer.Run does. What a network has seen of an utterance is all that is before
// a chunk. Workers score one utterance each. For each worker, and one more, at most 8 MB of a result wait
// for write, or two chunks.
func (s *Streamer) Run(ctx context.Context, utterances iter.Seq2[Utterance, error], write func(Utterance, kernel.Matrix) error, opts RunOptions) (Summary, error) {
	return run(ctx, s, utterances, whole(write), opts)
}

// RunRows is Run with results that come chunk by chunk, as those of a Scorer's RunRows.
func (s *Streamer) RunRows(ctx context.Context, utterances iter.Seq2[Utterance, error], write func(Utterance, *Rows) error, opts RunOptions) (Summary, error) {
	return run(ctx, s, utterances, write, opts)
}

// cut returns an utterance as one piece: a chunk needs those before it.
func (s *Streamer) cut(u *Utterance) ([]batch, error) {
	if err := accepts(u, s.features, s.ivector, s.opts.OnlineIvectorPeriod); err != nil {
		return nil, err
	}
	if s.ivector > 0 && u.OnlineIvectors.Rows > 0 {
		if _, err := latestIvector(u, u.Features.Rows-1, s.opts.OnlineIvectorPeriod); err != nil {
			return nil, err
		}
	}
	rows, _ := s.outputShape(u.Features.Rows)
	return []batch{{shape: shape{rows: rows, sequences: 1}}}, nil
}

func (s *Streamer) outputShape(frames int) (rows, cols int) {
	return (frames + s.step - 1) / s.step, s.outputs
}

func (s *Streamer) window(workers int) int { return workers + 1 }

func (s *Streamer) newFlow(done chan struct{}) *flow {
	return newFlow(done, s.chunk/s.step*s.outputs)
}

func (s *Streamer) cacheStats() CacheStats {
	s.build.Lock()
	defer s.build.Unlock()
	return s.stats
}

// A loopedWorker scores utterances as streams.
type loopedWorker struct {
	engine *engine
	stream *Stream
	busy   time.Duration
}

func (s *Streamer) newStaff() staff {
	e := newEngine(s)
	return &loopedWorker{engine: e, stream: e.newStream()}
}

func (w *loopedWorker) used() (busy time.Duration, bytes int64) {
	return w.busy, w.engine.workspace.MaxBytes()
}

// feed feeds the utterance to the stream, in pieces that end where an i-vector comes or that fill a
// chunk.
func (w *loopedWorker) feed(ctx context.Context, u *Utterance, to *flow) error {
	s, st := w.stream.s, w.stream
	defer st.Reset()
	piece, period := s.chunk, 0
	if s.ivector > 0 && u.OnlineIvectors.Rows > 0 {
		period = s.opts.OnlineIvectorPeriod
		piece = min(piece, period)
	} else if err := st.AcceptIvector(u.Ivector); err != nil {
		return err
	}
	for at := 0; at < u.Features.Rows; {
		n := min(piece, u.Features.Rows-at)
		if period > 0 {
			if row := at / period; at%period == 0 && row < u.OnlineIvectors.Rows {
				if err := st.AcceptIvector(kernel.Row(u.OnlineIvectors, row)); err != nil {
					return err
				}
			}
			n = min(n, period-at%period)
		}
		if err := st.Accept(kernel.Rows(u.Features, at, n)); err != nil {
			return err
		}
		at += n
		if err := w.take(ctx, to); err != nil {
			return err
		}
	}
	st.Finish()
	if err := w.take(ctx, to); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// take passes the rows that are ready on.
func (w *loopedWorker) take(ctx context.Context, to *flow) error {
	for {
		start := time.Now()
		y, err := w.stream.Rows(ctx)
		w.busy += time.Since(start)
		if err != nil || y.Rows == 0 {
			return err
		}
		if err := to.put(ctx, y); err != nil {
			return err
		}
	}
}
