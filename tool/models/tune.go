package models

import (
	"context"
	"errors"
	"path/filepath"

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
	inputs, drawn, err := f.arguments.arguments(s.model)
	if err != nil {
		return nil, err
	}
	f.arguments.seed++
	others, _, err := f.arguments.arguments(s.model)
	if err != nil {
		return nil, err
	}
	lowered := func(ctx context.Context, opt *optdb.Optimizer, record bool) (*lower.Function, error) {
		o := f.lowering(filepath.Dir(arg), opt)
		o.Profile = record
		return lower.Model(ctx, s.model, o, inputs)
	}
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
		fn, err := lowered(ctx, opt, true)
		if err != nil {
			return nil, err
		}
		t.Dialects = []string{ir.Dialect, fn.Graph().Dialect()}
		return []*profile.Record{rec.Record(), fn.NewRunner().Profile().Optimizer}, nil
	}
	t.Make = func(ctx context.Context, opt *optdb.Optimizer) (*tune.Made, error) {
		fn, err := lowered(ctx, opt, false)
		if err != nil {
			return nil, err
		}
		runner := fn.NewRunner()
		return &tune.Made{
			Form: tune.Form(fn.Graph()),
			Run: func(ctx context.Context) error {
				_, err := runner.Run(ctx, inputs)
				return err
			},
			Outputs: func(ctx context.Context) (any, error) { return fn.Call(ctx, inputs) },
			Others: func(ctx context.Context) (any, error) {
				outputs, err := fn.Call(ctx, others)
				if len(drawn) == 0 || errors.Is(err, lower.ErrInput) { // which would make another graph
					return nil, nil
				}
				return outputs, err
			},
		}, nil
	}
	return t, nil
}

// distance returns the largest distance of outputs from those that are wanted.
func distance(got, want any) float64 {
	most := 0.0
	for name, a := range want.(map[string]*array.Array) {
		most = max(most, array.Distance(got.(map[string]*array.Array)[name], a))
	}
	return most
}
