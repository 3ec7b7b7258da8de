package view_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tool/internal/view"
	"github.com/nnopt/nnopt/tool/networks"
)

// looped records the optimization of a looped computation, which has several segments.
func looped(t *testing.T, file string) (*view.Subject, *computation.Computation, *computation.Computation) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	nn, _, err := pipeline.LoadFrom(f, file, 20)
	if err != nil {
		t.Fatal(err)
	}
	nn.SetTestMode(true)
	left, right, err := compile.Context(nn)
	if err != nil {
		t.Fatal(err)
	}
	chunk := compile.ChunkSize(nn, 3, 20)
	if nn, err = compile.WithIvectorPeriod(nn, chunk); err != nil {
		t.Fatal(err)
	}
	requests, err := compile.LoopedRequests(nn, compile.LoopedConfig{FramesPerChunk: chunk, FrameSubsampling: 3, LeftContext: left, RightContext: right})
	if err != nil {
		t.Fatal(err)
	}
	before, err := compile.Looped(nn, requests, compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	opt, r := build(t, "+fast_run"), view.NewRecorder()
	rec := profile.New(opt.Name(), opt.Class())
	after, err := passes.Optimize(r.Watch(t.Context()), before, nn, opt, rec)
	if err != nil {
		t.Fatal(err)
	}
	rec.End()
	net := networks.Code(before, after, computation.NewNetworkInfo(nn, after.Derived))
	run := func(ctx context.Context) error {
		_, err := passes.Optimize(ctx, before, nn, opt, nil)
		return err
	}
	return &view.Subject{Recording: r.Recording(opt, rec.Record(), net), Optimizer: opt, Run: run}, before, after
}

// TestSegments: the graphs of a looped computation are recorded one after the other.
func TestSegments(t *testing.T) {
	s, before, after := looped(t, "../../networks/demo/tdnnf.config")
	if err := s.AddMisses(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := s.Recording
	checkCommands(t, r, newState(r), r.Commands.Before, before.Commands)
	checkPasses(t, r)
	st := newState(r)
	asked, segments := 0, make(map[int32]bool)
	for k, step := range r.Steps {
		if pass := r.Passes[step.Pass]; step.At != nil && len(step.Replaced) == 1 && strings.HasPrefix(step.Rule, "local_") && !segments[r.Nodes[*step.At].Segment] {
			answers, err := s.WhyNot(t.Context(), k, *step.At, step.Rule)
			if err != nil || len(answers) == 0 || !strings.HasPrefix(answers[0].Text, "it fires: ") {
				t.Errorf("step %d, %s/%s: %v, %v", k, pass.Name, step.Rule, answers, err)
			}
			asked, segments[r.Nodes[*step.At].Segment] = asked+1, true
		}
		if err := st.step(k); err != nil {
			t.Fatal(err)
		}
	}
	checkCommands(t, r, st, r.Commands.After, after.Commands)
	inSegment := make(map[int32]int)
	for _, m := range r.Misses {
		inSegment[r.Nodes[m.Node].Segment]++
		parent := r.Passes[r.Passes[m.Pass].Parent].Name
		if want := fmt.Sprintf("segment %d", r.Nodes[m.Node].Segment+1); parent != want {
			t.Errorf("a node of %s is asked in %s", want, parent)
		}
	}
	if len(inSegment) < 3 || asked < 2 {
		t.Errorf("misses in segments: %v; %d rules asked", inSegment, asked)
	}
}
