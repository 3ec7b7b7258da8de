package exec

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tensor/array"
)

// A Runner calls a Function for one goroutine. It reuses memory: after the first calls it allocates
// next to nothing.
type Runner struct {
	f       *Function
	ws      array.Workspace
	headers []array.Array // by slot
	steps   []operands
	taken   []bool  // by branch of IfElses
	faults  []error // by step, of those that are ahead; nil if there are none
	results []*array.Array
	filled  bool           // outputs hold memory
	places  []array.Memory // by root, of what has a home
	settled bool           // they are there
	stands  bool           // so are the views of them that stand, from a call before
	again   []func()       // by step: what computes it again, see Workspace.Again; nil until they are recorded
	memory  memoryPlan     // that they follow
	sizes   sizes          // of this call; empty if all are known
	block   array.Block    // of them
	yielded bool           // the results of the last call belong to somebody else
	own     []array.Memory // by root, of results that are not lent
	loans   []loan         // by output; nil if nothing was lent
	poison  bool           // overwrite what is dead
	calls   int
	total   time.Duration
	times   []time.Duration // by step, like the others
	ran     []int
	helped  []time.Duration
	waited  []time.Duration
	bytes   []int64
	claims  map[claim]bool // that have been checked
	lanes   lanes
	met     [][]*kernel.Weights // by step, until next is known: of its first product
	next    [][]*kernel.Weights // by step, of the next one that has a product
}

type operands struct {
	in, out []*array.Array
	places  []array.Memory // of out; nil if none has one
	room    *array.Room
}

// NewRunner returns a Runner for one goroutine.
func (f *Function) NewRunner() *Runner {
	r := &Runner{f: f, headers: make([]array.Array, f.slots), steps: make([]operands, len(f.steps)), taken: make([]bool, f.branches)}
	r.ws.Threads = kernel.NewThreads(f.opts.Threads)
	r.poison = f.opts.Check
	n := 0
	for _, s := range f.steps {
		n += len(s.in) + len(s.out)
	}
	all := make([]*array.Array, 0, n)
	pointers := func(slots []int32) []*array.Array {
		first := len(all)
		for _, s := range slots {
			all = append(all, &r.headers[s])
		}
		return all[first:len(all):len(all)]
	}
	for i, s := range f.steps {
		r.steps[i] = operands{in: pointers(s.in), out: pointers(s.out)}
	}
	for _, c := range f.consts {
		r.headers[c.slot] = *c.value
	}
	r.results = make([]*array.Array, len(f.outputs)-len(f.updates))
	r.met = make([][]*kernel.Weights, len(f.steps))
	if f.ahead {
		r.faults = make([]error, len(f.steps))
	}
	if f.opts.Profile {
		n = len(f.steps)
		r.ran, r.times, r.helped, r.waited, r.bytes = make([]int, n), make([]time.Duration, n), make([]time.Duration, n), make([]time.Duration, n), make([]int64, n)
		r.ws.Threads.Measure(true)
	}
	return r
}

// NewRunnerIn is like NewRunner, but the values that no result shows are in the block, which has at least
// Memory().Block bytes. Results are not in it. Runners of this and of other functions may share a block if only one
// of them runs at a time. The error wraps ErrArgument if the block is too small.
func (f *Function) NewRunnerIn(block array.Block) (*Runner, error) {
	if n := int64(block.Bytes()); n < f.memory.memory.Block {
		return nil, fmt.Errorf("%w: a block of %d bytes; values take %d", ErrArgument, n, f.memory.memory.Block)
	}
	r := f.NewRunner()
	r.block = block
	return r, nil
}

// Run is like Function.Call, but the results are valid only until the next Run. When ctx is done, it
// stops between two ops.
func (r *Runner) Run(ctx context.Context, args ...*array.Array) ([]*array.Array, error) {
	var start time.Time
	if r.f.opts.Profile {
		start = time.Now()
	}
	if err := r.accept(args); err != nil {
		return nil, err
	}
	return r.run(ctx, start)
}

// run is Run for arguments that are accepted.
func (r *Runner) run(ctx context.Context, start time.Time) ([]*array.Array, error) {
	// Only now: if the arguments are bad, the results of the last call remain valid.
	r.recycle()
	first, err := r.fit()
	if err != nil {
		return nil, err
	}
	if first || r.loans != nil || r.yielded {
		r.placeResults()
	}
	r.ws.Context = ctx
	err = r.compute(ctx)
	r.ws.Context, r.ws.Again, r.ws.Read = nil, nil, nil
	if err != nil {
		r.abandon()
		return nil, err
	}
	r.filled = true
	r.stands = true
	if r.next == nil {
		r.planPrefetch()
	}
	if err := r.show(); err != nil {
		return nil, err
	}
	r.update()
	r.copyLent()
	if r.f.opts.Profile {
		r.calls++
		r.total += time.Since(start)
	}
	return r.results, nil
}

