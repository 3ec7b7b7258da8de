package decodable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

var errPiece = errors.New("fault of a piece")

// counting scores utterances in pieces of two rows, whose elements are their numbers. Pieces that
// begin with the feature -1 fail.
type counting struct{}

func (counting) cut(u *Utterance) (pieces []batch, err error) {
	for first := 0; first < u.Features.Rows; first += 2 {
		pieces = append(pieces, batch{shape: shape{rows: min(2, u.Features.Rows-first), sequences: 1}, first: first})
	}
	return pieces, nil
}

func (counting) outputShape(frames int) (rows, cols int) { return frames, 1 }
func (counting) newStaff() staff                         { return counting{} }
func (counting) window(workers int) int                  { return 2*workers + 1 }
func (counting) cacheStats() CacheStats                  { return CacheStats{} }
func (counting) begin(context.Context, []batch) error    { return nil }
func (counting) used() (time.Duration, int64)            { return 0, 0 }
func (counting) score(_ context.Context, u *Utterance, b batch, out kernel.Matrix) error {
	if u.Features.Data[b.first] == -1 {
		return errPiece
	}
	for i := range out.Rows {
		out.Data[i] = float32(b.first + i)
	}
	return nil
}

// flowCounting is counting with rows that come as streams.
type flowCounting struct{ counting }

func (s flowCounting) cut(u *Utterance) ([]batch, error) { return make([]batch, 1), nil }
func (s flowCounting) newStaff() staff                   { return s }
func (s flowCounting) window(workers int) int            { return workers + 1 }
func (s flowCounting) newFlow(done chan struct{}) *flow  { return newFlow(done, maxAhead/3) }
func (s flowCounting) feed(ctx context.Context, u *Utterance, to *flow) error {
	pieces, err := s.counting.cut(u)
	for _, b := range pieces {
		out := kernel.New(b.rows, 1)
		if err = s.score(ctx, u, b, out); err == nil {
			err = to.put(ctx, out)
		}
		if err != nil {
			break
		}
	}
	return err
}

// TestFlowIsBounded: a worker does not run further ahead of the writer than there are blocks, and
// the writer gets rows before the last ones are there.
func TestFlowIsBounded(t *testing.T) {
	const rows = 2000
	u := Utterance{Key: "long", Features: kernel.New(rows, 1)}
	s := &aheadCounting{}
	sum, err := run(t.Context(), s, func(yield func(Utterance, error) bool) { yield(u, nil) }, func(u Utterance, r *Rows) error {
		for at := 0; ; {
			m, err := r.Next()
			if err != nil || m.Rows == 0 {
				return err
			}
			if m.Data[0] != float32(at) {
				t.Fatalf("row %d is %v", at, m.Data[0])
			}
			// Three blocks are full or handed out, and the next waits to be put.
			if at += m.Rows; int(s.scored.Load()) > at+3*2 {
				t.Fatalf("%d rows are scored when %d are written", s.scored.Load(), at)
			}
		}
	}, RunOptions{Workers: 1})
	if err != nil || sum.Rows != rows || s.scored.Load() != rows {
		t.Errorf("%+v, %v", sum, err)
	}
}

// aheadCounting counts the rows that are scored.
type aheadCounting struct {
	flowCounting
	scored atomic.Int64
}

func (s *aheadCounting) newStaff() staff { return s }
func (s *aheadCounting) feed(ctx context.Context, u *Utterance, to *flow) error {
	for at := 0; at < u.Features.Rows; at += 2 {
		s.scored.Add(2)
		if err := to.put(ctx, kernel.Matrix{Rows: 2, Cols: 1, Stride: 1, Data: []float32{float32(at), float32(at + 1)}}); err != nil {
			return err
		}
	}
	return nil
}

// TestLateFailures: an utterance whose later piece fails is taken back and counted, and others are
// scored, and any part of it may be read.
func TestLateFailures(t *testing.T) {
	for _, s := range []scoring{counting{}, flowCounting{}} {
		testLateFailures(t, s)
	}
}

func testLateFailures(t *testing.T, s scoring) {
	const n = 40
	utterances := func(yield func(Utterance, error) bool) {
		for i := range n {
			u := Utterance{Key: fmt.Sprintf("u%02d", i), Features: kernel.New(1+i%9, 1)}
			if i%5 == 4 {
				u.Features.Data[i%9/2*2] = -1
			}
			if !yield(u, nil) {
				return
			}
		}
	}
	dir := t.TempDir()
	for workers := 1; workers <= 3; workers++ {
		name := fmt.Sprint(dir, "/", workers)
		w, err := kaldiio.NewTableWriter(new(kaldiio.Opener), "ark:"+name, func(w *kaldiio.Writer, r *Rows) { r.Write(w) })
		if err != nil {
			t.Fatal(err)
		}
		failed := 0
		sum, err := run(t.Context(), s, utterances, func(u Utterance, r *Rows) error {
			return w.Write(u.Key, r)
		}, RunOptions{Workers: workers, Failed: func(key string, err error) {
			if failed++; !errors.Is(err, errPiece) {
				t.Errorf("%s: %v", key, err)
			}
		}})
		if closeErr := w.Close(); err != nil || closeErr != nil || sum.Utterances != n*4/5 || sum.Failed != n/5 || failed != n/5 || sum.Dropped != 0 {
			t.Errorf("%+v, %v, %v", sum, err, closeErr)
		}
		table, err := kaldiio.NewTableReader(new(kaldiio.Opener), "ark:"+name, kaldiio.MatrixHolder())
		if err != nil {
			t.Fatal(err)
		}
		objects := 0
		for key, m := range table.All() {
			objects++
			for i, v := range m.Data {
				if int(v) != i {
					t.Errorf("%s: row %d is %v", key, i, v)
				}
			}
		}
		if err := table.Close(); err != nil || objects != n*4/5 {
			t.Errorf("%d objects, %v", objects, err)
		}

		sum, err = run(t.Context(), s, utterances, func(u Utterance, r *Rows) error {
			if _, err := r.Next(); err != nil {
				t.Errorf("the first piece of %s: %v", u.Key, err)
			}
			return nil // the rest is not read
		}, RunOptions{Workers: workers})
		if err != nil || sum.Utterances+sum.Failed != n {
			t.Errorf("%+v, %v", sum, err)
		}

		pipe, err := kaldiio.NewTableWriter(&kaldiio.Opener{Stdout: io.Discard}, "ark:-", func(w *kaldiio.Writer, r *Rows) { r.Write(w) })
		if err != nil {
			t.Fatal(err)
		}
		sum, err = run(t.Context(), s, utterances, func(u Utterance, r *Rows) error { return pipe.Write(u.Key, r) }, RunOptions{Workers: workers})
		if !errors.Is(err, errPiece) || sum.Utterances >= n*4/5 {
			t.Errorf("a pipe that is torn: %+v, %v", sum, err)
		}
	}
}
