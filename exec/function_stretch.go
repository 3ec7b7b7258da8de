package exec

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// findPlain finds the steps that only have to call their kernels, and free nothing: they always run, outside of
// regions, and all memory is planned. Of these it finds the views that stand.
func (f *Function) findPlain() {
	next, region := len(f.steps), f.regions
	for i, s := range slices.Backward(f.steps) {
		for len(region) > 0 && i < region[len(region)-1].first {
			region = region[:len(region)-1]
		}
		within := len(region) > 0 && i < region[len(region)-1].next
		if within || s.choice || s.ahead || len(s.before)+len(s.guard)+len(s.doubts)+len(s.free) > 0 {
			next = i
		}
		f.steps[i].plain = next
		f.steps[i].stands = s.stands && next > i && f.lasts(f.roots[s.out[0]])
	}
}

// lasts reports whether a root has the same memory in all calls with one plan. Arguments and results usually have not.
func (f *Function) lasts(root int32) bool {
	if f.kinds[root] == foreign {
		return f.opts.fixed || !slices.Contains(f.inputs, root)
	}
	return f.settled(root) && (f.opts.fixed || f.kinds[root] == computed)
}

// findRepeats finds the steps that repeat. Memory alone does not tell: a view may begin at another element in each call,
// and an op may make its output elsewhere. So each step must be of a kind that does not.
func (f *Function) findRepeats() {
	if f.open != nil || f.branches > 0 || len(f.destroyed) > 0 {
		return
	}
	known := make([]bool, f.slots) // by slot: its header is the same
	for slot := range known {
		known[slot] = f.kinds[slot] == foreign && f.lasts(int32(slot))
	}
	for i := range f.steps {
		s := &f.steps[i]
		all := !slices.ContainsFunc(s.in, func(slot int32) bool { return !known[slot] })
		small := tensor.Repeats(s.apply.Op())
		for _, slot := range s.out {
			// What is not a view and not made in place is where it is planned, whatever the op has read.
			known[slot] = s.stands && known[s.in[0]] || small && f.lasts(f.roots[slot]) && (all || f.roots[slot] == slot)
			all = all && known[slot]
		}
		s.repeats = small && all && s.plain > i
		f.repeats = f.repeats || s.repeats
	}
}

// stretch computes the steps [i, next), which are plain, without asking for each of them what only others have,
// and with one recover for all. They would otherwise take longer to get to than to compute, if they are small.
func (r *Runner) stretch(ctx context.Context, i, next int, record bool) (err error) {
	steps := r.f.steps
	defer func() {
		if p := recover(); p != nil {
			err = r.panicked(&steps[i], p)
		}
	}()
	for ; i < next; i++ {
		o := &r.steps[i]
		// An op may have made its output without the memory that it has a home in, and another one in each call.
		if steps[i].stands && r.stands && o.out[0].SharesMemory(o.in[0]) {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if record && steps[i].repeats {
			r.ws.Again = &r.again[i]
		} else if r.again != nil && r.again[i] != nil {
			r.again[i]()
			continue
		}
		r.ws.Place(o.out, o.places, o.room)
		r.ws.Next = r.next[i]
		if err := steps[i].kernel(&r.ws, o.in, o.out); err != nil {
			return applyError(r.f.graph, steps[i].apply, err)
		}
		r.ws.Again = nil
	}
	return nil
}

// panicked returns the error of a step that panicked. The stack is still that of the panic.
func (r *Runner) panicked(s *step, p any) error {
	return applyError(r.f.graph, s.apply, fmt.Errorf("%w: %v\n%s", ErrPanic, p, debug.Stack()))
}

// A product fetches the beginning of the weights that the next product reads while it computes, so that
// those of networks, which take turns in the caches, are there when they are needed. What an op prepares
// at its first call is known to nobody else, so a runner learns it: in the first call, products tell what
// they multiply by.

// announce tells a workspace what the product after step i reads, or lets it note what step i does.
func (r *Runner) announce(ws *array.Workspace, i int) {
	if r.next != nil {
		ws.Next = r.next[i]
	} else {
		ws.Met = &r.met[i]
	}
}

// planPrefetch finds for each step what the next product reads. Steps that were not needed have met nothing.
func (r *Runner) planPrefetch() {
	var next []*kernel.Weights
	for i, met := range slices.Backward(r.met) {
		if r.met[i] = next; met != nil {
			next = met
		}
	}
	r.next, r.met = r.met, nil
}
