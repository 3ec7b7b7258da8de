package exec

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A step computes an apply.
type step struct {
	apply   *fgraph.Apply
	kernel  tensor.Kernel
	in, out []int32
	free    []int32 // slots whose memory is dead after the step, and goes back to the workspace
	dead    []int32 // those whose memory has a home

	before []decision
	guard  []int32 // branches that need the step; none if it always runs
	choice bool    // it is an IfElse
	ahead  bool    // see planned
	doubts []int32 // by input: the step that computes it, if that is ahead, otherwise -1; nil if none is
	moves  []bool  // of an IfElse, by input: its memory may become that of an output
	plain  int     // the end of the plain steps from here on, see stretch; none if that is before
	stands bool    // its output is a view that is the same in all calls with one plan of memory
	// It reads and makes what has the same header in all calls with one plan of memory, and its op may say how it is
	// computed again.
	repeats bool
}

type room struct{ offset, bytes int }

type output struct {
	slot int32
	copy bool // the memory is foreign
}

type constSlot struct {
	slot  int32
	value *array.Array
	last  int32 // the last step that reads it
	spent bool  // no step reads elements of it again
}

type slotKind uint8

const (
	computed  slotKind = iota // memory of the workspace
	foreign                   // memory of a caller, of a shared variable or of a constant
	displayed                 // memory of the workspace that an output shows
)

// validate checks the graph, and that ops that overwrite an input may.
func validate(g *fgraph.FunctionGraph) error {
	for a := range g.Applies() {
		if len(destroyMap(a.Op())) > 0 {
			if err := fgraph.WatchDestroyers(g); err != nil {
				return err
			}
			break
		}
	}
	return g.Validate()
}

// A compiler gives the variables of a graph their slots, and makes the steps of a Function.
type compiler struct {
	ctx  context.Context
	f    *Function
	g    *fgraph.FunctionGraph
	slot []int32 // by variable
	laid layouts // by slot
	read []bool  // by slot: elements are read in all calls, and not only in the first one
}

func (c *compiler) newSlot(v *fgraph.Variable, kind slotKind) int32 {
	f, n := c.f, int32(c.f.slots)
	c.slot[v.ID()] = n
	f.slots++
	f.roots, f.kinds, c.laid = append(f.roots, n), append(f.kinds, kind), append(c.laid, nil)
	c.read = append(c.read, f.opts.Check)
	return n
}

// leaves gives inputs and constants their slots.
func (c *compiler) leaves() error {
	f := c.f
	for _, v := range c.g.Inputs() {
		t, ok := v.Type().(tensor.Type)
		if !ok {
			return fmt.Errorf("%w: input %v is a %v, not a tensor", tensor.ErrType, v, v.Type())
		}
		f.inputs, f.types = append(f.inputs, c.newSlot(v, foreign)), append(f.types, t)
		c.laid.inRows(c.slot[v.ID()], v)
	}
	for v := range c.g.Variables() {
		if a, ok := v.Data().(*array.Array); ok && v.IsConstant() {
			f.consts = append(f.consts, constSlot{slot: c.newSlot(v, foreign), value: a, last: -1})
			c.laid.inRows(c.slot[v.ID()], v)
		}
	}
	return nil
}

// kernel compiles an apply. The graph that an op holds becomes a function, optimized as that of f is.
func (c *compiler) kernel(a *fgraph.Apply) (tensor.Kernel, error) {
	op, ok := a.Op().(tensor.Nesting)
	if !ok {
		return tensor.Compile(a)
	}
	body, o := op.Body(), c.f.opts
	inner, err := NewFunction(c.ctx, body.Inputs(), body.Outputs(), FunctionOptions{Optimizer: o.Optimizer, MaxBytes: o.MaxBytes, Check: o.Check, fixed: true})
	if err != nil {
		return nil, fmt.Errorf("its body: %w", err)
	}
	return op.CompileBody(a, func() tensor.BodyRunner { return bodyRunner{inner.NewRunner()} })
}

// A bodyRunner runs the function of a graph that an op holds.
type bodyRunner struct{ r *Runner }

// Run runs it while the op does, whose threads have nothing else to do.
func (b bodyRunner) Run(ws *array.Workspace, args ...*array.Array) ([]*array.Array, error) {
	b.r.ws.Threads = ws.Threads
	return b.r.Run(cmp.Or(ws.Context, context.Background()), args...)
}

