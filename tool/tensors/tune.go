package tensors

import (
	"context"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool/internal/tune"
)

// tune returns how an expression is run under any query, with random arguments.
func (f *exprFlags) tune(ctx context.Context, text string) (*tune.Subject, error) {
	if _, err := f.use(text); err != nil {
		return nil, err
	}
	inputs, outputs, err := f.parse(text)
	if err != nil {
		return nil, err
	}
	plain, err := exec.NewFunction(ctx, inputs, outputs, exec.FunctionOptions{})
	if err != nil {
		return nil, err
	}
	args, err := plain.RandomArguments(ctx, 0)
	if err != nil {
		return nil, err
	}
	others, err := plain.RandomArguments(ctx, 1)
	if err != nil {
		return nil, err
	}
	return &tune.Subject{
		Dialects: []string{plain.Graph().Dialect()},
		Profile: func(ctx context.Context, opt *optdb.Optimizer) ([]*profile.Record, error) {
			fn, err := exec.NewFunction(ctx, inputs, outputs, exec.FunctionOptions{Optimizer: opt, Profile: true})
			if err != nil {
				return nil, err
			}
			return []*profile.Record{fn.NewRunner().Profile().Optimizer}, nil
		},
		Make: func(ctx context.Context, opt *optdb.Optimizer) (*tune.Made, error) {
			fn, err := exec.NewFunction(ctx, inputs, outputs, exec.FunctionOptions{Optimizer: opt})
			if err != nil {
				return nil, err
			}
			runner := fn.NewRunner()
			return &tune.Made{
				Form: tune.Form(fn.Graph()),
				Run: func(ctx context.Context) error {
					_, err := runner.Run(ctx, args...)
					return err
				},
				Outputs: func(ctx context.Context) (any, error) { return fn.Call(ctx, args...) },
				Others:  func(ctx context.Context) (any, error) { return fn.Call(ctx, others...) },
			}, nil
		},
		Differ: func(got, want any) float64 {
			most := 0.0
			for i, a := range got.([]*array.Array) {
				most = max(most, array.Distance(a, want.([]*array.Array)[i]))
			}
			return most
		},
	}, nil
}
