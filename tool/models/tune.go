package models

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/tune"
)

// tune returns how a model is run under any query: lowered to a graph of tensors, as bench does.
func (f *modelFlags) tune(ctx context.Context, _ *tool.Console, arg string) (*tune.Subject, error) {
	f.passes.Without(lower.FreeTags()...)
	s, err := f.open(arg)
	if err != nil {
		return nil, err
	}
	inputs, drawn, err := f.Options.arguments(f.arguments, s.model)
	if err != nil {
		return nil, err
	}
	f.arguments.seed++
	others, _, err := f.arguments.arguments(s.model)
	if err != nil {
		return nil, err
	}
	lowered := func(ctx context.Context, m *onnx.Model, opt *optdb.Optimizer, record bool) (*lower.Function, error) {
		o := f.lowering(filepath.Dir(arg), opt)
		o.Profile = record
		return lower.Model(ctx, m, o, inputs)
	}
	// results computes the outputs of inputs and of others, if they may differ.
	results := func(fn *lower.Function) (own, other func(ctx context.Context) (any, error)) {
		own = func(ctx context.Context) (any, error) { return fn.Call(ctx, inputs) }
		return own, func(ctx context.Context) (any, error) {
			outputs, err := fn.Call(ctx, others)
			if len(drawn) == 0 || errors.Is(err, lower.ErrInput) { // which would make another graph
				return nil, nil
			}
			return outputs, err
		}
	}
	// A classifier may be certain about noise. Then what its last nodes read is compared as well. That shows
	// at the first function, of the query to begin with.
	first, blind := true, false
	t := &tune.Subject{Differ: distance}
	t.Profile = func(ctx context.Context, opt *optdb.Optimizer) ([]*profile.Record, error) {
		// Nodes are optimized first, and then tensors.
		g, err := s.graph()
		if err != nil {
			return nil, err
		}
		rec := profile.New(opt.Name(), opt.Class())
		if err := opt.Rewrite(ctx, g, rec); err != nil {
			return nil, err
		}
		rec.End()
		fn, err := lowered(ctx, s.model, opt, true)
		if err != nil {
			return nil, err
		}
		t.Dialects = []string{ir.Dialect, fn.Graph().Dialect()}
		return []*profile.Record{rec.Record(), fn.NewRunner().Profile().Optimizer}, nil
	}
	t.Make = func(ctx context.Context, opt *optdb.Optimizer) (*tune.Made, error) {
		fn, err := lowered(ctx, s.model, opt, false)
		if err != nil {
			return nil, err
		}
		checked := fn
		if first {
			if blind, err = same(ctx, results, fn); err != nil {
				return nil, err
			}
			first = false
		}
		if blind {
			if checked, err = lowered(ctx, withSources(s.model), opt, false); err != nil {
				return nil, err
			}
		}
		runner := fn.NewRunner()
		made := &tune.Made{
			Form: tune.Form(fn.Graph()),
			Run: func(ctx context.Context) error {
				_, err := runner.Run(ctx, inputs)
				return err
			},
		}
		made.Outputs, made.Others = results(checked)
		return made, nil
	}
	return t, nil
}

// same reports whether a function has the same outputs for other inputs.
func same(ctx context.Context, results func(*lower.Function) (own, other func(context.Context) (any, error)), fn *lower.Function) (bool, error) {
	own, other := results(fn)
	a, err := own(ctx)
	if err != nil {
		return false, err
	}
	b, err := other(ctx)
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
