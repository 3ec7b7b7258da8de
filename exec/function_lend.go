package exec

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A loan is memory of a caller for an output, if it is not nil.
type loan struct {
	a      *array.Array
	memory array.Memory // of a
	room   bool         // the output is, or may be, the beginning of a
	join   *step        // what appends to an argument in a; nil if there is none
}

// LendOutput lends the memory of an array for output i: Run writes the output there, and returns the array. The
// output is computed there, unless it is a view, an argument or of a size that only a call knows, or the array
// shares memory with an argument; then it is copied. Elements of the array must lie in row-major order, and lent
// arrays must not overlap. The array is lent to all calls until LendOutput(i, nil). The error wraps ErrArgument;
// so does that of a call whose output has another shape.
func (r *Runner) LendOutput(i int, a *array.Array) error {
	f := r.f
	if i < 0 || i >= len(r.results) {
		return fmt.Errorf("%w: there is no output %d", ErrArgument, i)
	}
	l := r.loan(i)
	if a == nil {
		*l = loan{}
		return nil
	}
	if err := f.graph.Outputs()[i].Type().(tensor.Type).Holds(a); err != nil {
		return fmt.Errorf("%w: lent for output %d: %w", ErrArgument, i, err)
	}
	for k := range r.loans {
		if b := r.loans[k].a; k != i && b != nil && a.Overlaps(b) {
			return fmt.Errorf("%w: what is lent for outputs %d and %d has memory in common", ErrArgument, i, k)
		}
	}
	memory, ok := array.MemoryOf(a)
	if !ok {
		return fmt.Errorf("%w: what is lent for output %d does not have its elements in row-major order", ErrArgument, i)
	}
	*l = loan{a: a, memory: memory}
	return nil
}

// loan returns that of an output.
func (r *Runner) loan(i int) *loan {
	if r.loans == nil {
		r.loans = make([]loan, len(r.results))
	}
	return &r.loans[i]
}

// LendRoom lends memory for output i to grow in, until something else is lent for it: an array that is larger. If the
// output is an argument with something appended, Run makes it the beginning of the room, along each dimension. An
// argument that is the beginning of the room already is then not copied, nor is one that is itself the output. An
// output that is computed in another way, or is too large, is where it would be without the room.
func (r *Runner) LendRoom(i int, room *array.Array) {
	l := r.loan(i)
	if l.a == room {
		return
	}
	if *l = (loan{}); room == nil || r.poison {
		return
	}
	*l = loan{a: room, memory: array.MemoryWithin(room), room: true}
	slot := r.f.outputs[i].slot
	if k := slices.IndexFunc(r.f.steps, func(s step) bool { return slices.Contains(s.out, slot) }); k >= 0 && isJoin(r.f.steps[k].apply) {
		l.join = &r.f.steps[k]
	}
}

func isJoin(a *fgraph.Apply) bool {
	_, ok := a.Op().(tensor.JoinOp)
	return ok
}

// grows reports whether the output may be computed in its room: no argument that may be read afterwards is there, but
// for what it is appended to.
func (r *Runner) grows(l *loan) bool {
	return l.join != nil && !slices.ContainsFunc(r.f.inputs, func(slot int32) bool {
		x := &r.headers[slot]
		return x.Overlaps(l.a) && !(slot == r.f.roots[l.join.in[0]] && x.Begins(l.a))
	})
}

// placeResults gives results their memory: what is lent, or memory of the runner.
func (r *Runner) placeResults() {
	f := r.f
	if r.own == nil {
		r.own = make([]array.Memory, f.slots)
	}
	for _, o := range f.outputs {
		if root := f.roots[o.slot]; f.settled(root) {
			r.places[root] = r.own[root]
		}
	}
	// Of an output that is listed twice, one is computed where it is lent.
	for i := len(r.loans) - 1; i >= 0; i-- {
		slot, l := f.outputs[i].slot, &r.loans[i]
		if l.a != nil && f.settled(slot) && (l.room && r.grows(l) || !l.room && !r.reads(l.a)) {
			r.places[slot] = l.memory
		}
	}
	for _, o := range f.outputs {
		if root := f.roots[o.slot]; f.settled(root) && r.places[root].None() {
			r.own[root] = array.NewMemory(r.memory.homes[root].dtype, r.memory.homes[root].n)
			r.places[root] = r.own[root]
		}
	}
}

// reads reports whether an argument has memory in common with a.
func (r *Runner) reads(a *array.Array) bool {
	return slices.ContainsFunc(r.f.inputs, func(slot int32) bool { return r.headers[slot].Overlaps(a) })
}

// show sets the results of a call to what they are in the memory of the runner.
func (r *Runner) show() error {
	for i := range r.results {
		o := r.f.outputs[i]
		out := &r.headers[o.slot]
		var l loan
		if i < len(r.loans) {
			l = r.loans[i]
		}
		if l.a != nil && !l.room && !array.SameShape(out, l.a) {
			return fmt.Errorf("%w: output %d is of shape %v, what is lent for it of %v", ErrArgument, i, out.Shape(), l.a.Shape())
		}
		if o.copy && !(l.room && out.Begins(l.a)) {
			out = out.Clone()
		}
		r.results[i] = out
	}
	return nil
}

// copyLent copies results to lent memory where they are not there yet. It comes last, as lent memory may be that of
// arguments, of which results may be views.
func (r *Runner) copyLent() {
	for i, l := range r.loans {
		if l.a == nil || l.room {
			continue
		}
		if !r.results[i].In(l.memory) {
			array.CopyTo(l.a, r.results[i])
		}
		r.results[i] = l.a
	}
}
