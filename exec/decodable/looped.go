package decodable

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/nnopt/nnopt/kernel"
)

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
