// Package interp computes tensor graphs apply by apply, without optimizing or planning anything.
//
//	in := interp.New(ctx)
//	in.Set(x, value)
//	y, err := in.Value(y)
//
// It serves those who need values of a graph while they make it or look at it, once: sizes that
// depend on inputs, nodes of constants, a few draws. What is run again and again is compiled, by
// package exec.
//
// An Interpreter finds out by itself what it has to compute. Who computes everything, perturbs values on the
// way or has other kernels runs the steps of a Program one by one, in a State.
//
// An Interpreter and a State are for one goroutine.
package interp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// ErrInput means that a value depends on an input that has none.
var ErrInput = errors.New("interp: an input without a value")

// ErrMemory means that there would be more values at a time than KeepAll or MaxBytes allows.
var ErrMemory = errors.New("interp: too much memory")

// An Interpreter has the values of variables, which may belong to no graph yet.
type Interpreter struct {
	// KeepAll is how many bytes of values are kept because others may be asked for that depend on
	// them. 0 keeps what is asked for and small values alone, and the others as long as they are needed.
	KeepAll int64
	// MaxBytes bounds the memory of an apply and of the values that are there meanwhile. 0 means array.DefaultMaxBytes.
	MaxBytes int64

	ctx    context.Context
	values map[*fgraph.Variable]*array.Array
	bytes  int64        // of what KeepAll keeps
	work   *tensor.Work // of a round
}

// New returns an interpreter that stops when ctx is done.
func New(ctx context.Context) *Interpreter {
	return &Interpreter{ctx: ctx, values: make(map[*fgraph.Variable]*array.Array)}
}

// Set gives a variable a value, which must not change.
func (in *Interpreter) Set(v *fgraph.Variable, a *array.Array) { in.values[v] = a }

// Value returns the value of a variable, which must not be changed.
func (in *Interpreter) Value(v *fgraph.Variable) (*array.Array, error) {
	if a := in.values[v]; a != nil {
		return a, nil
	}
	list, err := in.Values([]*fgraph.Variable{v})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// Values returns the values of several variables. Of an IfElse only the branch that is taken is computed.
func (in *Interpreter) Values(vars []*fgraph.Variable) ([]*array.Array, error) {
	s := in.start(vars)
	p := s.program
	stack := p.Slots(vars)
	for slices.Reverse(stack); len(stack) > 0; {
		if in.ctx.Err() != nil {
			return nil, context.Cause(in.ctx)
		}
		// What is on the stack has a step that is to read it, or was asked for, and is not dropped meanwhile.
		top := stack[len(stack)-1]
		if s.Values[top] != nil {
			stack = stack[:len(stack)-1]
			continue
		}
		n, before := p.maker[top], len(stack)
		if n < 0 {
			return nil, fmt.Errorf("%w: %v", ErrInput, p.vars[top])
		}
		for _, slot := range s.needed(n) {
			if s.Values[slot] == nil {
				stack = append(stack, slot)
			}
		}
		if len(stack) > before {
			continue
		}
		if err := in.step(s, n); err != nil {
			return nil, err
		}
	}
	list := make([]*array.Array, len(vars))
	for i, v := range vars {
		list[i] = s.Of(v)
		in.values[v] = list[i]
	}
	return list, nil
}

// start returns a state of all that may be needed for some variables. What an IfElse does not need is found on
// the way: which branch that is may depend on another IfElse.
func (in *Interpreter) start(vars []*fgraph.Variable) *State {
	var p Program
	p.Keep(vars...)
	p.Append(vars, func(v *fgraph.Variable) bool { return in.values[v] != nil })
	s := p.Start()
	for slot, v := range p.vars {
		if a := in.values[v]; a != nil {
			s.Values[slot] = a
		}
	}
	return s
}

// small is the size of values that are kept in any case, in bytes: sizes, conditions, axes.
const small = 1 << 12

// stepCost is what a step takes besides its kernel, which is compiled each time, in picoseconds: 2 to 5 µs (Zen 5,
// 2026-11-28).
const stepCost = 4e6

// step computes a step. Its kernel is not kept: it may have prepared weights.
func (in *Interpreter) step(s *State, n int) error {
	a := s.program.Steps[n].Apply
	if err := in.work.Spend(stepCost); err != nil {
		return err
	}
	k, err := tensor.Compile(a)
	if err != nil {
		return err
	}
	room := cmp.Or(in.MaxBytes, array.DefaultMaxBytes) - s.bytes
	out, err := tensor.Run(a, k, &array.Workspace{MaxBytes: max(room, 1), Context: in.ctx}, s.Arguments(n))
	if err != nil {
		return fmt.Errorf("%v: %w", a.Op(), err)
	}
	for i, v := range a.Outputs() {
		b := int64(out[i].Bytes())
		if in.KeepAll == 0 && b > small || in.values[v] != nil {
			continue
		}
		in.values[v] = out[i]
		if in.bytes += b; in.bytes > max(in.KeepAll, 1<<30) {
			return fmt.Errorf("%w: values of %d bytes", ErrMemory, in.bytes)
		}
	}
	return s.Put(n, out)
}

// A Body computes a graph that an op holds, see tensor.Nesting.
type Body struct {
	Graph *fgraph.FunctionGraph
	args  []*array.Array
}

// Again is Run for the arguments of the last one.
func (b *Body) Again(ws *array.Workspace) ([]*array.Array, error) { return b.Run(ws, b.args...) }

// Run returns the values of the outputs.
func (b *Body) Run(ws *array.Workspace, args ...*array.Array) ([]*array.Array, error) {
	ctx := cmp.Or(ws.Context, context.Background())
	in := New(ctx)
	in.work = tensor.WorkOf(ctx)
	if err := in.work.Spend(stepCost); err != nil {
		return nil, err
	}
	for i, v := range b.Graph.Inputs() {
		in.Set(v, args[i])
	}
	b.args = args
	list, err := in.Values(b.Graph.Outputs())
	for i, a := range list {
		if slices.ContainsFunc(args, a.Overlaps) {
			list[i] = a.Clone()
		}
	}
	return list, err
}
