package decodable

import (
	"context"
	"iter"
	"runtime"
	"sync"
	"time"

	"github.com/nnopt/nnopt/internal/kernel"
)

// RunOptions are options of Scorer.Run.
type RunOptions struct {
	// Workers is the number of utterances that are scored at once. 0 means runtime.GOMAXPROCS.
	Workers int
	// Limit bounds the time of an utterance, from the beginning of its computation. One that takes
	// longer fails with ErrLate. 0 means no limit.
	Limit time.Duration
	// Failed, if not nil, is called in order for every utterance that fails, and for errors of the
	// stream. The key may be empty.
	Failed func(key string, err error)
	// Warned, if not nil, is called in order for utterances that are scored although they are not
	// finite (ErrNotFinite).
	Warned func(key string, err error)
}

// A Summary is the result of Scorer.Run.
type Summary struct {
	Utterances int   // scored and written
	Failed     int   // not scored
	Dropped    int   // read, but neither scored nor failed before the run ended
	NotFinite  int   // written, with features or i-vectors that are not finite
	Frames     int64 // of the written utterances
	Rows       int64 // of output

	Elapsed     time.Duration // of the run
	FirstResult time.Duration // until the first utterance was written; 0 if none was
	Busy        time.Duration // in computations, of all workers
	Programs    CacheStats    // of the Scorer, since New
	Workspaces  int64         // memory of computations in bytes, of all workers
}

// Run scores the utterances of a stream and writes the results in its order. An utterance that
// fails does not affect others: it is counted, and opts.Failed is called. The same happens for an
// error of the stream, with or without an utterance; the stream continues if it can. Run calls
// write for one utterance at a time. The matrix is valid until write returns. An error of write
// ends the run, and so does ctx.
//
// Run is RunRows with whole matrices.
func (s *Scorer) Run(ctx context.Context, utterances iter.Seq2[Utterance, error], write func(Utterance, kernel.Matrix) error, opts RunOptions) (Summary, error) {
	return run(ctx, s, utterances, whole(write), opts)
}

// RunRows is Run with results that come piece by piece. The pieces, which are chunks or batches of
// chunks, are scored by all workers, also if they belong to one utterance. Before write is called,
// the first piece has been scored and what can be known to fail has been tried; if the rest fails
// nevertheless, write should return the error of Rows, which does not end the run.
//
// At most two pieces per worker, and one more, are in memory at once, and the utterances that they
// belong to. RunRows reads and writes utterances while others are scored. It reads the stream in a
// goroutine, which may remain there if the run ends early while no utterance comes. So the source
// of the stream may only be used again or closed if RunRows returns nil.
func (s *Scorer) RunRows(ctx context.Context, utterances iter.Seq2[Utterance, error], write func(Utterance, *Rows) error, opts RunOptions) (Summary, error) {
	return run(ctx, s, utterances, write, opts)
}

// whole collects the rows of an utterance for write.
func whole(write func(Utterance, kernel.Matrix) error) func(Utterance, *Rows) error {
	var out kernel.Matrix
	return func(u Utterance, r *Rows) error {
		m, err := r.Matrix(out)
		if err != nil {
			return err
		}
		out = m
		return write(u, m)
	}
}

// A scoring is what a run needs of a Scorer or a Streamer.
type scoring interface {
	// cut divides an utterance into pieces that can be scored independently, or says why it can't
	// be scored.
	cut(u *Utterance) ([]batch, error)
	// shape returns the rows and columns of the output for an utterance.
	outputShape(frames int) (rows, cols int)
	newStaff() staff
	// window returns how many pieces are in memory at once.
	window(workers int) int
	cacheStats() CacheStats
}

// staff is a worker of a run: piecewise or, if the scoring has flows, streaming.
type staff interface {
	// used returns the time in computations and the memory of computations.
	used() (busy time.Duration, bytes int64)
}

// piecewise staff scores pieces of utterances in any order.
type piecewise interface {
	// begin makes what an utterance needs, as far as that can fail.
	begin(ctx context.Context, pieces []batch) error
	score(ctx context.Context, u *Utterance, b batch, out kernel.Matrix) error
}

// streaming staff scores whole utterances, whose rows it puts into a flow.
type streaming interface {
	feed(ctx context.Context, u *Utterance, to *flow) error
}

// flowing is a scoring with streaming staff.
type flowing interface {
	newFlow(done chan struct{}) *flow
}

func run(ctx context.Context, s scoring, utterances iter.Seq2[Utterance, error], write func(Utterance, *Rows) error, opts RunOptions) (Summary, error) {
	workers := opts.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	start := time.Now() // before any work: on one processor all may be done when collect begins
	q := newQueue(s, s.window(workers))
	q.limit = opts.Limit
	go q.read(ctx, utterances)

	var group sync.WaitGroup
	all := make([]staff, workers)
	for i := range all {
		all[i] = s.newStaff()
		group.Go(func() { q.work(ctx, &all[i]) })
	}
	sum, err := q.collect(ctx, start, write, opts.Failed, opts.Warned)
	cancel(err)
	group.Wait()
	for _, w := range all {
		busy, bytes := w.used()
		sum.Busy += busy
		sum.Workspaces += bytes
	}
	sum.Programs = s.cacheStats()
	sum.Dropped = int(q.came.Load()) - sum.Utterances - sum.Failed
	return sum, err
}
