package models

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/internal/tune"
)

// A tuned is a model that is run under any query: lowered to a graph of tensors, as bench does.
type tuned struct {
	*opened
	dir            string
	inputs, others map[string]*array.Array
	drawn          bool // others differ from inputs
	// A classifier may be certain about noise. Then it is blind, and what its last nodes read is compared as
	// well. That shows at the first function, of the query to begin with.
	asked, blind bool
}

// tune returns how a model is run under any query.
func (f *modelFlags) tune(_ context.Context, _ *tool.Console, arg string) (*tune.Subject, error) {
	s, err := f.open(arg)
	if err != nil {
		return nil, err
	}
	t := &tuned{opened: s, dir: filepath.Dir(arg)}
	var drawn []string
	if t.inputs, drawn, err = f.Options.arguments(f.arguments, s.model); err != nil {
		return nil, err
	}
	t.drawn = len(drawn) > 0
	f.arguments.seed++
	if t.others, _, err = f.arguments.arguments(s.model); err != nil {
		return nil, err
	}
	sub := &tune.Subject{Differ: distance, Make: t.make}
	sub.Profile = func(ctx context.Context, opt *optdb.Optimizer) (records []*profile.Record, err error) {
		records, sub.Dialects, err = t.profile(ctx, opt)
		return records, err
	}
	return sub, nil
}

func (t *tuned) lowered(ctx context.Context, m *onnx.Model, opt *optdb.Optimizer, record bool) (*session.Function, error) {
	o := t.lowering(t.dir, opt)
	o.Profile = record
	return session.Model(ctx, m, o, t.inputs)
}

// profile returns the records of an optimizer, and the dialects of what it changed: nodes are optimized first, and
// then tensors.
func (t *tuned) profile(ctx context.Context, opt *optdb.Optimizer) ([]*profile.Record, []string, error) {
	g, err := t.graph()
	if err != nil {
		return nil, nil, err
	}
	rec := profile.New(opt.Name(), opt.Class())
	if err := opt.Rewrite(ctx, g, rec); err != nil {
		return nil, nil, err
	}
	rec.End()
	fn, err := t.lowered(ctx, t.model, opt, true)
	if err != nil {
		return nil, nil, err
	}
	return []*profile.Record{rec.Record(), fn.NewRunner().Profile().Optimizer}, []string{ir.Dialect, fn.Graph().Dialect()}, nil
}

// make makes the model for an optimizer.
func (t *tuned) make(ctx context.Context, opt *optdb.Optimizer) (*tune.Made, error) {
	fn, err := t.lowered(ctx, t.model, opt, false)
	if err != nil {
		return nil, err
	}
	if !t.asked {
		if t.blind, err = t.same(ctx, fn); err != nil {
			return nil, err
		}
		t.asked = true
	}
	checked := fn
	if t.blind {
		if checked, err = t.lowered(ctx, withSources(t.model), opt, false); err != nil {
			return nil, err
		}
	}
	runner := fn.NewRunner()
	return &tune.Made{
		Form: tune.Form(fn.Graph()),
		Run: func(ctx context.Context) error {
			_, err := runner.Run(ctx, t.inputs)
			return err
		},
		Outputs: func(ctx context.Context) (any, error) { return checked.Call(ctx, t.inputs) },
		Others:  func(ctx context.Context) (any, error) { return t.other(ctx, checked) },
	}, nil
}

// other returns the outputs for other inputs, nil if these can't differ.
func (t *tuned) other(ctx context.Context, fn *session.Function) (any, error) {
	if !t.drawn {
		return nil, nil
	}
	outputs, err := fn.Call(ctx, t.others)
	if errors.Is(err, lower.ErrInput) { // which would make another graph
		return nil, nil
	}
	return outputs, err
}

// same reports whether a function has the same outputs for other inputs.
func (t *tuned) same(ctx context.Context, fn *session.Function) (bool, error) {
	a, err := fn.Call(ctx, t.inputs)
	if err != nil {
		return false, err
	}
	b, err := t.other(ctx, fn)
	return b != nil && distance(b, a) == 0, err
}

// withSources returns a model with more outputs: the values that the nodes read that make its outputs.
func withSources(m *onnx.Model) *onnx.Model {
	c, g := *m, *m.Graph
	c.Graph, g.Outputs = &g, slices.Clone(g.Outputs)
	known, made := make(map[string]bool), make(map[string]bool)
	for _, o := range g.Outputs {
		known[o.Name] = true
	}
	for _, n := range g.Nodes {
		makes := slices.ContainsFunc(n.Outputs, func(name string) bool {
			return name != "" && slices.ContainsFunc(m.Graph.Outputs, func(o *onnx.ValueInfo) bool { return o.Name == name })
		})
		for _, name := range n.Inputs {
			if makes && made[name] && !known[name] {
				known[name] = true
				g.Outputs = append(g.Outputs, &onnx.ValueInfo{Name: name})
			}
		}
		for _, name := range n.Outputs {
			made[name] = true
		}
	}
	return &c
}

// distance returns the largest distance of outputs from those that are wanted.
func distance(got, want any) float64 {
	most := 0.0
	for name, a := range want.(map[string]*array.Array) {
		most = max(most, array.Distance(got.(map[string]*array.Array)[name], a))
	}
	return most
}
