package tensors

import (
	"context"
	"fmt"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/repro"
)

// testCase returns the case that the flags ask for. args, unless nil, are the values of the inputs.
func (f *exprFlags) testCase(inputs, outputs []*fgraph.Variable, args []*array.Array) (*repro.Case, error) {
	g, err := tensor.NewGraph(inputs, outputs)
	if err != nil {
		return nil, err
	}
	_, opt, err := f.passes.Build()
	if err != nil {
		return nil, err
	}
	cas := &repro.Case{World: World(f.Language.Dialect()), Build: f.passes.Optimizer, Graph: g, Query: opt.Query(), Seed: f.seed}
	for _, a := range args {
		cas.Values = append(cas.Values, a)
	}
	if most := f.watch.Budget(); most >= 0 {
		cas.Budget = &most
	}
	f.passes.Added().Note(cas)
	return cas, nil
}

// failed adds a reproducer to the error of the optimizer.
func (f *exprFlags) failed(ctx context.Context, c *tool.Console, err error, inputs, outputs []*fgraph.Variable) error {
	cas, fault := f.testCase(inputs, outputs, nil)
	if fault != nil {
		return fmt.Errorf("%w\n(there is no reproducer: %v)", err, fault)
	}
	return tool.Reproducing(ctx, c, err, cas)
}

// blame returns an error if an op does not do what it declares, or if the optimized
// expression has other values than the typed one. The error names the rewrite and a
// reproducer.
func (f *exprFlags) blame(ctx context.Context, c *tool.Console, plain *exec.Function, inputs, outputs []*fgraph.Variable) error {
	args, err := f.arguments(ctx, plain, inputs)
	if err != nil {
		return err
	}
	if _, err := plain.Call(ctx, args...); err != nil {
		return fmt.Errorf("evaluating the typed expression: %w", err)
	}
	if f.drawn() {
		args = nil // they come from the seeds
	}
	cas, err := f.testCase(inputs, outputs, args)
	if err != nil {
		return err
	}
	ctx = rewrite.WithOptions(ctx, rewrite.Options{})
	failure, err := repro.Debug(ctx, cas, *f.draws)
	if err != nil || failure.Kind == repro.None {
		return err
	}
	// The failure is known; a bisection costs a dozen more runs, and names the rewrite.
	found, err := repro.Bisect(ctx, cas)
	if err != nil {
		return err
	}
	if err = failure.Err; failure.Kind == repro.Values {
		err = fmt.Errorf("the optimized computation has other values: %w", failure.Err)
	}
	return tool.Reproducing(ctx, c, fmt.Errorf("%w; to blame: %v", err, found.Culprit), cas)
}
