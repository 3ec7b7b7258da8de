package model

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/tensor/array"
)

// BatcherOptions are options of Model.NewBatcher.
type BatcherOptions struct {
	// MaxRows is the largest number of rows, along the first axis of the inputs, that are computed at once. 0 means 32.
	// A request of more rows is computed alone.
	MaxRows int
	// MaxWait is how long a request may wait for others before it is computed. With 0 it waits for a free worker only.
	MaxWait time.Duration
	// Workers is the number of computations at a time. 0 means 1.
	Workers int
}

// A Batcher computes requests of many goroutines together: those whose inputs have the same sizes but for the first,
// along which they are joined. The one that came first is computed first. Rows have the numbers that they have alone, if
// the model computes each by itself: one that finds scales of all its elements in a run, as some models of int8 do,
// does not. If a batch fails, its requests are computed one by one.
type Batcher struct {
	m *Model
	o BatcherOptions

	mu      sync.Mutex
	changed *sync.Cond // queue or closed, or a request has waited long enough
	timer   *time.Timer
	queue   []*request // in the order in which they came
	closed  bool
	workers sync.WaitGroup
}

// A request is a call of Batcher.Run.
type request struct {
	inputs map[string]*array.Array
	rows   int
	since  time.Time
	batch  *batch        // nil while it waits
	free   chan struct{} // closed when inputs are not read any more
	done   chan struct{} // closed after out and err are set
	out    Outputs
	err    error
}

// A batch is the requests that are computed together. It is cancelled if all that asked for it have left.
type batch struct {
	requests []*request
	rows     int
	ctx      context.Context
	cancel   context.CancelFunc
	left     int // requests that nobody waits for
}

// NewBatcher returns a Batcher and starts its workers, which run until Close. The error is an ErrInput unless the model
// leaves the first size of all inputs open, the same one, and that of its outputs.
func (m *Model) NewBatcher(o BatcherOptions) (*Batcher, error) {
	if len(m.inputs) == 0 {
		return nil, fmt.Errorf("%w: the model has no inputs, so there are no batches", ErrInput)
	}
	rows := append(m.inputs[0].Dims, Dim{})[0]
	// Rows can be joined only if the first size alone counts them: a symbol that is also another size of a
	// tensor would make that one grow with the batch.
	for i, v := range append(m.Inputs(), m.outputs...) {
		input := i < len(m.inputs)
		if v.Sequence || v.Type == "string" || input && (len(v.Dims) == 0 || v.Dims[0] != rows) || len(v.Dims) > 0 && (v.Dims[0].Size >= 0 || rows.Symbol != "" && slices.Contains(v.Dims[1:], rows)) {
			return nil, fmt.Errorf("%w: no batches: %s, %v, is no tensor of numbers whose first size is the open one of all inputs", ErrInput, fileio.Excerpt(v.Name, 0), v)
		}
	}
	if o.MaxRows <= 0 {
		o.MaxRows = 32
	}
	b := &Batcher{m: m, o: o}
	b.changed = sync.NewCond(&b.mu)
	// A condition variable has no wait with a limit of time, so a timer wakes the workers. It is made here,
	// stopped, and set by next.
	b.timer = time.AfterFunc(time.Hour, func() {
		b.mu.Lock() // or a worker that has set the timer might not wait yet
		defer b.mu.Unlock()
		b.changed.Broadcast()
	})
	b.timer.Stop()
	for range max(o.Workers, 1) {
		b.workers.Go(b.work)
	}
	return b, nil
}

// Run is like Model.Run. The outputs belong to the caller, but memory of others is kept with them. A request whose
// context ends is left out, and a batch stops that nobody waits for.
func (b *Batcher) Run(ctx context.Context, inputs Inputs) (Outputs, error) {
	r := &request{inputs: make(map[string]*array.Array, len(inputs)), since: time.Now(), free: make(chan struct{}), done: make(chan struct{})}
	if err := b.m.bind(r.inputs, inputs, true); err != nil {
		return nil, err
	}
	for i, v := range b.m.inputs {
		a := r.inputs[v.Name]
		if a == nil {
			continue
		}
		if i == 0 {
			r.rows = a.Dim(0)
		}
		if a.Dim(0) != r.rows || r.rows == 0 {
			return nil, &InputError{v.Name, v.String(), text(a), "all inputs of a batch have as many rows, at least one"}
		}
	}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil, ErrClosed
	}
	b.queue = append(b.queue, r)
	b.mu.Unlock()
	b.changed.Signal()
	select {
	case <-r.done:
		return r.out, r.err
	case <-ctx.Done():
		b.leave(r)
		return nil, context.Cause(ctx)
	}
}

