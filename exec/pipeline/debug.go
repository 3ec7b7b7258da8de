package pipeline

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/rewrite"
)

// ErrValues means that an optimized computation has other values than the compiled one. The error
// names the rewrite or pass to blame.
var ErrValues = errors.New("the optimized computation has other values")

// A FailedError is the failure of an optimizer, with everything that it takes to repeat it. It wraps
// the error of the pass, or ErrValues.
type FailedError struct {
	Net      *nnet3.Nnet
	Request  *computation.Request
	Compiled *computation.Computation
	Query    optdb.Query
	// culprit is what makes the values differ, if that is the failure.
	culprit rewrite.Culprit
	Err     error
}

// Error returns the text of the cause.
func (e *FailedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *FailedError) Unwrap() error { return e.Err }

// failed returns the FailedError of an optimizer.
func (p *Plan) failed(opt *optdb.Optimizer, culprit rewrite.Culprit, err error) error {
	return &FailedError{Net: p.Net, Request: p.Request, Compiled: p.Compiled, Query: opt.Query(), culprit: culprit, Err: err}
}

// debugTolerance bounds the norm of a difference, relative to that of the values. Rewrites that
// change the order of sums cause more than the rounding error of one operation.
const debugTolerance = 1e-3

// A few inputs are compared, since one may not show a fault: so many draws, within some time.
const (
	debugDraws = 8
	debugTime  = time.Second / 2
)

// compareValues runs both computations on the same random inputs, and compares outputs, derivatives
// of inputs, and gradients. It checks that components do what they declare, and finds out which
// pass is to blame for a difference. It skips computations that draw random numbers, and optimizers
// that set derivatives to zero on request. Quantized products run in float32, because only then an
// error of others shows.
func (p *Plan) compareValues(ctx context.Context, opt *optdb.Optimizer) error {
	if p.random() || passes.NeedsDebugInfo(opt) {
		return nil
	}
	start := time.Now()
	for seed := range uint64(debugDraws) {
		if seed > 0 && time.Since(start) >= debugTime {
			break
		}
		if err := p.compareDraw(ctx, opt, seed); err != nil {
			return err
		}
	}
	return nil
}

// compareDraw is compareValues for the inputs of a seed.
func (p *Plan) compareDraw(ctx context.Context, opt *optdb.Optimizer, seed uint64) error {
	in, err := RandomValues(p.Net, p.Request, seed)
	if err != nil {
		return err
	}
	// Poison turns what is read before it is written into NaN. Without it such a fault shows only if the memory
	// held something else before.
	opts := exec.ComputerOptions{Check: true, Poison: true}
	want, err := RunWith(ctx, p.Compiled, p.Net, p.Request, in, opts)
	if err != nil {
		return err
	}
	compare := func(ctx context.Context, c *computation.Computation) (string, error) {
		got, err := RunWith(ctx, inFloats(c), p.Net, p.Request, in, opts)
		if err != nil {
			return "", err
		}
		return got.differs(want), nil
	}
	what, err := compare(ctx, p.Optimized)
	if err == nil && what == "" || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, fgraph.ErrDeclaration) {
		err = fmt.Errorf("the optimized computation: %w", err)
	} else if err == nil {
		err = fmt.Errorf("%w: %s", ErrValues, what)
	} else {
		err = fmt.Errorf("%w: %w", ErrValues, err)
	}
	culprit, found := rewrite.Bisect(ctx, func(ctx context.Context) bool {
		c, err := passes.Optimize(ctx, p.Compiled, p.Net, opt, nil)
		if err != nil {
			return false
		}
		what, err := compare(ctx, c)
		return err == nil && what == ""
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !found:
		return fmt.Errorf("%w; no pass is to blame, but lowering or emission", err)
	}
	return p.failed(opt, culprit, fmt.Errorf("%w; to blame: %v", err, culprit))
}

// inFloats returns a computation without quantized products.
func inFloats(c *computation.Computation) *computation.Computation {
	d := *c
	d.Derived = slices.Clone(c.Derived)
	for i, of := range d.Derived {
		if p, ok := of.(*component.Product); ok && p.Precision() != kernel.Float32 {
			d.Derived[i], _ = p.Quantized(kernel.Float32)
		}
	}
	return &d
}

// random reports whether the compiled computation draws random numbers.
func (p *Plan) random() bool {
	for i := range p.Compiled.Commands {
		cmd := &p.Compiled.Commands[i]
		if cmd.Type != computation.Propagate {
			continue
		}
		c := p.Compiled.Component(p.Net, cmd.Component())
		// Dropout in test mode is declared to be random, but draws nothing.
		id, ok := c.(component.Identity)
		if c.Properties().Has(component.Random) && !(ok && id.IsIdentity()) {
			return true
		}
	}
	return false
}

// differs describes the first difference between r and want that is too large. It returns "" if there
// is none.
func (r *Results) differs(want *Results) string {
	for what, d := range r.differences(want) {
		if !(d.Norm <= debugTolerance*d.Wanted) {
			return fmt.Sprintf("%s differs by %.1e of its norm", what, d.Norm/d.Wanted)
		}
	}
	return ""
}

// Distance returns the largest norm of a difference between results of the same request, relative to the
// norm of what is wanted: of outputs, derivatives of inputs, and gradients. It is 0 if all elements are
// equal, and +Inf where one is NaN or infinite and the other is not.
func (r *Results) Distance(want *Results) float64 {
	most := 0.0
	for _, d := range r.differences(want) {
		switch x := d.Norm / d.Wanted; {
		case d.Norm == 0:
		case x != x:
			return math.Inf(1)
		default:
			most = max(most, x)
		}
	}
	return most
}

// differences yields how far each of the results is from what is wanted, with what it is.
func (r *Results) differences(want *Results) iter.Seq2[string, Difference] {
	return func(yield func(string, Difference) bool) {
		tell := func(what string, d Difference, err error) bool {
			if err != nil {
				d.Norm = math.Inf(1)
			}
			return yield(what, d)
		}
		for _, lists := range [][2][]Named{{r.Outputs, want.Outputs}, {r.InputDerivs, want.InputDerivs}} {
			for i, w := range lists[1] {
				if d, err := Compare(lists[0][i].Matrix, w.Matrix); !tell(w.Name, d, err) {
					return
				}
			}
		}
		if want.Gradient == nil {
			return
		}
		for i, c := range want.Gradient.Components {
			u, ok := c.(component.UpdatableComponent)
			if !ok {
				continue
			}
			d, err := CompareParameters(r.Gradient.Components[i].(component.UpdatableComponent), u)
			if !tell("the gradient of "+want.Gradient.ComponentNames[i], d, err) {
				return
			}
		}
	}
}
