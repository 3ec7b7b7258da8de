package exec

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// kept returns copies of the inputs of step i: nil for inputs that may be overwritten, directly or
// through an alias, and for sparse ones, whose elements ops can't reach.
func (r *Runner) kept(i int) []*array.Array {
	s, o := &r.f.steps[i], &r.steps[i]
	may := make(map[int32]bool) // by root
	for _, alias := range destroyMap(s.apply.Op()) {
		may[r.f.roots[s.in[alias.Input]]] = true
	}
	list := make([]*array.Array, len(o.in))
	for k, a := range o.in {
		if !may[r.f.roots[s.in[k]]] && !a.IsCSR() {
			list[k] = a.Clone()
		}
	}
	return list
}

// check verifies that step i did what its op declares: which inputs it overwrites, which of them
// its outputs share memory with, and the types of its outputs.
func (r *Runner) check(i int, before []*array.Array) error {
	s, o := &r.f.steps[i], &r.steps[i]
	for k, a := range before {
		if a != nil && !array.Equal(a, o.in[k]) {
			return fmt.Errorf("%w: it overwrites its input %d, which is not in its destroy map", fgraph.ErrDeclaration, k)
		}
	}
	if o.room != nil && o.room.Taken() {
		return fmt.Errorf("%w: it keeps memory of the workspace that is not that of an output", fgraph.ErrDeclaration)
	}
	for k, out := range o.out {
		if err := s.apply.Outputs()[k].Type().(tensor.Type).Holds(out); err != nil {
			return fmt.Errorf("%w: output %d is not what was inferred: %w", fgraph.ErrDeclaration, k, err)
		}
		root := r.f.roots[s.out[k]]
		for j, in := range o.in {
			// Arguments may overlap each other: then what is a view of one is in the memory of both.
			declared := root != s.out[k] && r.headers[root].Overlaps(in)
			if r.f.roots[s.in[j]] != root && out.Overlaps(in) && !declared {
				return fmt.Errorf("%w: output %d is in the memory of input %d, which is neither in its view map nor in its destroy map", fgraph.ErrDeclaration, k, j)
			}
		}
		for j, other := range o.out[:k] {
			if r.f.roots[s.out[j]] != root && out.Overlaps(other) {
				return fmt.Errorf("%w: outputs %d and %d are in the same memory", fgraph.ErrDeclaration, j, k)
			}
		}
	}
	return nil
}
