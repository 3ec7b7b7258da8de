package pipeline

import (
	"context"
	"strings"
	"testing"

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
	req, err := NewRequest(nn, Chunk{Frames: 7, Derivative: true})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Build(context.Background(), nn, req, Options{Optimizer: opt, Record: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.MeasureEffects(context.Background(), opt); err != nil {
		t.Fatal(err)
	}
	want, err := p.effectOf(p.Optimized)
	if err != nil {
		t.Fatal(err)
	}
	var got effect
	changes := 0
	if n, ok := p.Profile.Counter("commands"); !ok || int64(n) <= want.commands {
		t.Errorf("without a pass there are %g commands, with all %d", n, want.commands)
	}
	for _, r := range p.Profile.Children {
		if n, ok := r.Counter("commands"); ok {
			got.commands = int64(n)
			changes++
		}
		if n, ok := r.Counter("peak_bytes"); ok {
			got.peakBytes = int64(n)
		}
	}
	if got.commands != want.commands || got.peakBytes != want.peakBytes || changes < 3 {
		t.Errorf("%d changes end with %d commands and %d bytes, but there are %d and %d", changes, got.commands, got.peakBytes, want.commands, want.peakBytes)
	}
	if want.operations == 0 {
		t.Error("no operations")
	}
}
