package refcase

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"

	"github.com/hashicorp/go-multierror"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/optdb"
)

// errDiffers means that our numbers differ too much from Kaldi's. Result.Err wraps it,
// exec.ErrPanic, or other errors.
var errDiffers = errors.New("differs from Kaldi")

// A Result is the outcome of a case.
type Result struct {
	Case  string `json:"case"`
	Query string `json:"query"`
	OK    bool   `json:"ok"`
	// MaxRelDiff is the largest finite pipeline.Difference.Relative of the outputs, nil if there is none.
	MaxRelDiff *float64 `json:"max_rel_diff,omitempty"`
	// MaxRelDiffBackward is the same for derivatives of inputs and the gradient of each component.
	MaxRelDiffBackward *float64 `json:"max_rel_diff_backward,omitempty"`
	// SpreadBound and SpreadBoundBackward bound those two if the spread of the case allows more
	// than the tolerances.
	SpreadBound         float64 `json:"spread_bound,omitempty"`
	SpreadBoundBackward float64 `json:"spread_bound_backward,omitempty"`
	Error               string  `json:"error,omitempty"`

	// The size of the computation that was run.
	Commands       int   `json:"commands"`
	Matrices       int   `json:"matrices"`
	MaxMemoryBytes int64 `json:"max_memory_bytes"`
	// The size of Kaldi's optimized computation.
	KaldiCommands       int   `json:"kaldi_commands"`
	KaldiMatrices       int   `json:"kaldi_matrices"`
	KaldiMaxMemoryBytes int64 `json:"kaldi_max_memory_bytes"`

	CompileSeconds  float64 `json:"compile_seconds"`
	OptimizeSeconds float64 `json:"optimize_seconds"`

	// Err is the error behind Error.
	Err error `json:"-"`
}

// Run compiles, optimizes, checks and executes a case, and compares the results. Errors are part of
// the Result. A nil optimizer runs the computation as compiled.
func (c *Case) Run(ctx context.Context, query string, opt *optdb.Optimizer) *Result {
	r := &Result{
		Case:                c.Name,
		Query:               query,
		KaldiCommands:       c.optimized.Commands,
		KaldiMatrices:       c.optimized.Matrices,
		KaldiMaxMemoryBytes: c.optimized.MaxMemoryBytes,
	}
	output, derivative, _ := c.Bounds()
	if output > outputTolerance {
		r.SpreadBound = output
	}
	if derivative > derivativeTolerance {
		r.SpreadBoundBackward = derivative
	}
	if r.Err = c.run(ctx, opt, r); r.Err != nil {
		r.Error = r.Err.Error()
	}
	r.OK = r.Err == nil
	return r
}

func (c *Case) run(ctx context.Context, opt *optdb.Optimizer, r *Result) (err error) {
	// A panic in one case must not stop others.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", exec.ErrPanic, p, debug.Stack())
		}
	}()
	plan, err := pipeline.Build(ctx, c.Net, c.Request, pipeline.Options{Optimizer: opt})
	if err != nil {
		return err
	}
	n := plan.Optimized.Counts()
	r.Commands, r.Matrices, r.MaxMemoryBytes = n.Commands, n.Matrices, n.MaxMemoryBytes
	r.CompileSeconds, r.OptimizeSeconds = plan.CompileTime.Seconds(), plan.OptimizeTime.Seconds()
	got, err := pipeline.RunWith(ctx, plan.Optimized, c.Net, c.Request, pipeline.Values{Inputs: c.Inputs, OutputDerivs: c.OutputDerivs}, exec.ComputerOptions{Threads: c.Threads})
	if err != nil {
		return err
	}
	return c.compare(got, r)
}

// compare compares the results of a run with Kaldi's, and stores the differences in r. The error
// lists those that are too large.
func (c *Case) compare(got *pipeline.Results, r *Result) error {
	var errs *multierror.Error
	note := func(most **float64, what string, d pipeline.Difference, tolerance float64) {
		rel := d.Relative()
		switch {
		case math.IsNaN(rel) || math.IsInf(rel, 0):
		case *most == nil:
			*most = &rel
		default:
			**most = max(**most, rel)
		}
		if !d.Agrees(tolerance) {
			errs = multierror.Append(errs, fmt.Errorf("%s: %w by %.3g of its norm, more than %g", what, errDiffers, rel, tolerance))
		}
	}
	matrices := func(most **float64, what string, ours, kaldi []pipeline.Named, tolerance float64) {
		for i, k := range kaldi {
			if i >= len(ours) || ours[i].Name != k.Name {
				errs = multierror.Append(errs, fmt.Errorf("%s %s: %w: there is none", what, k.Name, errDiffers))
				continue
			}
			d, err := pipeline.Compare(ours[i].Matrix, k.Matrix)
			if err != nil {
				errs = multierror.Append(errs, fmt.Errorf("%s %s: %w: %w", what, k.Name, errDiffers, err))
				continue
			}
			note(most, what+" "+k.Name, d, tolerance)
		}
	}
	output, derivative, gradient := c.Bounds()
	matrices(&r.MaxRelDiff, "output", got.Outputs, c.Outputs, output)
	matrices(&r.MaxRelDiffBackward, "derivative of", got.InputDerivs, c.InputDerivs, derivative)
	if c.Gradient != nil && got.Gradient != nil {
		err := compareParameters(got.Gradient, c.Gradient, func(name string, d pipeline.Difference) {
			note(&r.MaxRelDiffBackward, "gradient of "+name, d, gradient)
		})
		if err != nil {
			errs = multierror.Append(errs, err)
		}
	}
	if errs != nil && len(errs.Errors) == 1 {
		return errs.Errors[0]
	}
	return errs.ErrorOrNil()
}
