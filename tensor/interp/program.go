package interp

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A Program is applies in an order in which they can run. Each variable that they read or make has a slot.
// The zero value is empty. It must not grow while a State of it is in use.
type Program struct {
	Steps []Step

	slots     map[*fgraph.Variable]int
	vars      []*fgraph.Variable // by slot
	constants []*array.Array     // by slot, nil for other variables
	maker     []int              // by slot, the step that computes the variable, or -1
	uses      []int              // by slot, how many inputs of steps it is, and one more for each Keep
}

// A Step is an apply of a Program.
type Step struct {
	Apply   *fgraph.Apply
	Kernel  tensor.Kernel // what its owner wants it to be computed by
	In, Out []int         // slots
}

// Arguments returns the values of the inputs, of values by slot.
func (s *Step) Arguments(values []*array.Array) []*array.Array {
	list := make([]*array.Array, len(s.In))
	for i, slot := range s.In {
		if slot != unread {
			list[i] = values[slot]
		}
	}
	return list
}

// Slots returns the slots of variables. Those that have none get the next ones.
func (p *Program) Slots(vars []*fgraph.Variable) []int {
	if p.slots == nil {
		p.slots = make(map[*fgraph.Variable]int)
	}
	list := make([]int, len(vars))
	for i, v := range vars {
		slot, ok := p.slots[v]
		if !ok {
			slot = len(p.vars)
			p.slots[v] = slot
			p.vars, p.constants = append(p.vars, v), append(p.constants, tensor.ConstantOf(v))
			p.maker, p.uses = append(p.maker, -1), append(p.uses, 0)
		}
		list[i] = slot
	}
	return list
}

// Keep has states keep the values of variables, even when no step reads them any more.
func (p *Program) Keep(vars ...*fgraph.Variable) {
	for _, slot := range p.Slots(vars) {
		p.uses[slot]++
	}
}

// Constants returns the values of the variables that are constants.
func (p *Program) Constants() []*array.Array {
	return slices.DeleteFunc(slices.Clone(p.constants), func(a *array.Array) bool { return a == nil })
}

// Append appends the applies that variables are computed from and that the program does not have yet, up to
// variables that are known, if known is not nil. Their kernels are nil.
func (p *Program) Append(vars []*fgraph.Variable, known func(*fgraph.Variable) bool) {
	stop := func(v *fgraph.Variable) bool {
		slot, ok := p.slots[v]
		return ok && p.maker[slot] >= 0 || known != nil && known(v)
	}
	fgraph.Walk(vars, stop, func(a *fgraph.Apply) { p.Add(a, nil) })
}

// Add appends an apply.
func (p *Program) Add(a *fgraph.Apply, k tensor.Kernel) {
	s := Step{a, k, p.Slots(a.Inputs()), p.Slots(a.Outputs())}
	for _, slot := range s.In {
		p.uses[slot]++
	}
	for _, slot := range s.Out {
		p.maker[slot] = len(p.Steps)
	}
	p.Steps = append(p.Steps, s)
}

// A State has the values of a Program while it is computed. It drops a result when all steps that read it
// have run.
type State struct {
	Values []*array.Array // by slot
	// MaxBytes bounds the results that there are at a time. 0 is no bound.
	MaxBytes int64

	program *Program
	left    []int // by slot, uses that are to come
	bytes   int64
}

// Start returns a state with the values of constants, and of the variables with the first slots.
func (p *Program) Start(first ...*array.Array) *State {
	s := &State{Values: slices.Clone(p.constants), program: p, left: slices.Clone(p.uses)}
	copy(s.Values, first)
	return s
}

// Of returns the value of a variable that has a slot, or nil if it has none.
func (s *State) Of(v *fgraph.Variable) *array.Array { return s.Values[s.program.slots[v]] }

// Arguments returns the values of the inputs of step n.
func (s *State) Arguments(n int) []*array.Array { return s.program.Steps[n].Arguments(s.Values) }

// Run computes step n with a kernel.
func (s *State) Run(ws *array.Workspace, n int, k tensor.Kernel) error {
	out, err := tensor.Run(s.program.Steps[n].Apply, k, ws, s.Arguments(n))
	if err != nil {
		return err
	}
	return s.Put(n, out)
}

// Put stores the results of step n, and drops what no step reads any more.
func (s *State) Put(n int, out []*array.Array) error {
	step := &s.program.Steps[n]
	for i, slot := range step.Out {
		s.Values[slot] = out[i]
		s.bytes += int64(out[i].Bytes())
	}
	// Before anything is released: now the results and all that they were computed from are there.
	if s.MaxBytes > 0 && s.bytes > s.MaxBytes {
		return fmt.Errorf("%w: values of %d bytes", ErrMemory, s.bytes)
	}
	for _, slot := range step.In {
		s.release(slot)
	}
	for _, slot := range step.Out {
		if s.left[slot] == 0 {
			s.drop(slot)
		}
	}
	return nil
}

// release notes that one use of a value less is to come.
func (s *State) release(slot int) {
	for todo := []int{slot}; len(todo) > 0; {
		slot := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if slot == unread {
			continue
		}
		s.left[slot]--
		maker := s.program.maker[slot]
		if s.left[slot] > 0 || maker < 0 {
			continue
		}
		if s.Values[slot] != nil {
			s.drop(slot)
			continue
		}
		// It was for a branch that is not taken. If nobody wants any result of its step, that does not run, and
		// does not hold what it would have read.
		step := &s.program.Steps[maker]
		if !slices.ContainsFunc(step.Out, func(slot int) bool { return s.left[slot] > 0 }) {
			todo = append(todo, step.In...)
		}
	}
}

func (s *State) drop(slot int) {
	s.bytes -= int64(s.Values[slot].Bytes())
	s.Values[slot] = nil
}

// unread is in place of the slot of an input that a step does not read, see needed.
const unread = -1

// needed returns the slots that step n reads, or only those that have to be known to tell which: of an IfElse the
// condition, and then those of one branch. The program is of no use for another state after that.
func (s *State) needed(n int) []int {
	step := &s.program.Steps[n]
	op, ok := step.Apply.Op().(tensor.IfElseOp)
	if !ok {
		return step.In
	}
	condition := s.Values[step.In[0]]
	if condition == nil {
		return step.In[:1]
	}
	taken, other := step.In[1:][:op.Outputs], step.In[1+op.Outputs:]
	if condition.Int(0) == 0 {
		taken, other = other, taken
	}
	for i, slot := range other {
		other[i] = unread
		s.release(slot)
	}
	return taken
}
