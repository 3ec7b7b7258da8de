package decodable

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/internal/kernel"
)

// A job is an utterance in progress.
type job struct {
	u      Utterance
	pieces []batch
	odd    error                 // for Warned; set with the first piece
	failed atomic.Pointer[error] // the first error of a piece
	began  atomic.Int64          // when the first piece was begun, if there is a limit
}

// A task is a piece of an utterance in progress. Their number bounds the memory of a run. Each is
// used again after it is written.
type task struct {
	job         *job
	piece       batch
	first, last bool
	out         kernel.Matrix
	err         error
	done        chan struct{}
	over        bool  // done has been received
	flow        *flow // of the rows of a stream, in place of out; nil for a piece
	kept        *flow // the flow of the last stream
}

// A queue connects the reader, the workers and the writer. All channels have room for all tasks.
type queue struct {
	s     scoring
	limit time.Duration // of an utterance; 0 means none
	came  atomic.Int64  // utterances and errors that were read
	free  chan *task
	todo  chan *task // from the reader to the workers
	order chan *task // from the reader to the writer, in the order of the stream
}

func newQueue(s scoring, size int) *queue {
	q := &queue{s: s, free: make(chan *task, size), todo: make(chan *task, size), order: make(chan *task, size)}
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

// put passes the pieces of an utterance to the workers, or an error to the writer. It returns false
// if ctx is done.
func (q *queue) put(ctx context.Context, u Utterance, err error) bool {
	if err == nil || ctx.Err() == nil {
		q.came.Add(1)
	}
	j := &job{u: u}
	if err == nil {
		// The shape is checked here, by the reader, so that a bad utterance costs no worker
		// anything and its error still comes in its place in the order.
		j.pieces, err = q.s.cut(&j.u)
	}
	for i := range max(len(j.pieces), 1) {
		var t *task
		select {
		case t = <-q.free:
		case <-ctx.Done():
			return false
		}
		t.job, t.err, t.over, t.flow = j, err, false, nil
		t.first, t.last = i == 0, i >= len(j.pieces)-1
		if err != nil {
			t.last = true
			t.done <- struct{}{}
			q.order <- t
			break
		}
		t.piece = j.pieces[i]
		if s, ok := q.s.(flowing); ok {
			t.stream(s)
		}
		// A worker may finish the task before the writer hears of it: order alone decides when it
		// is written. Neither send blocks, because both channels have room for all tasks.
		q.todo <- t
		q.order <- t
	}
	return ctx.Err() == nil
}

// work scores pieces until there are no more. It replaces a worker that does not end.
func (q *queue) work(ctx context.Context, w *staff) {
	for {
		select {
		case <-ctx.Done():
			return
		case t, ok := <-q.todo:
			if !ok {
				return
			}
			if t.flow != nil {
				q.run(ctx, t, *w)
				continue
			}
			// Another piece of the utterance has failed, so nothing of it will be written. Skip the
			// work, but report the task as done: the writer counts on each.
			if err := t.job.failed.Load(); err != nil {
				t.err = *err
			} else if !q.score(ctx, t, *w) {
				// The computation did not end within its time, and goes on with the memory of this
				// worker. The worker's place must not be lost: a run in which several utterances
				// hang would end up without workers.
				*w = q.s.newStaff()
			}
			t.done <- struct{}{}
		}
	}
}

// run scores an utterance as a stream, within the limit of time: a stream looks at ctx between chunks.
func (q *queue) run(ctx context.Context, t *task, w staff) {
	if q.limit > 0 {
		limited, cancel := t.job.limited(ctx, q.limit)
		defer cancel()
		ctx = limited
	}
	t.run(ctx, w)
}

// score scores a piece. It returns false if the worker can't be used again.
func (q *queue) score(ctx context.Context, t *task, w staff) (ended bool) {
	if ended = true; q.limit > 0 {
		ended = t.scoreWithin(ctx, w, q.s, q.limit)
	} else {
		t.score(ctx, w, q.s)
	}
	if t.err != nil {
		err := t.err
		t.job.failed.CompareAndSwap(nil, &err)
	}
	return ended
}

// score scores the piece. It turns a panic into an error.
func (t *task) score(ctx context.Context, w staff, s scoring) {
	defer func() {
		if p := recover(); p != nil {
			t.err = panicError(p)
		}
	}()
	if t.first {
		if t.err = w.(piecewise).begin(ctx, t.job.pieces); t.err != nil {
			return
		}
		t.job.odd = notFinite(&t.job.u)
	}
	rows := t.piece.rows * t.piece.sequences
	_, cols := s.outputShape(t.job.u.Features.Rows)
	t.out.Rows, t.out.Cols, t.out.Stride = rows, cols, cols
	t.out.Data = resize(t.out.Data, rows*cols)
	t.err = w.(piecewise).score(ctx, &t.job.u, t.piece, t.out)
}

// stream gives the task the flow that it had before, or a new one.
func (t *task) stream(s flowing) {
	if t.kept == nil {
		t.kept = s.newFlow(t.done)
	}
	t.flow = t.kept
	t.flow.begun, t.flow.err = false, nil
}

// run scores the utterance as a stream. Once the flow has ended, the task belongs to the writer.
func (t *task) run(ctx context.Context, w staff) {
	err, f := t.feed(ctx, w), t.flow
	if f.begun {
		// The end of full publishes err to the writer, which reads it only after it has taken the
		// empty block.
		f.err = err
		f.full <- kernel.Matrix{}
		return
	}
	t.err = err
	f.full <- kernel.Matrix{}
	f.done <- struct{}{}
}

// feed puts the rows into the flow, without its end. It turns a panic into an error.
func (t *task) feed(ctx context.Context, w staff) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicError(p)
		}
	}()
	t.job.odd = notFinite(&t.job.u)
	return w.(streaming).feed(ctx, &t.job.u, t.flow)
}

