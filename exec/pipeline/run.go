package pipeline

import (
	"context"
	"slices"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
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
	if err := pass(ctx, computer, in.Inputs); err != nil {
		return nil, err
	}
	// Taken before the backward part runs, which may use the memory of the outputs.
	if res.Outputs, err = take(computer, req.Outputs, false); err != nil {
		return nil, err
	}
	if len(in.OutputDerivs) == 0 {
		return res, nil
	}
	if err := pass(ctx, computer, in.OutputDerivs); err != nil {
		return nil, err
	}
	if res.InputDerivs, err = take(computer, req.Inputs, true); err != nil {
		return nil, err
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

// Renew packs parameters that Prepare has packed again, after they have changed. No program may be
// computing with the network. Threads, such as those of a computer, may be nil.
func Renew(nn *nnet3.Nnet, t *kernel.Threads) {
	for _, c := range nn.Components {
		if r, ok := c.(component.Renewer); ok {
			r.Renew(t)
		}
	}
}

// Patience tells when a measurement is done: after that many runs, and not before that time has
// passed.
type Patience struct {
	Runs int // 0 means 7
	Time time.Duration
}

// run calls f until the measurement is done. f is passed the number of earlier calls.
func (p Patience) run(ctx context.Context, f func(k int) error) error {
	if p.Runs <= 0 {
		p.Runs = 7
	}
	began := time.Now()
	for k := 0; k < p.Runs || time.Since(began) < p.Time; k++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := f(k); err != nil {
			return err
		}
	}
	return nil
}

// Times are how long the runs of a program took.
type Times struct {
	Runs         int
	Best, Median time.Duration
	// Renew is the shortest time of Renew, which is part of the runs of a program that computes the
	// gradient; 0 for others.
	Renew time.Duration
}

// Measure runs a program again and again. Handing in the inputs is part of a run. A run uses the
// memory of the one before. A program that computes the gradient gets new parameters every time, in
// effect: Renew is part of its runs. The options may ask for threads, and for the times of commands,
// which makes runs a little slower.
func Measure(ctx context.Context, p *exec.Program, nn *nnet3.Nnet, in Values, patience Patience, opts exec.ComputerOptions) (Times, error) {
	var times Times
	r, err := NewRepeater(p, nn, in, opts)
	if err != nil {
		return times, err
	}
	var took []time.Duration
	err = patience.run(ctx, func(k int) error {
		start := time.Now()
		renew, err := r.Run(ctx)
		if err != nil {
			return err
		}
		if k == 0 || renew < times.Renew {
			times.Renew = renew
		}
		took = append(took, time.Since(start))
		return nil
	})
	if err != nil {
		return times, err
	}
	slices.Sort(took)
	times.Runs, times.Best, times.Median = len(took), took[0], took[len(took)/2]
	return times, nil
}

// A Repeater runs a program again and again on the same inputs. A run uses the memory of the one before.
// It belongs to one goroutine.
type Repeater struct {
	computer *exec.Computer
	nn       *nnet3.Nnet
	in       Values
	train    bool
}

// NewRepeater returns a Repeater. See [Measure] for the options.
func NewRepeater(p *exec.Program, nn *nnet3.Nnet, in Values, opts exec.ComputerOptions) (*Repeater, error) {
	r := &Repeater{nn: nn, in: in, train: p.Computation().NeedModelDerivative}
	if r.train {
		opts.ToUpdate = NewGradient(nn)
	}
	var err error
	r.computer, err = p.NewComputer(opts)
	return r, err
}

// Run hands in the inputs and runs the program to its end. A program that computes the gradient gets new
// parameters, in effect: renew is the time of Renew then, and otherwise 0.
func (r *Repeater) Run(ctx context.Context) (renew time.Duration, err error) {
	r.computer.Reset()
	if r.train {
		start := time.Now()
		Renew(r.nn, r.computer.Threads())
		renew = time.Since(start)
	}
	if err := pass(ctx, r.computer, r.in.Inputs); err != nil {
		return renew, err
	}
	if len(r.in.OutputDerivs) > 0 {
		err = pass(ctx, r.computer, r.in.OutputDerivs)
	}
	return renew, err
}

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

// MeasureCompile measures how long compiling a request takes, with and without the shortcut, and
// optimizing the computation.
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
	if opt != nil && !opt.Empty() {
		times.Optimize, _, err = patience.best(ctx, func() error {
			_, err := passes.Optimize(ctx, c, nn, opt, nil)
			if err != nil && ctx.Err() == nil {
				err = &FailedError{Net: nn, Request: req, Compiled: c, Query: opt.Query(), Err: err}
			}
			return err
		})
	}
	return times, err
}

// best calls f as often as the patience says and returns the shortest time.
func (p Patience) best(ctx context.Context, f func() error) (best time.Duration, runs int, err error) {
	err = p.run(ctx, func(k int) error {
		start := time.Now()
		if err := f(); err != nil {
			return err
		}
		// The shortest: what else the machine does meanwhile only adds to a time.
		if took := time.Since(start); k == 0 || took < best {
			best = took
		}
		runs = k + 1
		return nil
	})
	return best, runs, err
}
