package pipeline_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/rewrite"
)

const debugConfig = `
input-node name=input dim=4
component name=a type=NaturalGradientAffineComponent input-dim=12 output-dim=6
component-node name=a component=a input=Append(Offset(input, -1), input, Offset(input, 1))
component name=r type=RectifiedLinearComponent dim=6
component-node name=r component=r input=a
component name=b type=AffineComponent input-dim=6 output-dim=3
component-node name=b component=b input=Sum(r, Scale(0.5, Offset(r, 1)))
output-node name=output input=b`

// TestDebugMode: the error names a rule that changes values. Rules of the standard database pass.
func TestDebugMode(t *testing.T) {
	nn, err := nnet3.ParseConfig(strings.NewReader(debugConfig), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	// The rule forgets one of the terms of a sum.
	forget := rewrite.Rule{
		Name: "forget", Doc: "forgets a term", On: []rewrite.Track{rewrite.TrackType[*lower.Assemble]()},
		Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			op := a.Op().(*lower.Assemble)
			if len(op.Terms) != 2 || op.Terms[1].Scale == 1 && op.Terms[0].Scale == 1 {
				return c.Miss("no scaled sum of two"), nil
			}
			return rewrite.Replace(lower.NewAssemble(op.Rows, op.Cols, slices.Clone(op.Terms[:1]), a.Inputs())), nil
		},
	}
	build := func(query string, train bool, with ...rewrite.NodeRewriter) error {
		db := passes.Default()
		for _, r := range with {
			if err := db.Add(optdb.Entry{Name: "late", Doc: "a pass of the test", Rewriter: rewrite.In2Out("late", r), Position: 1.95, Tags: []string{"fast_run"}}); err != nil {
				t.Fatal(err)
			}
		}
		q, err := optdb.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		opt, err := db.Build(q)
		if err != nil {
			t.Fatal(err)
		}
		req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 7, Derivative: train})
		if err != nil {
			t.Fatal(err)
		}
		_, err = pipeline.Build(context.Background(), nn, req, pipeline.Options{Optimizer: opt})
		return err
	}
	for _, train := range []bool{false, true} {
		for _, query := range []string{"debug", "debug -inplace", "debug -fusion"} {
			if err := build(query, train); err != nil {
				t.Errorf("%s, training %t: %v", query, train, err)
			}
		}
		if err := build("fast_run", train, forget); err != nil {
			t.Errorf("not in debug mode: %v", err)
		}
		err := build("debug", train, forget)
		if !errors.Is(err, pipeline.ErrValues) || !strings.Contains(err.Error(), "late/forget: ") || !strings.Contains(err.Error(), "output differs by") {
			t.Errorf("a rule that changes values, training %t: %v", train, err)
		}
	}
}

// TestDebugDraws: a rule that is wrong for some inputs alone is found, whichever are drawn first.
func TestDebugDraws(t *testing.T) {
	drop := rewrite.Rule{
		Name: "drop", Doc: "drops a rectifier, which is right for positive inputs", On: []rewrite.Track{rewrite.TrackType[lower.Propagate]()},
		Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			return rewrite.Replace(a.Inputs()[0]), nil
		},
	}
	for _, sign := range []string{"1", "-1"} {
		nn, err := nnet3.ParseConfig(strings.NewReader("input-node name=input dim=1\ncomponent name=r type=RectifiedLinearComponent dim=1\n"+
			"component-node name=r component=r input=Scale("+sign+", input)\noutput-node name=output input=r\n"), "config", 1)
		if err != nil {
			t.Fatal(err)
		}
		db := passes.Default()
		if err := db.Add(optdb.Entry{Name: "late", Doc: "a pass of the test", Rewriter: rewrite.In2Out("late", drop), Position: 1.95, Tags: []string{"fast_run"}}); err != nil {
			t.Fatal(err)
		}
		debug, _ := optdb.Mode(optdb.ModeDebug)
		opt, err := db.Build(debug)
		if err != nil {
			t.Fatal(err)
		}
		req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = pipeline.Build(t.Context(), nn, req, pipeline.Options{Optimizer: opt}); !errors.Is(err, pipeline.ErrValues) || !strings.Contains(err.Error(), "late/drop: ") {
			t.Errorf("%s: %v", sign, err)
		}
	}
}

