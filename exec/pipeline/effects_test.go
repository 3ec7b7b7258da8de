package pipeline_test

import (
	"context"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

// TestMeasureEffects: the effects of the passes add up to the whole effect.
func TestMeasureEffects(t *testing.T) {
	nn, err := nnet3.ParseConfig(strings.NewReader(debugConfig), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	opt, err := passes.Default().Build(optdb.Include("fast_run"))
	if err != nil {
		t.Fatal(err)
	}
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 7, Derivative: true})
	if err != nil {
		t.Fatal(err)
	}
	p, err := pipeline.Build(context.Background(), nn, req, pipeline.Options{Optimizer: opt, Record: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.MeasureEffects(context.Background(), opt); err != nil {
		t.Fatal(err)
	}
	program, err := exec.NewProgram(p.Optimized, nn)
	if err != nil {
		t.Fatal(err)
	}
	wantCommands, wantBytes := len(p.Optimized.Commands), p.Optimized.MaxMemory()
	commands, peakBytes, changes := 0, int64(0), 0
	if n, ok := p.Profile.Counter("commands"); !ok || int(n) <= wantCommands {
		t.Errorf("without a pass there are %g commands, with all %d", n, wantCommands)
	}
	for _, r := range p.Profile.Children {
		if n, ok := r.Counter("commands"); ok {
			commands = int(n)
			changes++
		}
		if n, ok := r.Counter("peak_bytes"); ok {
			peakBytes = int64(n)
		}
	}
	if commands != wantCommands || peakBytes != wantBytes || changes < 3 {
		t.Errorf("%d changes end with %d commands and %d bytes, but there are %d and %d", changes, commands, peakBytes, wantCommands, wantBytes)
	}
	if program.Operations() == 0 {
		t.Error("no operations")
	}
}
