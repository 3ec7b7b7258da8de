package model_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec/model"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestBatcher: requests of any sizes, at a time, get the bits that they get alone; one that fails fails alone.
func TestBatcher(t *testing.T) {
	m, err := model.Parse(encoder)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []model.BatcherOptions{{}, {MaxRows: 5, MaxWait: time.Millisecond, Workers: 2}, {MaxRows: 1}} {
		b, err := m.NewBatcher(o)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for g := range uint64(24) {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(1, g))
				for range longtest.Of(20, 500) {
					rows, n := r.IntN(4)+1, r.IntN(3)+1
					ids, mask := array.New(array.Int64, rows, n), array.Full(array.Int64, 1, rows, n)
					for i := range ids.Len() {
						ids.SetInt(i, int64(1+r.IntN(7)))
					}
					bad := r.IntN(10) == 0
					if bad {
						ids.SetInt(r.IntN(ids.Len()), 99)
					}
					in := model.Inputs{"input_ids": ids, "attention_mask": mask}
					want, alone := m.Run(t.Context(), in)
					got, err := b.Run(t.Context(), in)
					if bad != (err != nil) || bad != (alone != nil) || !bad && !array.Equal(got["embedding"], want["embedding"]) {
						t.Errorf("%v, %v; alone %v, %v", got, err, want, alone)
						return
					}
				}
			})
		}
		wg.Wait()
		b.Close()
	}
}

// TestBatcherEnds: requests leave with their contexts, and those that were accepted are computed before Close.
func TestBatcherEnds(t *testing.T) {
	m, err := model.Parse(encoder)
	if err != nil {
		t.Fatal(err)
	}
	b, err := m.NewBatcher(model.BatcherOptions{MaxRows: 1000, MaxWait: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var started, wg sync.WaitGroup
	for i := range 20 {
		started.Add(1)
		wg.Go(func() {
			own := t.Context()
			if i%2 == 1 {
				own = ctx
			}
			started.Done()
			out, err := b.Run(own, encoded(1))
			if i%2 == 1 && !errors.Is(err, context.Canceled) || i%2 == 0 && (err != nil || out["embedding"].Float(0) != 1) {
				t.Errorf("request %d: %v, %v", i, out, err)
			}
		})
	}
	started.Wait()
	time.Sleep(20 * time.Millisecond) // all wait for others
	cancel()
	time.Sleep(20 * time.Millisecond)
	b.Close()
	wg.Wait()
	if _, err := b.Run(t.Context(), encoded(1)); !errors.Is(err, model.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// TestNoBatches: models whose rows are not those of all inputs and outputs are refused, before or when it shows.
func TestNoBatches(t *testing.T) {
	x := value("x", onnx.Float, "n", 2)
	for _, c := range []*onnx.Model{
		made(nil, nil),
		made([]*onnx.ValueInfo{value("x", onnx.Float, 1, 2)}, []*onnx.ValueInfo{{Name: "y"}}, node("Relu", "x", "y")),
		made([]*onnx.ValueInfo{x, value("z", onnx.Float, "m", 2)}, []*onnx.ValueInfo{{Name: "y"}}, node("Add", "x z", "y")),
		made([]*onnx.ValueInfo{x, value("z", onnx.Float)}, []*onnx.ValueInfo{{Name: "y"}}, node("Add", "x z", "y")),
		made([]*onnx.ValueInfo{x}, []*onnx.ValueInfo{value("y", onnx.Float, 1)}, node("ReduceSum", "x", "y")),
	} {
		if _, err := opened(t, c, model.Options{}).NewBatcher(model.BatcherOptions{}); !errors.Is(err, model.ErrInput) {
			t.Errorf("%v", err)
		}
	}
	b, err := opened(t, made([]*onnx.ValueInfo{x}, []*onnx.ValueInfo{{Name: "y"}}, node("ReduceSum", "x", "y")), model.Options{}).NewBatcher(model.BatcherOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.Run(t.Context(), model.Inputs{"x": [][]float32{{1, 2}, {3, 4}}}); err == nil || !strings.Contains(err.Error(), "no batches: output y") {
		t.Errorf("%v", err)
	}
	if _, err := b.Run(t.Context(), model.Inputs{"x": [][]float32{}}); !errors.Is(err, model.ErrInput) {
		t.Errorf("no rows: %v", err)
	}
}
