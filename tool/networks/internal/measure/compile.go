package measure

import (
	"context"
	"time"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

// CompileTimes are the shortest of several times that it takes to compile and optimize a request.
type CompileTimes struct {
	// Shortcut compiles equal sequences as one, NoShortcut each by itself. The computation is the
	// same.
	Shortcut, NoShortcut time.Duration
	// Optimize is the time of the optimizer, with lowering and emission; 0 without an optimizer.
	Optimize time.Duration
	// Runs is how often the shortcut was measured.
	Runs int
}

// Compile measures how long compiling a request takes, with and without the shortcut, and
// optimizing the computation.
func Compile(ctx context.Context, nn *nnet3.Nnet, req *computation.Request, opt *optdb.Optimizer, patience Patience) (CompileTimes, error) {
	var times CompileTimes
	var c *computation.Computation
	compileWith := func(opts compile.Options) func() error {
		return func() (err error) {
			c, err = compile.CompileContext(ctx, nn, req, opts)
			return err
		}
	}
	var err error
	if times.NoShortcut, _, err = patience.best(ctx, compileWith(compile.Options{NoShortcut: true})); err != nil {
		return times, err
	}
	if times.Shortcut, times.Runs, err = patience.best(ctx, compileWith(compile.Options{})); err != nil {
		return times, err
	}
	if opt != nil && !opt.Empty() {
		times.Optimize, _, err = patience.best(ctx, func() error {
			_, err := passes.Optimize(ctx, c, nn, opt, nil)
			if err != nil && ctx.Err() == nil {
				err = &pipeline.FailedError{Net: nn, Request: req, Compiled: c, Query: opt.Query(), Err: err}
			}
			return err
		})
	}
	return times, err
}
