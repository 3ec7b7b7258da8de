package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"runtime"
	"sync"

	onnxmodel "github.com/nnopt/nnopt/exec/model"
)

// An onnxModel is a model that is ready to run. All users in a process share it.
type onnxModel struct {
	*onnxmodel.Model
	sum string // SHA-256 of the file, in hexadecimal
}

// onnxModels has the open models of this process.
var onnxModels pool[*onnxModel]

// acquireONNX returns the model of an inference.
func acquireONNX(ctx context.Context, w *inferWork) (m *onnxModel, release func(), err error) {
	key := w.Model + "\x00" + w.Query + "\x00" + w.ModelSum
	return onnxModels.acquire(key, func() (*onnxModel, error) { return readONNX(ctx, w) }, func(m *onnxModel) { m.Close() })
}

func readONNX(ctx context.Context, w *inferWork) (*onnxModel, error) {
	f, err := newPatientOpener(ctx, false).OpenInput(w.Model)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	// Records are computed at a time, each by one thread, since a batch may wait for its rows.
	m, err := onnxmodel.Options{Query: w.Query, Threads: 1}.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrJob, w.Model, err)
	}
	sum := sha256.Sum256(data)
	return &onnxModel{Model: m, sum: hex.EncodeToString(sum[:])}, nil
}

// inferShard computes a shard and writes the results in the order of its records.
func (m *onnxModel) inferShard(ctx context.Context, w *inferWork, s recordShard, to io.Writer) (failed int64, err error) {
	workers := runtime.GOMAXPROCS(0)
	b, err := m.NewBatcher(onnxmodel.BatcherOptions{MaxRows: w.Rows, Workers: workers})
	if err != nil {
		return 0, err
	}
	defer b.Close()
	r, err := w.format().open(ctx, w, m, s.Offset)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(ctx)
	var computing sync.WaitGroup
	defer computing.Wait()
	defer cancel()
	out := r.writer(to)
	// Results wait for those before them, and no more records are read than give two batches to each worker.
	waiting := make(chan chan result, 2*workers*cmp.Or(w.Rows, 32))
	write := func() error {
		r := <-<-waiting
		if r.failed {
			failed++
		}
		return out.write(r)
	}
	for range s.Records {
		rec, err := r.next(io.Discard)
		if err != nil {
			return failed, fmt.Errorf("%s: %w", w.Records, noEOF(err))
		}
		if len(waiting) == cap(waiting) {
			if err := write(); err != nil {
				return failed, err
			}
		}
		r := make(chan result, 1)
		waiting <- r
		computing.Go(func() { r <- rec.infer(ctx, b) })
	}
	for len(waiting) > 0 {
		if err := write(); err != nil {
			return failed, err
		}
	}
	if ctx.Err() != nil {
		return failed, context.Cause(ctx)
	}
	return failed, out.close()
}