func panicError(p any) error { return fmt.Errorf("%w: %v\n%s", exec.ErrPanic, p, debug.Stack()) }

// next returns the next task in order, or nil at the end or if ctx is done.
func (q *queue) next(ctx context.Context) *task {
	select {
	case t := <-q.order:
		if ctx.Err() == nil {
			return t
		}
	case <-ctx.Done():
	}
	return nil
}

// wait waits until a piece is scored and returns its error.
func (q *queue) wait(ctx context.Context, t *task) error {
	if !t.over {
		select {
		case <-t.done:
			t.over = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return t.err
}

// collect writes the utterances in order. Times are relative to start.
func (q *queue) collect(ctx context.Context, start time.Time, write func(Utterance, *Rows) error, failed, warned func(string, error)) (sum Summary, err error) {
	defer func() { sum.Elapsed = time.Since(start) }()
	for {
		t := q.next(ctx)
		if ctx.Err() != nil {
			return sum, context.Cause(ctx)
		}
		if t == nil {
			return sum, nil
		}
		j := t.job
		r := &Rows{ctx: ctx, queue: q, task: t}
		r.Rows, r.Cols = q.s.outputShape(j.u.Features.Rows)
		// Tasks are written in the order of the stream. Later ones may be done already; they hold
		// their rows meanwhile, which is why the number of tasks bounds the memory of a run.
		if r.err = q.wait(ctx, t); r.err == nil {
			if err := write(j.u, r); err != nil && (r.err == nil || !errors.Is(err, r.err)) {
				return sum, err
			}
		}
		written := r.err
		// What write did not read is still to be received: later pieces of the utterance have tasks
		// of their own in order, and the queue would hand them out as other utterances.
		r.drop()
		r.err = written
		frames := j.u.Features.Rows
		if ctx.Err() == nil { // otherwise workers may still read them
			j.u.release()
		}
		switch {
		case r.err == nil: // and written, also if ctx is done now
			if j.odd != nil {
				sum.NotFinite++
				if warned != nil {
					warned(j.u.Key, j.odd)
				}
			}
			if sum.Utterances == 0 {
				sum.FirstResult = time.Since(start)
			}
			sum.Utterances++
			sum.Frames += int64(frames)
			sum.Rows += int64(r.Rows)
		case ctx.Err() != nil:
			return sum, context.Cause(ctx)
		default:
			sum.Failed++
			if failed != nil {
				failed(j.u.Key, r.err)
			}
		}
	}
}

// ErrLate is the error of an utterance that takes longer than RunOptions.Limit.
var ErrLate = errors.New("out of time")

// abandonAfter is how long a computation may take to notice that its time is up, or that the run
// has ended. A command of a computation takes milliseconds.
const abandonAfter = 2 * time.Second

// deadline returns when the utterance must be scored. The time runs from the first call.
func (j *job) deadline(limit time.Duration) time.Time {
	j.began.CompareAndSwap(0, time.Now().UnixNano())
	return time.Unix(0, j.began.Load()).Add(limit)
}

// limited returns a context that ends at the deadline of the utterance.
func (j *job) limited(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	late := fmt.Errorf("%w: the utterance takes longer than %v", ErrLate, limit)
	return context.WithDeadlineCause(ctx, j.deadline(limit), late)
}

// scoreWithin is score with a limit for the time of the utterance. It returns false if the
// computation does not end even so. Then it goes on in the background with the memory of w, which
// may not be used by another.
func (t *task) scoreWithin(ctx context.Context, w staff, s scoring, limit time.Duration) (ended bool) {
	ctx, cancel := t.job.limited(ctx, limit)
	defer cancel()
	// The computation gets a task of its own. If it is abandoned, it may still write to it, while t
	// is already written and used for another utterance. Only after done are the results copied, so
	// there is no race.
	own := &task{job: t.job, piece: t.piece, first: t.first, out: t.out}
	done := make(chan struct{})
	go func() {
		defer close(done)
		own.score(ctx, w, s)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		// A computation looks at ctx between commands, so usually it ends within milliseconds and
		// the worker stays usable. What does not end by then hangs in a single command.
		patience := time.NewTimer(abandonAfter)
		defer patience.Stop()
		select {
		case <-done:
		case <-patience.C:
			t.out, t.err = kernel.Matrix{}, context.Cause(ctx)
			return false
		}
	}
	t.out, t.err = own.out, own.err
	return true
}