// compute runs all steps, unless the context ends before.
func (r *Runner) compute(ctx context.Context) error {
	clear(r.faults)
	regions := r.f.regions
	var used []constSlot
	if r.f.opts.Used != nil && !r.f.called.Swap(true) {
		used, r.ws.Read = r.f.consts, func(part *array.Array) { r.f.opts.Used(part, false) }
	}
	// A stretch leaves out what only checks, profiles and the first call need, so each of these goes step by
	// step.
	plain := !r.poison && r.times == nil && used == nil && r.next != nil
	record := plain && r.stands && r.again == nil && r.f.repeats
	if record {
		r.again = make([]func(), len(r.f.steps))
	}
	for i := 0; i < len(r.f.steps); i++ {
		if len(regions) > 0 && regions[0].first == i {
			if err := r.region(ctx, &regions[0]); err != nil {
				return err
			}
			i, regions = regions[0].next-1, regions[1:]
		} else if next := r.f.steps[i].plain; plain && next > i {
			if err := r.stretch(ctx, i, next, record); err != nil {
				return err
			}
			i = next - 1
		} else if ctx.Err() != nil {
			return context.Cause(ctx)
		} else if err := r.step(&r.ws, i); err != nil {
			return err
		}
		for ; len(used) > 0 && int(used[0].last) <= i; used = used[1:] {
			r.f.opts.Used(used[0].value, used[0].spent)
			r.headers[used[0].slot] = *used[0].value
		}
	}
	return nil
}

// accept stores the arguments and the shared values in their slots.
func (r *Runner) accept(args []*array.Array) error {
	f := r.f
	if len(args)+len(f.shared) != len(f.inputs) {
		return fmt.Errorf("%w: %d for %d inputs", ErrArgument, len(args), len(f.inputs)-len(f.shared))
	}
	for i, slot := range f.inputs {
		var a *array.Array
		if i < len(args) {
			a = args[i]
		} else {
			a = f.shared[i-len(args)].value
		}
		if a == nil {
			return fmt.Errorf("%w: input %d (%s) is nil", ErrArgument, i, f.graph.Inputs()[i].Name())
		}
		if err := f.types[i].Holds(a); err != nil {
			return fmt.Errorf("%w: input %d (%s): %w", ErrArgument, i, f.graph.Inputs()[i].Name(), err)
		}
		// What was recorded, and views of arguments that stand, are of the same arguments only.
		if f.opts.fixed && !r.headers[slot].Same(a) {
			r.stands, r.again = false, nil
		}
		r.headers[slot] = *a
	}
	for _, i := range f.destroyed {
		r.separate(int(i))
	}
	return nil
}

// separate copies input i, which is overwritten, if that would change something else: another input or a constant
// that has memory in common with it, wherever each begins, or other elements of its own, as of a view that repeats
// them.
func (r *Runner) separate(i int) {
	a := &r.headers[r.f.inputs[i]]
	shared := a.Repeats()
	for j, slot := range r.f.inputs {
		shared = shared || j != i && a.Overlaps(&r.headers[slot])
	}
	if i < len(r.f.inputs)-len(r.f.shared) { // others have memory of their own
		for _, c := range r.f.consts {
			shared = shared || a.Overlaps(c.value)
		}
	}
	if shared {
		*a = *a.Clone()
	}
}

// recycle reclaims the memory of the results of the last call, and of the copies that are views to
// the function.
func (r *Runner) recycle() {
	r.ws.Reclaim()
	if !r.filled {
		return
	}
	r.filled = false
	for _, slot := range r.f.shown {
		r.ws.Release(&r.headers[slot])
	}
}

// abandon leaves all memory to the garbage collector after a failure.
func (r *Runner) abandon() {
	// A step that failed may have taken memory that no slot shows. Which buffers are whole can't be
	// told from here, so the workspace begins anew, which costs one call's allocations.
	// What the next call does not compute must not seem to have memory of it.
	r.ws, r.stands, r.again = array.Workspace{MaxBytes: r.ws.MaxBytes, Threads: r.ws.Threads}, false, nil
	for slot, kind := range r.f.kinds {
		if kind != foreign {
			r.headers[slot] = array.Array{}
		}
	}
	r.lanes.beside = nil
	r.filled = false
}

