package pipeline

import (
	"context"
	"time"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

// CompileTimes are what it takes to turn a request into a computation: the quickest of several times each.
type CompileTimes struct {
	// Shortcut compiles sequences that are alike as one; NoShortcut compiles each by itself. The computation is the same.
	Shortcut, NoShortcut time.Duration
	// Optimize is what the optimizer takes, lowering and emission included; 0 where there is none.
	Optimize time.Duration
	// Runs is how often the shortcut was measured, which the others are as often or less.
	Runs int
}

// MeasureCompile measures how long compiling a request takes, with and without the shortcut, and optimizing the computation.
func MeasureCompile(ctx context.Context, nn *nnet3.Nnet, req *computation.Request, opt *optdb.Optimizer, patience Patience) (CompileTimes, error) {
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
	if opt != nil && len(opt.Entries()) > 0 {
		times.Optimize, _, err = patience.best(ctx, func() error {
			_, err := passes.Optimize(ctx, c, nn, opt, nil)
			return err
		})
	}
	return times, err
}

// best calls f as often as the patience says and returns the shortest time.
func (p Patience) best(ctx context.Context, f func() error) (best time.Duration, runs int, err error) {
	if p.Runs <= 0 {
		p.Runs = 7
	}
	for began := time.Now(); runs < p.Runs || time.Since(began) < p.Time; runs++ {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		start := time.Now()
		if err := f(); err != nil {
			return 0, 0, err
		}
		if took := time.Since(start); runs == 0 || took < best {
			best = took
		}
	}
	return best, runs, nil
}
