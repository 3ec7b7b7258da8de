package measure_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/tool/networks/internal/measure"
)

func smallNetwork(t *testing.T) *nnet3.Nnet {
	t.Helper()
	nn, err := nnet3.ParseConfig(strings.NewReader(`input-node name=input dim=4
component name=a type=AffineComponent input-dim=8 output-dim=3
component-node name=a component=a input=Append(Offset(input, -1), input)
output-node name=output input=a`), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	return nn
}

func TestRuns(t *testing.T) {
	nn := smallNetwork(t)
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 6, Derivative: true})
	if err != nil {
		t.Fatal(err)
	}
	p, err := pipeline.Build(t.Context(), nn, req, pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in, err := pipeline.RandomValues(nn, req, 3)
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.NewProgram(p.Compiled, nn)
	if err != nil {
		t.Fatal(err)
	}
	timing := new(exec.Timing)
	times, err := measure.Runs(t.Context(), program, nn, in, measure.Patience{}, exec.ComputerOptions{Timing: timing})
	if err != nil || times.Best <= 0 || times.Median < times.Best || times.Runs != 7 || timing.Total() < times.Best-times.Renew {
		t.Errorf("%+v, %v in commands, error %v", times, timing.Total(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := measure.Runs(ctx, program, nn, in, measure.Patience{}, exec.ComputerOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled measurement ends with %v", err)
	}
}
