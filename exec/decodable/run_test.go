package decodable_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/passes/passtest"
)

var errSource = errors.New("fault of the source")

// stream yields utterances of all lengths. Every seventh can't be scored, and every eleventh has an
// error.
func stream(n int) iter.Seq2[decodable.Utterance, error] {
	return func(yield func(decodable.Utterance, error) bool) {
		for i := range n {
			u := decodable.Utterance{Key: fmt.Sprint("u", i), Features: random(1+i*37%83, 3, uint64(i)), Ivector: []float32{1, float32(i)}}
			if i%7 == 6 {
				u.Ivector = nil
			}
			var err error
			if i%11 == 10 {
				err = errSource
			}
			if !yield(u, err) {
				return
			}
		}
	}
}

// TestRun: outputs come in order, with the same bits for any number of workers, and failures are
// reported in order.
func TestRun(t *testing.T) {
	const n = 60
	s := scorer(t, smallConfig, decodable.Options{FramesPerChunk: 12, MinibatchSize: 2, Optimizer: passtest.Optimizer(t, "+fast_run")})
	var first []output
	for _, workers := range []int{1, 2, 5, 0} {
		var got []output
		var turns []string
		sum, err := s.Run(context.Background(), stream(n), func(u decodable.Utterance, m kernel.Matrix) error {
			got = append(got, output{u.Key, kernel.Clone(m)})
			turns = append(turns, u.Key)
			return nil
		}, decodable.RunOptions{Workers: workers, Failed: func(key string, err error) {
			if !errors.Is(err, errSource) && !errors.Is(err, decodable.ErrIvector) {
				t.Error(err)
			}
			turns = append(turns, key)
		}})
		if err != nil {
			t.Fatal(err)
		}
		frames, rows := 0, 0
		for i := range n {
			if turns[i] != fmt.Sprint("u", i) {
				t.Fatalf("%d workers: utterance %d is %s", workers, i, turns[i])
			}
			if i%7 != 6 && i%11 != 10 {
				frames += 1 + i*37%83
			}
		}
		for _, o := range got {
			rows += o.rows.Rows
		}
		if sum.Utterances != len(got) || sum.Utterances+sum.Failed != n || int(sum.Frames) != frames || int(sum.Rows) != rows ||
			sum.FirstResult <= 0 || sum.Elapsed < sum.FirstResult || sum.Busy <= 0 || sum.Busy > time.Duration(max(workers, runtime.GOMAXPROCS(0)))*sum.Elapsed || sum.Workspaces <= 0 || sum.Programs.Misses == 0 {
			t.Errorf("%d workers: %+v", workers, sum)
		}
		if first == nil {
			first = got
			continue
		}
		for i, o := range got {
			if !slices.Equal(o.rows.Data, first[i].rows.Data) {
				t.Errorf("%d workers: %s has other bits than with one", workers, o.key)
			}
		}
	}
}

// TestRunBounded: a slow writer doesn't keep more utterances in memory than documented.
func TestRunBounded(t *testing.T) {
	s := scorer(t, smallConfig, decodable.Options{})
	var read, written atomic.Int64
	counted := func(yield func(decodable.Utterance, error) bool) {
		for u, err := range stream(50) {
			read.Add(1)
			if !yield(u, err) {
				return
			}
		}
	}
	const workers = 2
	most := int64(0)
	_, err := s.Run(context.Background(), counted, func(decodable.Utterance, kernel.Matrix) error {
		most = max(most, read.Load()-written.Add(1))
		return nil
	}, decodable.RunOptions{Workers: workers, Failed: func(string, error) { written.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	if most > 2*workers+1 {
		t.Errorf("%d utterances were in memory", most)
	}
}

// TestRunEnds: a failing writer, a done context and a panicking source end the run, even while the
// source waits.
func TestRunEnds(t *testing.T) {
	s := scorer(t, smallConfig, decodable.Options{})
	never := make(chan struct{})
	defer close(never)
	waiting := func(yield func(decodable.Utterance, error) bool) {
		for u := range stream(3) {
			if !yield(u, nil) {
				return
			}
		}
		<-never
	}
	full := errors.New("disk full")
	sum, err := s.Run(context.Background(), waiting, func(u decodable.Utterance, m kernel.Matrix) error {
		if u.Key == "u2" {
			return full
		}
		return nil
	}, decodable.RunOptions{Workers: 2})
	if !errors.Is(err, full) || sum.Utterances != 2 || sum.Dropped != 1 {
		t.Errorf("%+v, %v", sum, err)
	}

	ctx, cancel := context.WithCancelCause(context.Background())
	sum, err = s.Run(ctx, waiting, func(u decodable.Utterance, m kernel.Matrix) error {
		if u.Key == "u2" {
			cancel(full)
		}
		return nil
	}, decodable.RunOptions{Workers: 2})
	if !errors.Is(err, full) || sum.Utterances != 3 {
		t.Errorf("%+v, %v", sum, err)
	}

	var told error
	sum, err = s.Run(context.Background(), func(yield func(decodable.Utterance, error) bool) {
		for u := range stream(2) {
			yield(u, nil)
		}
		panic("broken")
	}, func(decodable.Utterance, kernel.Matrix) error { return nil }, decodable.RunOptions{Failed: func(key string, err error) { told = err }})
	if err != nil || sum.Utterances != 2 || sum.Failed != 1 || !errors.Is(told, exec.ErrPanic) {
		t.Errorf("%+v, %v, told %v", sum, err, told)
	}
}

// TestNotFinite: utterances that are not finite are scored, reported and counted.
func TestNotFinite(t *testing.T) {
	s := scorer(t, smallConfig, decodable.Options{})
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	utterances := func(yield func(decodable.Utterance, error) bool) {
		for u := range stream(4) {
			switch u.Key {
			case "u1":
				kernel.Row(u.Features, 2)[1] = nan
				kernel.Row(u.Features, 3)[0] = nan
			case "u2":
				u.Ivector[1] = inf
			}
			if !yield(u, nil) {
				return
			}
		}
	}
	var told []string
	sum, err := s.Run(context.Background(), utterances, func(decodable.Utterance, kernel.Matrix) error { return nil }, decodable.RunOptions{Warned: func(key string, err error) {
		if !errors.Is(err, decodable.ErrNotFinite) {
			t.Error(err)
		}
		told = append(told, key+" "+err.Error())
	}})
	want := []string{"u1 not finite: the feature in row 2, column 1 is NaN", "u2 not finite: the i-vector in row 0, column 1 is -Inf"}
	if err != nil || sum.Utterances != 4 || sum.NotFinite != 2 || sum.Failed != 0 || !slices.Equal(told, want) {
		t.Errorf("%+v, %v, told %q", sum, err, told)
	}
}

// TestCancelledProgram: if a worker's context ends while it makes a program, another worker can
// make it.
func TestCancelledProgram(t *testing.T) {
	s := scorer(t, smallConfig, decodable.Options{FramesPerChunk: 12, Optimizer: passtest.Optimizer(t, "+fast_run")})
	ctx, cancel := context.WithCancelCause(context.Background())
	enough := errors.New("enough")
	cancel(enough)
	u := decodable.Utterance{Features: random(12, 3, 1), Ivector: []float32{1, 2}}
	if _, err := s.NewWorker().Score(ctx, u, kernel.Matrix{}); !errors.Is(err, enough) {
		t.Errorf("with a context that is done: %v", err)
	}
	if _, err := s.NewWorker().Score(context.Background(), u, kernel.Matrix{}); err != nil {
		t.Errorf("after it: %v", err)
	}
}
