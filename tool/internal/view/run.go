package view

import (
	"context"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
)

// A Subject is a run of an optimizer that can be repeated.
type Subject struct {
	Recording *Recording
	Optimizer *optdb.Optimizer
	// Run repeats the run that was recorded, with the options of the context. It makes the
	// graph anew.
	Run func(context.Context) error
}

// Record optimizes the graph that makeGraph makes, and records that.
func Record(ctx context.Context, opt *optdb.Optimizer, makeGraph func() (*fgraph.FunctionGraph, error)) (*Subject, error) {
	g, err := makeGraph()
	if err != nil {
		return nil, err
	}
	r, rec := NewRecorder(), profile.New(opt.Name(), opt.Class())
	if err := opt.Rewrite(r.Watch(ctx), g, rec); err != nil {
		return nil, err
	}
	rec.End()
	record := rec.Record()
	s := &Subject{Recording: r.Recording(opt, record, nil), Optimizer: opt}
	s.Run = func(ctx context.Context) error {
		g, err := makeGraph()
		if err != nil {
			return err
		}
		return opt.Rewrite(ctx, g, nil)
	}
	return s, s.Recording.AddProfile(&profile.Function{CompileTime: record.Time, Applies: g.NumApplies(), Optimizer: record})
}
