package exec

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A loan is memory of a caller for an output, if it is not nil.
type loan struct {
	a      *array.Array
	memory array.Memory // of a
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
	if r.loans == nil {
		r.loans = make([]loan, len(r.results))
	}
	l := &r.loans[i]
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
	*l = loan{a, memory}
	return nil
}

// house gives results their memory: what is lent, or memory of the runner.
func (r *Runner) house() {
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
		if slot := f.outputs[i].slot; r.loans[i].a != nil && f.settled(slot) && !r.reads(r.loans[i].a) {
			r.places[slot] = r.loans[i].memory
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
		if i < len(r.loans) && r.loans[i].a != nil && !array.SameShape(out, r.loans[i].a) {
			return fmt.Errorf("%w: output %d is of shape %v, what is lent for it of %v", ErrArgument, i, out.Shape(), r.loans[i].a.Shape())
		}
		if o.copy {
			out = out.Clone()
		}
		r.results[i] = out
	}
	return nil
}

// repay copies results to lent memory where they are not there yet. It comes last, as lent memory may be that of
// arguments, of which results may be views.
func (r *Runner) repay() {
	for i, l := range r.loans {
		if l.a == nil {
			continue
		}
		if !r.results[i].In(l.memory) {
			array.CopyTo(l.a, r.results[i])
		}
		r.results[i] = l.a
	}
}
