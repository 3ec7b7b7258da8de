package exec

import (
	"context"
	"time"
)

// inlineTime is how long calls may take that are not worth a goroutine.
const inlineTime = time.Millisecond

// compute runs the steps. A single op may take minutes and knows no context, so unless calls are known
// to be short the steps run in a goroutine, which a cancelled call leaves behind until its op ends. The
// goroutine then has the memory of the Runner, which gets another. A function that overwrites arguments
// or shared variables waits for its op: their memory is not the goroutine's.
func (r *Runner) compute(ctx context.Context, elements int) error {
	short := r.calls > 0 && r.slowest < inlineTime && elements <= r.largest
	if ctx.Done() == nil || short || len(r.f.destroyed) > 0 {
		err := r.runSteps(ctx, 64)
		if err != nil {
			r.abandon()
		}
		return err
	}
	work := new(Runner)
	*work = *r
	done := make(chan error, 1)
	go func() { done <- work.runSteps(ctx, 1) }()
	select {
	case err := <-done:
		if *r = *work; err != nil {
			r.abandon()
		}
		return err
	case <-ctx.Done():
		fresh := r.f.NewRunner()
		fresh.calls, fresh.total, fresh.slowest, fresh.largest = r.calls, r.total, r.slowest, r.largest
		*r = *fresh
		return context.Cause(ctx)
	}
}

// runSteps computes all applies. It looks at the context once for so many.
func (r *Runner) runSteps(ctx context.Context, every int) error {
	for i := range r.f.steps {
		if i%every == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := r.step(i); err != nil {
			return err
		}
	}
	return nil
}
