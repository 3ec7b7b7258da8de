package measure_test

import (
	"context"
	"errors"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tool/networks/internal/measure"
)

func TestCompile(t *testing.T) {
	nn := smallNetwork(t)
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 40, Sequences: 8})
	if err != nil {
		t.Fatal(err)
	}
	patience := measure.Patience{Runs: 3}
	times, err := measure.Compile(t.Context(), nn, req, passtest.Optimizer(t, "+fast_run"), patience)
	if err != nil || times.Shortcut <= 0 || times.NoShortcut <= 0 || times.Optimize <= 0 || times.Runs != 3 {
		t.Errorf("%+v, %v", times, err)
	}
	if times, err = measure.Compile(t.Context(), nn, req, nil, patience); err != nil || times.Optimize != 0 {
		t.Errorf("without an optimizer: %+v, %v", times, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := measure.Compile(ctx, nn, req, nil, patience); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := measure.Compile(t.Context(), nn, &computation.Request{}, nil, patience); err == nil {
		t.Error("a request for nothing was compiled")
	}
}
