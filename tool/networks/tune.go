package networks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/internal/tune"
	"github.com/nnopt/nnopt/tool/networks/internal/measure"
)

// tune returns how a request to a network is computed under any query, from random inputs.
func (f *networkFlags) tune(ctx context.Context, c *tool.Console, arg string) (*tune.Subject, error) {
	f.random = true
	if _, _, err := f.passes.BuildFor(f.vocabulary()); err != nil {
		return nil, err
	}
	nn, req, err := f.load(c, arg)
	if err != nil {
		return nil, err
	}
	if f.fromConfig {
		// Outputs say nothing about what a choice changes if the parameters of the last layer are zero.
		pipeline.DrawZeros(nn, f.seed)
	}
	in, err := pipeline.RandomValues(nn, req, f.seed)
	if err != nil {
		return nil, err
	}
	others, err := pipeline.RandomValues(nn, req, f.seed+1)
	if err != nil {
		return nil, err
	}
	build := func(ctx context.Context, opt *optdb.Optimizer, record bool) (*pipeline.Plan, error) {
		return pipeline.Build(ctx, nn, req, pipeline.Options{Optimizer: opt, Record: record})
	}
	return &tune.Subject{
		Dialects: []string{lower.MatrixType{}.Dialect()},
		Profile: func(ctx context.Context, opt *optdb.Optimizer) ([]*profile.Record, error) {
			p, err := build(ctx, opt, true)
			if err != nil {
				return nil, err
			}
			return []*profile.Record{p.Profile}, nil
		},
		Make: func(ctx context.Context, opt *optdb.Optimizer) (*tune.Made, error) {
			p, err := build(ctx, opt, false)
			if err != nil {
				return nil, err
			}
			return made(p, in, others)
		},
		Differ: func(got, want any) float64 { return got.(*pipeline.Results).Distance(want.(*pipeline.Results)) },
	}, nil
}

// made makes a plan ready to run.
func made(p *pipeline.Plan, in, others pipeline.Values) (*tune.Made, error) {
	var form strings.Builder
	if err := computation.Print(&form, p.Optimized, p.Info(p.Optimized)); err != nil {
		return nil, err
	}
	for _, c := range p.Optimized.Derived {
		form.WriteString(howMade(p.Net, c) + "\n")
	}
	pipeline.Prepare(p.Optimized, p.Net)
	program, err := exec.NewProgram(p.Optimized, p.Net)
	if err != nil {
		return nil, err
	}
	r, err := measure.NewRepeater(program, p.Net, in, exec.ComputerOptions{})
	if err != nil {
		return nil, err
	}
	return &tune.Made{
		Form: form.String(),
		Run: func(ctx context.Context) error {
			_, err := r.Run(ctx)
			return err
		},
		Outputs: func(ctx context.Context) (any, error) { return pipeline.Run(ctx, p.Optimized, p.Net, p.Request, in) },
		Others: func(ctx context.Context) (any, error) {
			return pipeline.Run(ctx, p.Optimized, p.Net, p.Request, others)
		},
	}, nil
}

// howMade returns the name of a component of a network, or how a derived one is made, as far as that can
// be said.
func howMade(nn *nnet3.Nnet, c component.Component) string {
	if i := slices.Index(nn.Components, c); i >= 0 {
		return fmt.Sprintf("%s#%d", nn.ComponentNames[i], i)
	}
	text, err := component.DerivedText(c, func(base component.Component) (string, error) { return howMade(nn, base), nil })
	if err != nil {
		return c.Type() // of a program of one's own
	}
	return text
}
