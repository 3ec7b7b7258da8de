package pipeline

import (
	"context"
	"io"
	"time"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

// Options are options of Build. The zero value compiles only.
type Options struct {
	// Optimizer optimizes the computation, unless it is nil.
	Optimizer *optdb.Optimizer
	// Record asks for Plan.Profile.
	Record bool
	// DebugInfo records the meaning of the rows of matrices, to make a printed computation easier
	// to read.
	DebugInfo bool
}

// A Plan is a request to a network, ready for execution.
type Plan struct {
	Net     *nnet3.Nnet
	Request *computation.Request
	// Compiled is the computation of the compiler, Optimized that of the optimizer. Without an
	// optimizer they are the same.
	Compiled, Optimized *computation.Computation
	// CompileTime and OptimizeTime are the times of both steps. Lowering to a graph and emission
	// from it count as optimizing.
	CompileTime, OptimizeTime time.Duration
	// Profile is the record of the optimizer, if Options.Record asked for it. Its time is
	// OptimizeTime without lowering and emission.
	Profile *profile.Record
}

// Build compiles a request to a network, and optimizes the computation. With a query in debug mode,
// the graph is checked after every pass, and both computations are run on random inputs and
// compared; a difference is an error that wraps ErrValues. A failure of the optimizer is a FailedError.
func Build(ctx context.Context, nn *nnet3.Nnet, req *computation.Request, opts Options) (*Plan, error) {
	p := &Plan{Net: nn, Request: req}
	start := time.Now()
	var err error
	if p.Compiled, err = compile.CompileContext(ctx, nn, req, compile.Options{DebugInfo: opts.DebugInfo || passes.NeedsDebugInfo(opts.Optimizer)}); err != nil {
		return nil, err
	}
	p.CompileTime = time.Since(start)
	p.Optimized = p.Compiled
	if opts.Optimizer == nil || opts.Optimizer.Empty() {
		return p, nil
	}
	var rec *profile.Recorder
	if opts.Record {
		rec = profile.New(opts.Optimizer.Name(), opts.Optimizer.Class())
	}
	start = time.Now()
	p.Optimized, err = passes.Optimize(ctx, p.Compiled, nn, opts.Optimizer, rec)
	// An optimizer that was cancelled has not failed: there is nothing to reproduce.
	if err != nil && ctx.Err() == nil {
		err = p.failed(opts.Optimizer, rewrite.Culprit{}, err)
	}
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

// trim reduces the time of the optimizer to that of its passes and of making them, which comes just
// before the first. The recorder also measured lowering and emission.
func trim(r *profile.Record) *profile.Record {
	if r == nil || len(r.Children) == 0 {
		return r
	}
	r.Start = r.Children[0].Start - r.Prepare
	for _, c := range r.Children {
		r.Start += c.Prepare // is within the child
	}
	last := r.Children[len(r.Children)-1]
	r.Time = last.Start + last.Time - r.Start
	return r
}

// Info describes the components and nodes that one of the plan's computations refers to by number.
func (p *Plan) Info(c *computation.Computation) *computation.NetworkInfo {
	return computation.NewNetworkInfo(p.Net, c.Derived)
}

// Load is [nnet3.Loader.Load] with Kaldi's component types.
func Load(name string, seed uint64) (nn *nnet3.Nnet, fromConfig bool, err error) {
	return nnet3.Loader{}.Load(name, seed)
}

// LoadFrom is [nnet3.Loader.LoadFrom] with Kaldi's component types.
func LoadFrom(r io.Reader, name string, seed uint64) (nn *nnet3.Nnet, fromConfig bool, err error) {
	return nnet3.Loader{}.LoadFrom(r, name, seed)
}

// Save writes a raw network in Kaldi's format.
func Save(w io.Writer, nn *nnet3.Nnet, binary bool) error {
	out := kaldiio.NewWriter(w, binary)
	out.Header()
	if err := nn.Write(out); err != nil {
		return err
	}
	return out.Flush()
}
