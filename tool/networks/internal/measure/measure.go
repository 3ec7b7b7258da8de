// Package measure measures how long it takes to run the programs of networks, and to make them.
package measure

import (
	"context"
	"slices"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
)

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

// Times are how long the runs of a program took.
type Times struct {
	Runs         int
	Best, Median time.Duration
	// Renew is the shortest time that packing parameters took, which is part of the runs of a program
	// that computes the gradient; 0 for others.
	Renew time.Duration
}

// Runs runs a program again and again. Handing in the inputs is part of a run. A run uses the
// memory of the one before. A program that computes the gradient gets new parameters every time, in
// effect: packing them is part of its runs. The options may ask for threads, and for the times of commands,
// which makes runs a little slower.
func Runs(ctx context.Context, p *exec.Program, nn *nnet3.Nnet, in pipeline.Values, patience Patience, opts exec.ComputerOptions) (Times, error) {
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
	in       pipeline.Values
	train    bool
}

// NewRepeater returns a Repeater. See [Runs] for the options.
func NewRepeater(p *exec.Program, nn *nnet3.Nnet, in pipeline.Values, opts exec.ComputerOptions) (*Repeater, error) {
	r := &Repeater{nn: nn, in: in, train: p.Computation().NeedModelDerivative}
	if r.train {
		opts.ToUpdate = pipeline.NewGradient(nn)
	}
	var err error
	r.computer, err = p.NewComputer(opts)
	return r, err
}

// Run hands in the inputs and runs the program to its end. A program that computes the gradient gets new
// parameters, in effect: renewed is how long packing them again took then, and otherwise 0.
func (r *Repeater) Run(ctx context.Context) (renewed time.Duration, err error) {
	r.computer.Reset()
	if r.train {
		start := time.Now()
		renew(r.nn, r.computer.Threads())
		renewed = time.Since(start)
	}
	if err := pipeline.Pass(ctx, r.computer, r.in.Inputs); err != nil {
		return renewed, err
	}
	if len(r.in.OutputDerivs) > 0 {
		err = pipeline.Pass(ctx, r.computer, r.in.OutputDerivs)
	}
	return renewed, err
}

// renew packs parameters that pipeline.Prepare has packed again, after they have changed. No program may be
// computing with the network. Threads, such as those of a computer, may be nil.
func renew(nn *nnet3.Nnet, t *kernel.Threads) {
	for _, c := range nn.Components {
		if r, ok := c.(component.Renewer); ok {
			r.Renew(t)
		}
	}
}
