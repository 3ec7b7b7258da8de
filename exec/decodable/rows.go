package decodable

import (
	"context"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// Rows is the output of an utterance. It comes piece by piece, so that not all of it need be in
// memory.
type Rows struct {
	Rows, Cols int

	ctx   context.Context
	queue *queue
	task  *task         // the next piece; nil at the end
	taken bool          // it has been handed out
	block kernel.Matrix // of a stream, that has been handed out
	err   error
}

// Next returns the next rows, and none at the end. They are valid until the next call. An error
// says that the utterance can't be scored to its end.
func (r *Rows) Next() (kernel.Matrix, error) {
	if r.taken {
		r.advance()
	}
	if r.err != nil || r.task == nil {
		return kernel.Matrix{}, r.err
	}
	if r.task.flow != nil {
		return r.nextBlock()
	}
	if r.err = r.queue.wait(r.ctx, r.task); r.err != nil {
		return kernel.Matrix{}, r.err
	}
	r.taken = true
	return r.task.out, nil
}

// advance gives the piece back and takes the next one of the utterance.
func (r *Rows) advance() {
	if r.task.flow != nil {
		r.task.flow.free <- r.block
		r.taken = false
		return
	}
	last := r.task.last
	r.queue.free <- r.task
	r.task, r.taken = nil, false
	if last {
		return
	}
	// The reader puts all pieces of an utterance, unless the context is done.
	if r.task = r.queue.next(r.ctx); r.task == nil && r.err == nil {
		r.err = context.Cause(r.ctx)
	}
}

// nextBlock returns the next rows of a stream. At their end it gives the task back.
func (r *Rows) nextBlock() (b kernel.Matrix, err error) {
	if b, err = r.task.flow.take(r.ctx); b.Rows > 0 {
		r.block, r.taken = b, true
		return b, nil
	}
	r.err = err
	if r.ctx.Err() == nil {
		r.queue.free <- r.task
		r.task = nil
	}
	return kernel.Matrix{}, err
}

// drop passes over the rest of the utterance.
func (r *Rows) drop() {
	for r.task != nil && r.task.flow != nil && r.ctx.Err() == nil {
		if r.taken {
			r.advance()
		}
		r.nextBlock()
	}
	for r.task != nil && r.ctx.Err() == nil {
		r.queue.wait(r.ctx, r.task)
		r.advance()
	}
}

// Matrix returns all rows. It uses the memory of out if that is large enough.
func (r *Rows) Matrix(out kernel.Matrix) (kernel.Matrix, error) {
	out.Rows, out.Cols, out.Stride = r.Rows, r.Cols, r.Cols
	out.Data = resize(out.Data, r.Rows*r.Cols)
	for at := 0; at < r.Rows; {
		m, err := r.Next()
		if err != nil {
			return kernel.Matrix{}, err
		}
		kernel.Copy(kernel.Rows(out, at, m.Rows), m)
		at += m.Rows
	}
	return out, nil
}

// Write writes the rows as a matrix. If the utterance can't be scored to its end, the writer fails.
func (r *Rows) Write(w *kaldiio.Writer) {
	w.BeginMatrix(r.Rows, r.Cols)
	for w.Err() == nil {
		m, err := r.Next()
		if err != nil {
			w.Fail(err)
			return
		}
		if m.Rows == 0 {
			break
		}
		w.Rows(kaldiio.Matrix(m))
	}
	w.EndMatrix()
}

// A flow carries the rows of an utterance from the worker that scores it as a stream to the writer, a
// chunk at a time. A worker runs ahead of the writer only as far as there are blocks.
type flow struct {
	free, full chan kernel.Matrix // full ends with an empty matrix
	max, made  int                // blocks
	done       chan struct{}      // of the task; told when there is something to write, or an error
	begun      bool               // done was told
	err        error              // why the rows end early, valid after the end of full
}

// maxAhead bounds the elements of a result that wait for the writer, and maxBlocks the chunks.
const (
	maxAhead  = 1 << 21
	maxBlocks = 256
)

// newFlow returns a flow of chunks with the given number of elements.
func newFlow(done chan struct{}, elements int) *flow {
	n := min(max(maxAhead/max(elements, 1), 2), maxBlocks)
	return &flow{free: make(chan kernel.Matrix, n), full: make(chan kernel.Matrix, n+1), max: n, done: done}
}

// put copies rows to a block. It waits while there is none.
func (f *flow) put(ctx context.Context, y kernel.Matrix) error {
	var b kernel.Matrix
	select {
	case b = <-f.free:
	default:
		// Prefer a block that was used before. A new one is made only while the writer is behind,
		// so a short utterance takes one or two.
		if f.made < f.max {
			f.made++
			break
		}
		select {
		case b = <-f.free:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	b.Rows, b.Cols, b.Stride = y.Rows, y.Cols, y.Cols
	b.Data = resize(b.Data, y.Rows*y.Cols)
	kernel.Copy(b, y)
	// This can't block: full has room for all blocks and the end.
	f.full <- b
	if !f.begun {
		f.begun = true
		f.done <- struct{}{}
	}
	return nil
}

// take returns the next block, or an empty one at the end.
func (f *flow) take(ctx context.Context) (kernel.Matrix, error) {
	select {
	case b := <-f.full:
		if b.Rows == 0 {
			return b, f.err
		}
		return b, nil
	case <-ctx.Done():
		return kernel.Matrix{}, context.Cause(ctx)
	}
}
