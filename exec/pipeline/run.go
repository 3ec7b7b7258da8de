package pipeline

import (
	"context"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// Values are the inputs of a run.
type Values struct {
	// Inputs are the matrices of the inputs of the request.
	Inputs []Named
	// OutputDerivs are the derivatives of the outputs that have one. Without any, the backward part
	// does not run.
	OutputDerivs []Named
}

// Results are the results of a run. The matrices are the caller's.
type Results struct {
	// Outputs are the outputs of the request, in its order.
	Outputs []Named
	// InputDerivs are the requested derivatives of inputs, in the order of the request.
	InputDerivs []Named
	// Gradient is a network with the gradient in place of the parameters, or nil if it was not
	// requested.
	Gradient *nnet3.Nnet
}

// Run checks and executes a computation of a network that answers the request, and returns its
// outputs.
func Run(ctx context.Context, c *computation.Computation, nn *nnet3.Nnet, req *computation.Request, in Values) (*Results, error) {
	return RunWith(ctx, c, nn, req, in, exec.ComputerOptions{})
}

// RunWith is Run with options. If the request wants a gradient, it sets ToUpdate.
func RunWith(ctx context.Context, c *computation.Computation, nn *nnet3.Nnet, req *computation.Request, in Values, opts exec.ComputerOptions) (*Results, error) {
	res := new(Results)
	if req.NeedModelDerivative {
		res.Gradient = NewGradient(nn)
		opts.ToUpdate = res.Gradient
	}
	program, err := exec.NewProgram(c, nn)
	if err != nil {
		return nil, err
	}
	computer, err := program.NewComputer(opts)
	if err != nil {
		return nil, err
	}
	if err := Pass(ctx, computer, in.Inputs); err != nil {
		return nil, err
	}
	// Taken before the backward part runs, which may use the memory of the outputs.
	if res.Outputs, err = take(computer, req.Outputs, false); err != nil {
		return nil, err
	}
	if len(in.OutputDerivs) == 0 {
		return res, nil
	}
	if err := Pass(ctx, computer, in.OutputDerivs); err != nil {
		return nil, err
	}
	if res.InputDerivs, err = take(computer, req.Inputs, true); err != nil {
		return nil, err
	}
	return res, nil
}

// Pass hands in matrices and runs up to the next marker or the end.
func Pass(ctx context.Context, computer *exec.Computer, inputs []Named) error {
	for _, in := range inputs {
		if err := computer.AcceptInput(in.Name, in.Matrix); err != nil {
			return err
		}
	}
	return computer.Run(ctx)
}

// take returns copies of outputs of the computer: one for each specification, or only for those
// with derivatives.
func take(computer *exec.Computer, specs []computation.IoSpecification, derivs bool) (list []Named, err error) {
	for i := range specs {
		if derivs && !specs[i].HasDeriv {
			continue
		}
		m, err := computer.Output(specs[i].Name)
		if err != nil {
			return nil, err
		}
		list = append(list, Named{specs[i].Name, kernel.Clone(m)})
	}
	return list, nil
}

// NewGradient returns a network like nn, with zeros for parameters, in which a computation
// accumulates their gradient.
func NewGradient(nn *nnet3.Nnet) *nnet3.Nnet {
	g := nn.Copy()
	for i, c := range nn.Components {
		g.Components[i] = component.NewGradient(c)
	}
	return g
}

// Prepare packs the parameters of the components that a computation runs forward, to make them
// faster. Call it once, before anything runs. It doesn't change results. Call Renew after
// parameters have changed.
func Prepare(c *computation.Computation, nn *nnet3.Nnet) {
	done := make(map[int32]bool)
	for _, cmd := range c.Commands {
		if cmd.Type != computation.Propagate || done[cmd.Component()] {
			continue
		}
		done[cmd.Component()] = true
		if p, ok := c.Component(nn, cmd.Component()).(component.Preparer); ok {
			p.Prepare()
		}
	}
}
