package pipeline_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/passes/passtest"
)

func TestMeasureCompile(t *testing.T) {
	nn, err := nnet3.ParseConfig(strings.NewReader(`input-node name=input dim=4
component name=a type=AffineComponent input-dim=8 output-dim=3
component-node name=a component=a input=Append(Offset(input, -1), input)
output-node name=output input=a`), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 40, Sequences: 8})
	if err != nil {
		t.Fatal(err)
	}
	patience := pipeline.Patience{Runs: 3}
	times, err := pipeline.MeasureCompile(t.Context(), nn, req, passtest.Optimizer(t, "+fast_run"), patience)
	if err != nil || times.Shortcut <= 0 || times.NoShortcut <= 0 || times.Optimize <= 0 || times.Runs != 3 {
		t.Errorf("%+v, %v", times, err)
	}
	if times, err = pipeline.MeasureCompile(t.Context(), nn, req, nil, patience); err != nil || times.Optimize != 0 {
		t.Errorf("without an optimizer: %+v, %v", times, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pipeline.MeasureCompile(ctx, nn, req, nil, patience); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := pipeline.MeasureCompile(t.Context(), nn, &computation.Request{}, nil, patience); err == nil {
		t.Error("a request for nothing was compiled")
	}
}