// leave gives up a request. Its inputs are the caller's again when it returns.
func (b *Batcher) leave(r *request) {
	b.mu.Lock()
	if r.batch == nil {
		b.queue = slices.DeleteFunc(b.queue, func(q *request) bool { return q == r })
		b.mu.Unlock()
		return
	}
	if r.batch.left++; r.batch.left == len(r.batch.requests) {
		r.batch.cancel()
	}
	b.mu.Unlock()
	// The batch may be reading the inputs, which the caller may change as soon as this returns.
	<-r.free
}

// Close computes the requests that wait, and ends the workers. Later calls of Run get ErrClosed. It does not close the
// model.
func (b *Batcher) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.changed.Broadcast()
	b.workers.Wait()
	b.timer.Stop()
}

// work computes batches until the batcher is closed.
func (b *Batcher) work() {
	for t := b.next(); t != nil; t = b.next() {
		b.compute(t)
		t.cancel()
	}
}

// next waits for a batch that is large enough or has waited long enough. It returns nil if the batcher is closed and no
// request waits.
func (b *Batcher) next() *batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		if len(b.queue) == 0 {
			if b.closed {
				return nil
			}
			b.changed.Wait()
			continue
		}
		// A batch is made around the request that has waited longest. Otherwise one of rare sizes could wait
		// forever.
		first, rows := b.queue[0], 0
		var taken, rest []*request
		for _, r := range b.queue {
			if r == first || rows+r.rows <= b.o.MaxRows && r.joins(first) {
				taken, rows = append(taken, r), rows+r.rows
			} else {
				rest = append(rest, r)
			}
		}
		// Who comes meanwhile may join. The loop then looks at the whole queue again, since another worker may
		// have taken from it.
		if wait := b.o.MaxWait - time.Since(first.since); rows < b.o.MaxRows && wait > 0 && !b.closed {
			b.timer.Reset(wait)
			b.changed.Wait()
			continue
		}
		b.queue = rest
		t := &batch{requests: taken, rows: rows}
		t.ctx, t.cancel = context.WithCancel(context.Background())
		for _, r := range taken {
			r.batch = t
		}
		return t
	}
}

// joins reports whether requests can be computed together.
func (r *request) joins(q *request) bool {
	if len(r.inputs) != len(q.inputs) {
		return false
	}
	for name, a := range r.inputs {
		if b := q.inputs[name]; b == nil || a.DType() != b.DType() || a.NDim() != b.NDim() || !slices.Equal(a.Shape()[1:], b.Shape()[1:]) {
			return false
		}
	}
	return true
}

// compute computes a batch and tells its requests.
func (b *Batcher) compute(t *batch) {
	inputs := t.requests[0].inputs
	if len(t.requests) > 1 {
		inputs = t.join()
	}
	out, err := b.run(t.ctx, inputs, t.rows)
	from, alone := 0, err != nil && len(t.requests) > 1 && t.ctx.Err() == nil // one of them is to blame, or all
	for _, r := range t.requests {
		switch {
		case alone:
			r.out, r.err = b.run(t.ctx, rowsOf(inputs, from, r.rows), r.rows)
		case err != nil:
			r.err = err
		default:
			r.out = rowsOf(out, from, r.rows)
		}
		// The inputs of several requests are free since join has copied them.
		if from += r.rows; len(t.requests) == 1 {
			close(r.free)
		}
		close(r.done)
	}
}

// join copies the inputs of requests below each other. Those of one request would be read where they are.
func (t *batch) join() map[string]*array.Array {
	inputs := make(map[string]*array.Array)
	for name, a := range t.requests[0].inputs {
		shape := slices.Clone(a.Shape())
		shape[0] = t.rows
		inputs[name] = array.New(a.DType(), shape...)
	}
	from := 0
	for _, r := range t.requests {
		for name, part := range rowsOf(inputs, from, r.rows) {
			array.CopyTo(part, r.inputs[name])
		}
		from += r.rows
		close(r.free)
	}
	return inputs
}

// rowsOf returns views of n rows.
func rowsOf(all map[string]*array.Array, from, n int) map[string]*array.Array {
	parts := make(map[string]*array.Array, len(all))
	for name, a := range all {
		parts[name] = new(array.Array)
		a.RangeTo(parts[name], array.Range{Start: from, Count: n, Step: 1})
	}
	return parts
}

// run computes the outputs for inputs of so many rows, of which they have as many.
func (b *Batcher) run(ctx context.Context, inputs map[string]*array.Array, rows int) (Outputs, error) {
	out, err := b.m.run(ctx, inputs)
	if err != nil {
		return nil, err
	}
	// What the model declares proves nothing. Outputs are cut by rows, so one of another size would give a
	// request the rows of somebody else.
	for _, v := range b.m.outputs {
		if a := out[v.Name]; a == nil || a.NDim() == 0 || a.Dim(0) != rows {
			return nil, fmt.Errorf("model: no batches: output %s has not one row for each of %d rows of the inputs", fileio.Excerpt(v.Name, 0), rows)
		}
	}
	return out, nil
}
