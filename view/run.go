package view

import (
	"context"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
)

// Record optimizes g and returns what was recorded.
func Record(ctx context.Context, opt *optdb.Optimizer, g *fgraph.FunctionGraph) (*Recording, error) {
	r := NewRecorder()
	record, err := r.run(ctx, opt, g)
	if err != nil {
		return nil, err
	}
	out := r.Recording(opt, record, nil)
	return out, out.AddProfile(&profile.Function{CompileTime: record.Time, Applies: g.NumApplies(), Optimizer: record})
}

// run optimizes g.
func (r *Recorder) run(ctx context.Context, opt *optdb.Optimizer, g *fgraph.FunctionGraph) (*profile.Record, error) {
	rec := profile.New(opt.Name(), opt.Class())
	err := opt.Rewrite(r.Watch(ctx), g, rec)
	rec.End()
	return rec.Record(), err
}
