package exec

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

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