// Again runs it for the arguments of the last call.
func (b bodyRunner) Again(ws *array.Workspace) ([]*array.Array, error) {
	b.r.ws.Threads = ws.Threads
	return b.r.run(cmp.Or(ws.Context, context.Background()), time.Time{})
}

// step makes the step of an apply, and gives its outputs their slots.
func (c *compiler) step(p planned) error {
	f, a := c.f, p.apply
	if _, ok := a.Op().(tensor.Op); !ok {
		return fmt.Errorf("%w: %v can't be computed", tensor.ErrType, a)
	}
	k, err := c.kernel(a)
	if err != nil {
		return applyError(c.g, a, err)
	}
	s := step{apply: a, kernel: k, before: p.before, guard: p.guard, ahead: p.ahead}
	for i, d := range s.before {
		s.before[i].slot = c.slot[d.value.ID()]
		f.branches = max(f.branches, int(d.branch)+2)
	}
	_, s.choice = a.Op().(tensor.IfElseOp)
	preparing, ok := a.Op().(tensor.Preparing)
	for k, v := range a.Inputs() {
		s.in = append(s.in, c.slot[v.ID()])
		// What a branch needs may be computed in a later call for the first time, and what is ahead may have failed.
		if !ok || len(p.guard) > 0 || p.ahead || !preparing.Prepares(a, k) {
			c.read[s.in[k]] = true
		}
	}
	for _, v := range a.Outputs() {
		s.out = append(s.out, c.newSlot(v, computed))
	}
	copies, err := c.laid.step(&s)
	if err != nil {
		return applyError(c.g, a, err)
	}
	for _, alias := range aliases(a.Op()) {
		// The output lives in the memory of the input: it has no life of its own. A chain of views
		// resolves to one root, because the input's root is final when its producer was visited,
		// earlier in the order.
		if alias.Output >= 0 && !copies {
			f.roots[s.out[alias.Output]] = f.roots[s.in[alias.Input]]
		}
	}
	for _, alias := range destroyMap(a.Op()) {
		// The op writes to the memory of an argument. If the caller passes the same array twice, the
		// other input would change with it, so accept copies one of them (separate).
		if i := slices.Index(f.inputs, f.roots[s.in[alias.Input]]); i >= 0 {
			f.destroyed = append(f.destroyed, int32(i))
		}
	}
	// Only the layout of its first input decides where the elements of such a view are.
	_, viewing := a.Op().(tensor.Viewing)
	s.stands = viewing && !copies && c.laid[s.out[0]] != nil && !slices.ContainsFunc(a.Inputs()[1:], func(v *fgraph.Variable) bool { return !v.IsConstant() })
	f.steps = append(f.steps, s)
	return nil
}

// compile makes the steps of the graph.
func (f *Function) compile(ctx context.Context, g *fgraph.FunctionGraph) error {
	if err := validate(g); err != nil {
		return err
	}
	// The order includes the constraints of destroy maps: an op that overwrites an input comes
	// after all other readers of it. Everything below relies on that; there is no later check of
	// lifetimes.
	order, err := plannedOrder(g)
	if err != nil {
		return err
	}
	f.graph = g
	f.profile.Applies = g.NumApplies()
	n := g.NumVariableIDs()
	c := compiler{ctx: ctx, f: f, g: g, slot: make([]int32, n), laid: make(layouts, 0, n)}
	f.steps, f.roots, f.kinds = make([]step, 0, len(order)), make([]int32, 0, n), make([]slotKind, 0, n)
	if err := c.leaves(); err != nil {
		return err
	}
	for _, p := range order {
		if err := c.step(p); err != nil {
			return err
		}
	}
	if f.opts.Threads > 1 && !f.opts.Check && f.branches == 0 { // decisions have their places in the order
		f.findRegions()
	}
	for _, v := range g.Outputs() {
		c.read[c.slot[v.ID()]] = true
	}
	for i := range f.consts {
		f.consts[i].spent = !c.read[f.consts[i].slot]
	}
	f.plan(g, c.slot)
	for i := range f.regions {
		f.delayFrees(&f.regions[i])
	}
	for i := range f.steps {
		if s := &f.steps[i]; s.choice {
			s.moves = f.movable(s)
		}
	}
	f.settle()
	for slot, kind := range f.kinds {
		if kind == displayed && int(f.roots[slot]) == slot && !f.settled(int32(slot)) {
			f.shown = append(f.shown, int32(slot))
		}
	}
	f.doubt()
	f.findPlain()
	f.findRepeats()
	return nil
}

