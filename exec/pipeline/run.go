package pipeline

import (
	"context"
	"slices"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// Values are what goes into a run.
type Values struct {
	// Inputs are the matrices of the inputs of the request.
	Inputs []Named
	// OutputDerivs are the derivatives of the outputs that come with one. Without any, the backward part is not run.
	OutputDerivs []Named
}

// Results are what comes out of a run. The matrices are the caller's.
type Results struct {
	// Outputs are the outputs of the request, in its order.
	Outputs []Named
	// InputDerivs are the derivatives of the inputs that ask for one, in the order of the request.
	InputDerivs []Named
	// Gradient is a network with the gradient in place of the parameters, nil if the request wants none.
	Gradient *nnet3.Nnet
}

// Run executes a computation that answers the request, from checking it to taking its outputs.
func Run(ctx context.Context, c *computation.Computation, nn *nnet3.Nnet, req *computation.Request, in Values) (*Results, error) {
	return run(ctx, c, nn, req, in, exec.ComputerOptions{})
}

// run is Run with options.
func run(ctx context.Context, c *computation.Computation, nn *nnet3.Nnet, req *computation.Request, in Values, opts exec.ComputerOptions) (*Results, error) {
	res := new(Results)
	if req.NeedModelDerivative {
		res.Gradient = NewGradient(nn)
		opts.ToUpdate = res.Gradient
	}
	computer, err := exec.NewComputer(c, nn, opts)
	if err != nil {
		return nil, err
	}
	if err := pass(ctx, computer, in.Inputs); err != nil {
		return nil, err
	}
	for i := range req.Outputs {
		if res.Outputs, err = take(res.Outputs, computer, req.Outputs[i].Name); err != nil {
			return nil, err
		}
	}
	if len(in.OutputDerivs) == 0 {
		return res, nil
	}
	if err := pass(ctx, computer, in.OutputDerivs); err != nil {
		return nil, err
	}
	for i := range req.Inputs {
		if !req.Inputs[i].HasDeriv {
			continue
		}
		if res.InputDerivs, err = take(res.InputDerivs, computer, req.Inputs[i].Name); err != nil {
			return nil, err
		}
	}
	return res, nil
}

// pass hands in matrices and runs up to the next marker or the end.
func pass(ctx context.Context, computer *exec.Computer, inputs []Named) error {
	for _, in := range inputs {
		if err := computer.AcceptInput(in.Name, in.Matrix); err != nil {
			return err
		}
	}
	return computer.Run(ctx)
}

// take appends a copy of what a computer provides.
func take(list []Named, computer *exec.Computer, name string) ([]Named, error) {
	m, err := computer.Output(name)
	if err != nil {
		return nil, err
	}
	c := kernel.Matrix{Rows: m.Rows, Cols: m.Cols, Stride: m.Cols, Data: make([]float32, m.Rows*m.Cols)}
	kernel.Copy(c, m)
	return append(list, Named{name, c}), nil
}

// NewGradient returns a network of the shape of nn in which a computation can accumulate the gradient of the parameters.
func NewGradient(nn *nnet3.Nnet) *nnet3.Nnet {
	g := nn.Copy()
	for i, c := range nn.Components {
		g.Components[i] = component.NewGradient(c)
	}
	return g
}

// Prepare lets the components that a computation runs forward make the form of their parameters in which they compute
// fastest. It is done once, before anything runs; without it results are the same. After parameters were changed it is for
// Renew to make these forms anew.
func Prepare(nn *nnet3.Nnet, c *computation.Computation) {
	done := make(map[int32]bool)
	for _, cmd := range c.Commands {
		if cmd.Type != computation.Propagate || done[cmd.Arg1] {
			continue
		}
		done[cmd.Arg1] = true
		if p, ok := c.Component(nn, cmd.Arg1).(component.Preparer); ok {
			p.Prepare()
		}
	}
}

// Renew makes what Prepare made anew, after parameters of the network were changed. Nobody may be computing with it.
func Renew(nn *nnet3.Nnet) {
	for _, c := range nn.Components {
		if r, ok := c.(component.Renewer); ok {
			r.Renew()
		}
	}
}

// Patience says how long Measure goes on.
type Patience struct {
	Runs int           // at least so many runs; 0 means 7
	Time time.Duration // and, after that, until so much time has passed
}

// Times are how long the runs of a program took.
type Times struct {
	Runs         int
	Best, Median time.Duration
	// Renew is how much of a run of a program that computes the gradient Renew took, in the quickest case; 0 for others.
	Renew time.Duration
}

// Measure runs a program again and again. Handing in the inputs is part of a run; the memory of one run serves the next. A
// program that computes the gradient is taken to meet new parameters every time: making the prepared forms of them anew is
// part of its runs. timing, if not nil, gets the time of every command of all runs, which then take a little longer.
func Measure(ctx context.Context, p *exec.Program, nn *nnet3.Nnet, in Values, patience Patience, timing *exec.Timing) (Times, error) {
	var times Times
	opts := exec.ComputerOptions{Timing: timing}
	train := p.Computation().NeedModelDerivative
	if train {
		opts.ToUpdate = NewGradient(nn)
	}
	computer, err := p.NewComputer(opts)
	if err != nil {
		return times, err
	}
	if patience.Runs <= 0 {
		patience.Runs = 7
	}
	var took []time.Duration
	for began := time.Now(); len(took) < patience.Runs || time.Since(began) < patience.Time; {
		computer.Reset()
		start := time.Now()
		if train {
			Renew(nn)
			if renew := time.Since(start); len(took) == 0 || renew < times.Renew {
				times.Renew = renew
			}
		}
		if err := pass(ctx, computer, in.Inputs); err != nil {
			return times, err
		}
		if len(in.OutputDerivs) > 0 {
			if err := pass(ctx, computer, in.OutputDerivs); err != nil {
				return times, err
			}
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	times.Runs, times.Best, times.Median = len(took), took[0], took[len(took)/2]
	return times, nil
}