// TestBudget: with any budget of rewrites and storage decisions, the passes leave a correct
// computation. With none, they don't change the graph.
func TestBudget(t *testing.T) {
	nn, err := nnet3.ParseConfig(strings.NewReader(debugConfig), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	debug, _ := optdb.Mode(optdb.ModeDebug)
	opt, err := passes.Default().Build(debug)
	if err != nil {
		t.Fatal(err)
	}
	for _, train := range []bool{false, true} {
		req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 7, Derivative: train})
		if err != nil {
			t.Fatal(err)
		}
		made := make(map[string]int)
		build := func(budget int) *pipeline.Plan {
			clear(made)
			ctx := rewrite.WithOptions(t.Context(), rewrite.Options{Allow: rewrite.Budget(budget), Trace: func(e rewrite.Event) {
				if e.Err == nil {
					made[e.Pass]++
				}
			}})
			p, err := pipeline.Build(ctx, nn, req, pipeline.Options{Optimizer: opt, Record: true})
			if err != nil {
				t.Fatalf("training %t, budget %d: %v", train, budget, err)
			}
			return p
		}
		build(1 << 30)
		total := 0
		for _, n := range made {
			total += n
		}
		if made["plan_storage"] != 1 || made["remove_assignments"] != 1 {
			t.Errorf("training %t: %v", train, made)
		}
		for budget := 0; budget < total; budget += 1 + total/12 {
			p := build(budget)
			n := 0
			for _, k := range made {
				n += k
			}
			if n != budget || budget == 0 && p.Profile.Changed != 0 {
				t.Errorf("training %t, budget %d: %v, %d changes of the graph", train, budget, made, p.Profile.Changed)
			}
		}
	}
}

// TestDebugGlobalPass: the error names the rewrite of a global pass that changes values.
func TestDebugGlobalPass(t *testing.T) {
	nn, err := nnet3.ParseConfig(strings.NewReader(debugConfig), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	// The pass copies every sum, and forgets a term of those with a scale.
	careless := rewrite.Global{Name: "careless", Doc: "copies sums", Fn: func(_ context.Context, h *rewrite.Handle) error {
		for _, a := range slices.Collect(h.Graph().Ordered()) {
			op, ok := a.Op().(*lower.Assemble)
			if !ok {
				continue
			}
			terms := slices.Clone(op.Terms)
			if slices.ContainsFunc(terms, func(t lower.Term) bool { return t.Scale == 0.5 }) {
				terms = terms[:1]
			}
			copied := lower.NewAssemble(op.Rows, op.Cols, terms, a.Inputs())
			if _, err := h.Replace("copy", a, fgraph.Replacement{Old: a.Out(), New: copied}); err != nil {
				return err
			}
		}
		return nil
	}}
	db := passes.Default()
	if err := db.Register("careless", careless, 1.95, "fast_run"); err != nil {
		t.Fatal(err)
	}
	debug, _ := optdb.Mode(optdb.ModeDebug)
	opt, err := db.Build(debug.Excluding("fusion"))
	if err != nil {
		t.Fatal(err)
	}
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 7})
	if err != nil {
		t.Fatal(err)
	}
	_, err = pipeline.Build(t.Context(), nn, req, pipeline.Options{Optimizer: opt})
	if !errors.Is(err, pipeline.ErrValues) || !strings.Contains(err.Error(), "to blame: careless/copy: Sum{") {
		t.Error(err)
	}
}

// TestDebugComponent: the error names a component that overwrites its input, and blames no pass.
func TestDebugComponent(t *testing.T) {
	nn, err := nnet3.ParseConfig(strings.NewReader(debugConfig), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.Index(nn.ComponentNames, "b")
	nn.Components[i] = scribbler{nn.Components[i]}
	debug, _ := optdb.Mode(optdb.ModeDebug)
	opt, err := passes.Default().Build(debug.Excluding("fusion"))
	if err != nil {
		t.Fatal(err)
	}
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 7})
	if err != nil {
		t.Fatal(err)
	}
	_, err = pipeline.Build(t.Context(), nn, req, pipeline.Options{Optimizer: opt})
	if !errors.Is(err, fgraph.ErrDeclaration) || !strings.Contains(err.Error(), "b, a AffineComponent, overwrites element 0") {
		t.Error(err)
	}
}

// scribbler is a component that overwrites its input.
type scribbler struct{ component.Component }

func (s scribbler) Propagate(w *component.Workspace, pass component.ForwardPass, in, out kernel.Matrix) (component.Memo, error) {
	memo, err := s.Component.Propagate(w, pass, in, out)
	in.Data[0]++
	return memo, err
}

// TestDebugEqualOutputs: two outputs that are the same part of a value are copied twice. A pass
// tries to merge the copies after storage is planned, which is vetoed, and no check complains.
func TestDebugEqualOutputs(t *testing.T) {
	const config = `
input-node name=input dim=4
component name=a type=AffineComponent input-dim=4 output-dim=6
component-node name=a component=a input=input
dim-range-node name=r input-node=a dim-offset=2 dim=2
output-node name=output input=r
output-node name=output2 input=r`
	nn, err := nnet3.ParseConfig(strings.NewReader(config), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	q, err := optdb.ParseQuery("debug")
	if err != nil {
		t.Fatal(err)
	}
	opt, err := passes.Default().Build(q)
	if err != nil {
		t.Fatal(err)
	}
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 7})
	if err != nil {
		t.Fatal(err)
	}
	second := req.Outputs[0]
	second.Name = "output2"
	req.Outputs = append(req.Outputs[:1:1], second)
	if _, err := pipeline.Build(context.Background(), nn, req, pipeline.Options{Optimizer: opt}); err != nil {
		t.Error(err)
	}
}