// destroyMap returns the destroy map of an op, if it has one.
func destroyMap(op fgraph.Op) []fgraph.Alias {
	if d, ok := op.(fgraph.Destroyer); ok {
		return d.DestroyMap()
	}
	return nil
}

// aliases lists which outputs share the memory of which inputs.
func aliases(op fgraph.Op) []fgraph.Alias {
	list := destroyMap(op)
	if v, ok := op.(fgraph.Viewer); ok {
		list = append(slices.Clone(v.ViewMap()), list...)
	}
	return list
}

// plan finds the outputs, and after which step memory is free.
func (f *Function) plan(g *fgraph.FunctionGraph, slot []int32) {
	for i, v := range g.Outputs() {
		s := slot[v.ID()]
		root := f.roots[s]
		o := output{slot: s, copy: f.kinds[root] == foreign}
		if first := len(g.Outputs()) - len(f.updates); i >= first {
			o.copy = false // see Runner.update
		}
		f.outputs = append(f.outputs, o)
		if f.kinds[root] == computed {
			f.kinds[root] = displayed
		}
	}
	// Lives are those of roots: memory is free after the last step that touches any variable in it.
	// Outputs count as uses too, so that memory without a reader is freed right after its step
	// instead of never.
	last := make([]int32, f.slots) // by root
	for i := range last {
		last[i] = -1
	}
	for i, s := range f.steps {
		for _, list := range [][]int32{s.in, s.out} {
			for _, k := range list {
				last[f.roots[k]] = int32(i)
			}
		}
	}
	for i := range f.consts {
		f.consts[i].last = last[f.consts[i].slot]
	}
	slices.SortStableFunc(f.consts, func(a, b constSlot) int { return cmp.Compare(a.last, b.last) })
	for root, i := range last {
		// Foreign memory is not ours to release, and displayed memory belongs to the caller until
		// the next call.
		if i >= 0 && int(f.roots[root]) == root && f.kinds[root] == computed {
			f.steps[i].free = append(f.steps[i].free, int32(root))
		}
	}
}

// layouts are arrays without memory, by slot, as far as it is known how values will lie in it; otherwise nil.
// Nothing depends on them but memory: what seems to be no view is copied, and an op that finds no view copies,
// too, into memory that no plan knows.
type layouts []*array.Array

// inRows notes that a value lies in row-major order, as most do, if its size is known. Who calls a function may
// give other arguments.
func (l layouts) inRows(slot int32, v *fgraph.Variable) {
	if t := tensor.TypeOf(v); t.Bytes() > 0 {
		l[slot] = array.Unmade(t.DType(), t.Shape()...)
	}
}

// step finds the layouts of what a step makes. If that is a copy where the op would rather make a view, the step
// gets a kernel that copies.
func (l layouts) step(s *step) (copies bool, err error) {
	a := s.apply
	for k, v := range a.Outputs() {
		l.inRows(s.out[k], v)
	}
	viewing, ok := a.Op().(tensor.Viewing)
	if !ok {
		// What an op makes in place lies as what it overwrites. Any other view is one whose layout it does not
		// tell, so what reads it must not rely on rows.
		for _, alias := range aliases(a.Op()) {
			if alias.Output >= 0 {
				l[s.out[alias.Output]] = nil
			}
		}
		for _, alias := range destroyMap(a.Op()) {
			if alias.Output >= 0 && tensor.TypeOf(a.Inputs()[alias.Input]) == tensor.TypeOf(a.Outputs()[alias.Output]) {
				l[s.out[alias.Output]] = l[s.in[alias.Input]]
			}
		}
		return false, nil
	}
	out := l[s.out[0]]
	x := l[s.in[0]]
	if out == nil || x == nil {
		l[s.out[0]] = nil
		return false, nil
	}
	if viewing.LayOut(a, x, out) {
		return false, nil
	}
	// Left alone, the op would find out in the call that it has to copy, and into memory that no plan knows.
	c, ok := a.Op().(tensor.Copying)
	if !ok {
		l[s.out[0]] = nil
		return false, nil
	}
	l.inRows(s.out[0], a.Out())
	s.kernel, err = c.CompileCopy(a)
	return true, err
}
