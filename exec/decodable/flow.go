package decodable

import (
	"context"

	"github.com/nnopt/nnopt/kernel"
)

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