// step computes an apply with a workspace, if it is needed, and frees memory.
func (r *Runner) step(ws *array.Workspace, i int) (err error) {
	s, o := &r.f.steps[i], &r.steps[i]
	for k := range s.before {
		r.decide(&s.before[k])
	}
	if r.needs(s.guard) {
		if s.doubts != nil {
			err = r.doubted(s, o)
		}
		if err == nil {
			err = r.apply(ws, i, s, o)
		}
		if s.ahead {
			r.faults[i], err = err, nil
		}
		if err != nil {
			return err
		}
	}
	// What was never computed has no memory, which Release knows.
	for _, slot := range s.free {
		ws.Release(&r.headers[slot])
	}
	if r.poison {
		r.poisonDead(s.dead)
	}
	return nil
}

// apply computes an apply.
func (r *Runner) apply(ws *array.Workspace, i int, s *step, o *operands) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = r.panicked(s, p)
		}
	}()
	var start time.Time
	var helped, waited time.Duration
	if r.times != nil {
		helped, waited = r.ws.Threads.Measured()
		start = time.Now()
	}
	var before []*array.Array
	check := r.f.opts.Check && !s.choice // of which some inputs have no value
	if check {
		before = r.kept(i)
	}
	ws.Place(o.out, o.places, o.room)
	r.announce(ws, i)
	if s.choice {
		err = r.choose(ws, s, o)
	} else {
		err = s.kernel(ws, o.in, o.out)
	}
	ws.Met = nil
	if err != nil {
		return applyError(r.f.graph, s.apply, err)
	}
	if check {
		err := r.check(i, before)
		if err == nil {
			err = r.checkClaims(i)
		}
		if err != nil {
			return applyError(r.f.graph, s.apply, err)
		}
	}
	if r.times != nil {
		r.ran[i]++
		r.times[i] += time.Since(start)
		h, w := r.ws.Threads.Measured()
		r.helped[i] += h - helped
		r.waited[i] += w - waited
		for _, a := range o.out {
			r.bytes[i] += int64(a.Bytes())
		}
	}
	return nil
}

// update gives shared variables their new values. It first copies new values that are views of old
// ones.
func (r *Runner) update() {
	f := r.f
	first := len(f.outputs) - len(f.updates)
	kept := make([]*array.Array, len(f.updates))
	for i, s := range f.updates {
		slot := f.outputs[first+i].slot
		out := &r.headers[slot]
		inPlace := out.SharesMemory(s.value) && out.Contiguous() && s.value.Contiguous() && array.SameShape(out, s.value)
		if f.kinds[f.roots[slot]] == foreign && !inPlace {
			kept[i] = out.Clone()
		}
	}
	for i, s := range f.updates {
		out := &r.headers[f.outputs[first+i].slot]
		switch {
		case kept[i] != nil:
			s.value = kept[i]
		case out.SharesMemory(s.value):
		case array.SameShape(out, s.value):
			array.CopyTo(s.value, out)
		default:
			s.value = out.Clone()
		}
	}
}

// Peak returns the largest number of bytes that results used at once, without arguments and
// constants. Beyond what Function.Memory knows, it counts what ops needed until they ended.
func (r *Runner) Peak() int64 { return r.memory.memory.Peak() + r.ws.Peak() }

// Profile returns the cost of making the function and, if FunctionOptions.Profile is set, of
// calling it, by op, the most expensive first.
func (r *Runner) Profile() *profile.Function {
	p := r.f.profile
	p.Calls, p.CallTime, p.PeakBytes = r.calls, r.total, r.Peak()
	at := make(map[string]int)
	for i, t := range r.times {
		name := r.f.steps[i].apply.Op().String()
		k, ok := at[name]
		if !ok {
			k = len(p.Execution)
			at[name] = k
			p.Execution = append(p.Execution, profile.OpCost{Name: name})
		}
		c := &p.Execution[k]
		c.Applies++
		c.Calls += r.ran[i]
		c.Time += t
		c.Helped += r.helped[i]
		c.Waited += r.waited[i]
		c.Bytes += r.bytes[i]
	}
	slices.SortStableFunc(p.Execution, func(a, b profile.OpCost) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), strings.Compare(a.Name, b.Name))
	})
	return &p
}

// An ApplyCost is the cost of an apply in all calls.
type ApplyCost struct {
	Apply string        `json:"apply"`
	Time  time.Duration `json:"time"`
	Bytes int64         `json:"bytes"` // of its results
	// Helped is how long other threads worked meanwhile, all together, and Waited how long the first
	// one waited for them.
	Helped time.Duration `json:"helped,omitempty"`
	Waited time.Duration `json:"waited,omitempty"`
}

// ByApply returns the cost of each apply in the order of execution, if FunctionOptions.Profile is
// set.
func (r *Runner) ByApply() []ApplyCost {
	list := make([]ApplyCost, len(r.times))
	for i, t := range r.times {
		list[i] = ApplyCost{r.f.steps[i].apply.String(), t, r.bytes[i], r.helped[i], r.waited[i]}
	}
	return list
}
