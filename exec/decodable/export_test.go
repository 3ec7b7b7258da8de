package decodable

import (
	"context"

	"github.com/nnopt/nnopt/internal/kernel"
)

// A Worker scores utterances, one at a time.
type Worker struct {
	w       *worker
	batches []batch
}

// NewWorker returns a Worker for one goroutine.
func (s *Scorer) NewWorker() *Worker { return &Worker{w: s.newWorker()} }

// Score returns the rows of an utterance. It uses the memory of out if that is large enough.
func (t *Worker) Score(ctx context.Context, u Utterance, out kernel.Matrix) (kernel.Matrix, error) {
	w := t.w
	var err error
	if t.batches, err = w.s.appendCut(&u, t.batches[:0]); err != nil {
		return kernel.Matrix{}, err
	}
	out.Rows, out.Cols, out.Stride = w.s.rows(u.Features.Rows), w.s.outputs, w.s.outputs
	out.Data = resize(out.Data, out.Rows*out.Cols)
	for _, b := range t.batches {
		if err := w.score(ctx, &u, b, kernel.Rows(out, b.first, b.rows*b.sequences)); err != nil {
			return kernel.Matrix{}, err
		}
	}
	return out, nil
}
