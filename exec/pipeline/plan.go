package pipeline

import (
	"context"
	"time"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/profile"
)

// Options say how Build works.
type Options struct {
	// Optimizer is what a query selected; nil leaves the computation as it was compiled.
	Optimizer *optdb.Optimizer
	// Record asks for Plan.Profile.
	Record bool
	// DebugInfo asks for what the rows of matrices stand for, which makes a printed computation easier to read.
	DebugInfo bool
}

// A Plan is a request to a network in the form in which it is executed.
type Plan struct {
	Net     *nnet3.Nnet
	Request *computation.Request
	// Compiled is the computation as the compiler made it; Optimized is what the optimizer made of that, the same where
	// there is none.
	Compiled, Optimized *computation.Computation
	// CompileTime and OptimizeTime are what it took; lowering to a graph and emission from it count as optimizing.
	CompileTime, OptimizeTime time.Duration
	// Profile is what the optimizer recorded, nil unless it was asked for. Its time is part of OptimizeTime, the rest of which
	// is lowering and emission.
	Profile *profile.Record
}

// Build compiles a request to a network, and optimizes the computation. With a query in debug mode, the graph is checked after every
// pass, and both computations are run on random inputs and compared; a difference is an error that wraps ErrValues.
func Build(ctx context.Context, nn *nnet3.Nnet, req *computation.Request, opts Options) (*Plan, error) {
	p := &Plan{Net: nn, Request: req}
	start := time.Now()
	var err error
	if p.Compiled, err = compile.CompileContext(ctx, nn, req, compile.Options{DebugInfo: opts.DebugInfo || passes.NeedsDebugInfo(opts.Optimizer)}); err != nil {
		return nil, err
	}
	p.CompileTime = time.Since(start)
	p.Optimized = p.Compiled
	if opts.Optimizer == nil || len(opts.Optimizer.Entries()) == 0 {
		return p, nil
	}
	var rec *profile.Recorder
	if opts.Record {
		rec = profile.New(opts.Optimizer.Name(), opts.Optimizer.Class())
	}
	start = time.Now()
	p.Optimized, err = passes.Optimize(ctx, p.Compiled, nn, opts.Optimizer, rec)
	if err != nil {
		return nil, err
	}
	p.OptimizeTime = time.Since(start)
	rec.End()
	p.Profile = trim(rec.Record())
	if opts.Optimizer.Query().Debugging() {
		if err := p.compareValues(ctx, opts.Optimizer); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// trim makes the time of the optimizer that of its members. The clock of the recorder also ran while the graph was made and while it
// was turned into commands again.
func trim(r *profile.Record) *profile.Record {
	if r == nil || len(r.Children) == 0 {
		return r
	}
	last := r.Children[len(r.Children)-1]
	r.Start = r.Children[0].Start
	r.Time = last.Start + last.Time - r.Start
	return r
}

// Info returns what the numbers of components and nodes in one of the plan's computations mean.
func (p *Plan) Info(c *computation.Computation) *computation.NetworkInfo {
	return computation.NewNetworkInfo(p.Net, c.Derived)
}
