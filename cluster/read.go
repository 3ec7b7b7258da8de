package cluster

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// A reader reads the utterances of a shard. It is for one goroutine.
type reader struct {
	matrices *kaldiio.Objects[kaldiio.Matrix]
	vectors  *kaldiio.Objects[[]float32]
	online   bool // i-vectors are matrices
	retry    *retrier
}

func newReader(o *kaldiio.Opener, online bool) *reader {
	return &reader{
		matrices: kaldiio.NewObjects(o, kaldiio.MatrixHolder()),
		vectors:  kaldiio.NewObjects(o, kaldiio.VectorHolder()),
		online:   online, retry: newRetrier(),
	}
}

// utterances yields the utterances of a list in its order, each with its key, also where it has an
// error.
func (r *reader) utterances(ctx context.Context, list []entry) iter.Seq2[decodable.Utterance, error] {
	return func(yield func(decodable.Utterance, error) bool) {
		defer r.matrices.Close()
		defer r.vectors.Close()
		for _, e := range list {
			u, err := r.utterance(ctx, e)
			u.Key = e.Key
			if !yield(u, err) {
				return
			}
		}
	}
}

// utterance reads an utterance.
func (r *reader) utterance(ctx context.Context, e entry) (u decodable.Utterance, err error) {
	if e.Error != "" {
		return u, errors.New(e.Error)
	}
	if u.Features, err = r.matrix(ctx, e.Key, e.Features); err != nil || e.Ivector == "" {
		return u, err
	}
	if r.online {
		u.OnlineIvectors, err = r.matrix(ctx, e.Key, e.Ivector)
		if err == nil && u.OnlineIvectors.Rows == 0 {
			err = fmt.Errorf("%w in %s", decodable.ErrIvector, e.Ivector)
		}
		return u, err
	}
	u.Ivector, err = repeat(ctx, r.retry, r.vectors, e.Key, e.Ivector)
	if err == nil && len(u.Ivector) == 0 {
		err = fmt.Errorf("%w in %s", decodable.ErrIvector, e.Ivector)
	}
	return u, err
}

func (r *reader) matrix(ctx context.Context, key, object string) (kernel.Matrix, error) {
	m, err := repeat(ctx, r.retry, r.matrices, key, object)
	return kernel.Matrix{Rows: m.Rows, Cols: m.Cols, Stride: m.Stride, Data: m.Data}, err
}

// repeat reads an object until that succeeds or is hopeless.
func repeat[T any](ctx context.Context, retry *retrier, objects *kaldiio.Objects[T], key, object string) (v T, err error) {
	line, err := kaldiio.ParseScriptLine(key + " " + object)
	if err != nil {
		return v, err
	}
	err = retry.do(ctx, line.File(), func() (err error) {
		if v, err = objects.Of(line); err != nil {
			objects.Close() // the next try opens the file anew
		}
		return err
	})
	return v, err
}
