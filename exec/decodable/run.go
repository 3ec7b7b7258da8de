package decodable

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/kernel"
)

// RunOptions are options of Scorer.Run.
type RunOptions struct {
	// Workers is the number of utterances that are scored at once. 0 means runtime.GOMAXPROCS.
	Workers int
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
// At most two utterances per worker, and two more, are in memory at once. Run reads and writes
// utterances while others are scored. It reads the stream in a goroutine, which may remain there if
// the run ends early while no utterance comes. So the source of the stream may only be used again
// or closed if Run returns nil.
func (s *Scorer) Run(ctx context.Context, utterances iter.Seq2[Utterance, error], write func(Utterance, kernel.Matrix) error, opts RunOptions) (Summary, error) {
	workers := opts.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	start := time.Now() // before any work: on one processor all may be done when collect begins
	q := newQueue(2*workers + 1)
	go q.read(ctx, utterances)

	var group sync.WaitGroup
	staff := make([]*Worker, workers)
	for i := range staff {
		staff[i] = s.NewWorker()
		group.Go(func() { q.work(ctx, staff[i]) })
	}
	sum, err := q.collect(ctx, start, write, opts.Failed, opts.Warned)
	cancel(err)
	group.Wait()
	for _, w := range staff {
		sum.Busy += w.busy
		sum.Workspaces += w.workspace.MaxBytes()
	}
	s.programs.mu.Lock()
	sum.Programs = s.programs.stats
	s.programs.mu.Unlock()
	sum.Dropped = int(q.came.Load()) - sum.Utterances - sum.Failed
	return sum, err
}

// A task is an utterance in progress. Their number bounds the utterances in memory. Each is used
// again after it is written.
type task struct {
	u    Utterance
	err  error
	odd  error // for Warned
	out  kernel.Matrix
	done chan struct{}
}

// A queue connects the reader, the workers and the writer. All channels have room for all tasks.
type queue struct {
	came  atomic.Int64 // utterances and errors that were read
	free  chan *task
	todo  chan *task // from the reader to the workers
	order chan *task // from the reader to the writer, in the order of the stream
}

func newQueue(size int) *queue {
	q := &queue{free: make(chan *task, size), todo: make(chan *task, size), order: make(chan *task, size)}
	for range size {
		q.free <- &task{done: make(chan struct{}, 1)}
	}
	return q
}

// read reads the stream to its end, or until ctx is done.
func (q *queue) read(ctx context.Context, utterances iter.Seq2[Utterance, error]) {
	defer close(q.order)
	defer close(q.todo)
	defer func() {
		if p := recover(); p != nil {
			q.put(ctx, Utterance{}, panicError(p))
		}
	}()
	for u, err := range utterances {
		if !q.put(ctx, u, err) {
			return
		}
	}
}

// put passes an utterance to the workers, or an error to the writer. It returns false if ctx is
// done.
func (q *queue) put(ctx context.Context, u Utterance, err error) bool {
	if err == nil || ctx.Err() == nil {
		q.came.Add(1)
	}
	var t *task
	select {
	case t = <-q.free:
	case <-ctx.Done():
		return false
	}
	t.u, t.err, t.odd = u, err, nil
	if err != nil {
		t.done <- struct{}{}
	} else {
		q.todo <- t
	}
	q.order <- t
	return ctx.Err() == nil
}

// work scores utterances until there are no more.
func (q *queue) work(ctx context.Context, w *Worker) {
	for {
		select {
		case <-ctx.Done():
			return
		case t, ok := <-q.todo:
			if !ok {
				return
			}
			t.score(ctx, w)
			t.done <- struct{}{}
		}
	}
}

// score scores the utterance. It turns a panic into an error.
func (t *task) score(ctx context.Context, w *Worker) {
	defer func() {
		if p := recover(); p != nil {
			t.err = panicError(p)
		}
	}()
	var out kernel.Matrix
	if out, t.err = w.Score(ctx, t.u, t.out); t.err == nil {
		t.out, t.odd = out, notFinite(&t.u)
	}
}

func panicError(p any) error { return fmt.Errorf("%w: %v\n%s", exec.ErrPanic, p, debug.Stack()) }

// collect writes the utterances in order. Times are relative to start.
func (q *queue) collect(ctx context.Context, start time.Time, write func(Utterance, kernel.Matrix) error, failed, warned func(string, error)) (sum Summary, err error) {
	defer func() { sum.Elapsed = time.Since(start) }()
	for {
		var t *task
		var more bool
		select {
		case t, more = <-q.order:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return sum, context.Cause(ctx)
		}
		if !more {
			return sum, nil
		}
		select {
		case <-t.done:
		case <-ctx.Done():
			return sum, context.Cause(ctx)
		}
		switch {
		case t.err == nil:
			if err := write(t.u, t.out); err != nil {
				return sum, err
			}
			if t.odd != nil {
				sum.NotFinite++
				if warned != nil {
					warned(t.u.Key, t.odd)
				}
			}
			if sum.Utterances == 0 {
				sum.FirstResult = time.Since(start)
			}
			sum.Utterances++
			sum.Frames += int64(t.u.Features.Rows)
			sum.Rows += int64(t.out.Rows)
		case ctx.Err() != nil:
			return sum, context.Cause(ctx)
		default:
			sum.Failed++
			if failed != nil {
				failed(t.u.Key, t.err)
			}
		}
		t.u = Utterance{}
		q.free <- t
	}
}
