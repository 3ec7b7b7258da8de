package decodable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
)

// slow is a scoring whose pieces take as long as their utterance says: those that begin with the
// feature -2 wait until their context is done, and those that begin with -3 wait for the end of the
// test.
type slow struct {
	counting
	end <-chan struct{}
}

func (s slow) newStaff() staff { return s }

func (s slow) score(ctx context.Context, u *Utterance, b batch, out kernel.Matrix) error {
	switch u.Features.Data[b.first] {
	case -2:
		<-ctx.Done()
		return context.Cause(ctx)
	case -3:
		<-s.end
		return errors.New("after the end")
	}
	return s.counting.score(ctx, u, b, out)
}

// TestLimit: an utterance that takes too long fails, even if its computation never ends, and all
// others are scored, in their order.
func TestLimit(t *testing.T) {
	for _, workers := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) { limited(t, workers) })
	}
}

func limited(t *testing.T, workers int) {
	const n = 40
	end := make(chan struct{})
	defer close(end)
	failed := make(map[string]error)
	next := 0
	sum, err := run(t.Context(), slow{end: end}, func(yield func(Utterance, error) bool) {
		for i := range n {
			u := Utterance{Key: fmt.Sprint(i), Features: kernel.New(9, 1)}
			switch i {
			case 7:
				u.Features.Data[4] = -2
			case 20:
				u.Features.Data[0] = -3
			case 33:
				u.Features.Data[8] = -3
			}
			if !yield(u, nil) {
				return
			}
		}
	}, func(u Utterance, r *Rows) error {
		m, err := r.Matrix(kernel.Matrix{})
		if err != nil {
			return err
		}
		for i := range m.Rows {
			if m.Data[i] != float32(i) {
				t.Errorf("utterance %s: row %d is %g", u.Key, i, m.Data[i])
			}
		}
		for failed[fmt.Sprint(next)] != nil {
			next++
		}
		if u.Key != fmt.Sprint(next) {
			t.Errorf("utterance %s comes in place of %d", u.Key, next)
		}
		next++
		return nil
	}, RunOptions{Workers: workers, Limit: 10 * time.Minute, Failed: func(key string, err error) { failed[key] = err }})
	if err != nil || sum.Utterances != n-3 || sum.Failed != 3 || sum.Dropped != 0 {
		t.Errorf("%+v, %v", sum, err)
	}
	for _, key := range []string{"7", "20", "33"} {
		if !errors.Is(failed[key], ErrLate) {
			t.Errorf("utterance %s: %v", key, failed[key])
		}
	}
}

// TestLoopedLimit: an utterance whose stream takes too long fails between two chunks, after the rows of
// those before, and the next one is scored from its beginning.
func TestLoopedLimit(t *testing.T) {
	nn, err := nnet3.ParseConfig(strings.NewReader("input-node name=input dim=1\ncomponent name=a type=NoOpComponent dim=1\n"+
		"component-node name=a component=a input=Sum(input, IfDefined(Offset(a, -1)))\noutput-node name=output input=a\n"), "sum", 1)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewStreamer(t.Context(), nn, Options{FramesPerChunk: 1})
	if err != nil {
		t.Fatal(err)
	}
	const short, long = 8, 3 * maxBlocks
	synctest.Test(t, func(t *testing.T) {
		failed, rows := make(map[string]error), make(map[string][]float32)
		sum, err := s.RunRows(t.Context(), func(yield func(Utterance, error) bool) {
			for _, key := range []string{"a", "b", "c"} {
				frames := short
				if key == "b" {
					frames = long
				}
				u := Utterance{Key: key, Features: kernel.New(frames, 1)}
				kernel.Fill(u.Features, 1)
				if !yield(u, nil) {
					return
				}
			}
		}, func(u Utterance, r *Rows) error {
			for {
				m, err := r.Next()
				if err != nil || m.Rows == 0 {
					return err
				}
				rows[u.Key] = append(rows[u.Key], m.Data...)
				time.Sleep(time.Minute) // a writer that is slow holds up a long utterance
			}
		}, RunOptions{Workers: 1, Limit: 20 * time.Minute, Failed: func(key string, err error) { failed[key] = err }})
		if err != nil || sum.Utterances != 2 || sum.Failed != 1 || !errors.Is(failed["b"], ErrLate) {
			t.Errorf("%+v, %v, %v", sum, failed, err)
		}
		if n := len(rows["b"]); n < maxBlocks || n >= long {
			t.Errorf("the long utterance has %d of %d rows", n, long)
		}
		if want := []float32{1, 2, 3, 4, 5, 6, 7, 8}; !slices.Equal(rows["a"], want) || !slices.Equal(rows["c"], want) {
			t.Errorf("the short ones have %v and %v, want %v", rows["a"], rows["c"], want)
		}
	})
}
