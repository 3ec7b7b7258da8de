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
// An Interpreter is for one goroutine.
package interp

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// ErrInput means that a value depends on an input that has none.
var ErrInput = errors.New("interp: an input without a value")

// ErrMemory means that more values would have to be kept than KeepAll allows.
var ErrMemory = errors.New("interp: too much memory")

// An Interpreter has the values of variables, which may belong to no graph yet.
type Interpreter struct {
	// KeepAll is how many bytes of values are kept because others may be asked for that depend on
	// them. 0 keeps what is asked for and small values alone, and the others as long as they are needed.
	KeepAll int64
	// MaxBytes bounds the memory of an apply. 0 means array.DefaultMaxBytes.
	MaxBytes int64

	ctx    context.Context
	values map[*fgraph.Variable]*array.Array
	bytes  int64 // of what KeepAll keeps
}

// New returns an interpreter that stops when ctx is done.
func New(ctx context.Context) *Interpreter {
	return &Interpreter{ctx: ctx, values: make(map[*fgraph.Variable]*array.Array)}
}

// Set gives a variable a value, which must not change.
func (in *Interpreter) Set(v *fgraph.Variable, a *array.Array) { in.values[v] = a }

// Value returns the value of a variable, which must not be changed. Of an IfElse only the branch that is
// taken is computed.
func (in *Interpreter) Value(v *fgraph.Variable) (*array.Array, error) {
	if a := in.of(v); a != nil {
		return a, nil
	}
	var large []*fgraph.Variable
	for stack := []*fgraph.Variable{v}; len(stack) > 0; {
		if err := in.ctx.Err(); err != nil {
			return nil, context.Cause(in.ctx)
		}
		top := stack[len(stack)-1]
		if in.of(top) != nil {
			stack = stack[:len(stack)-1]
			continue
		}
		a := top.Owner()
		if a == nil {
			return nil, fmt.Errorf("%w: %v", ErrInput, top)
		}
		before := len(stack)
		for _, x := range in.needed(a) {
			if in.of(x) == nil {
				stack = append(stack, x)
			}
		}
		if len(stack) > before {
			continue
		}
		if err := in.apply(a); err != nil {
			return nil, err
		}
		for _, x := range a.Outputs() {
			if b := int64(in.values[x].Bytes()); in.KeepAll == 0 && b > small {
				large = append(large, x)
			} else if in.bytes += b; in.bytes > max(in.KeepAll, 1<<30) {
				return nil, fmt.Errorf("%w: values of %d bytes", ErrMemory, in.bytes)
			}
		}
	}
	a := in.values[v]
	for _, x := range large {
		delete(in.values, x)
	}
	in.values[v] = a
	return a, nil
}

// small is the size of values that are kept in any case, in bytes: sizes, conditions, axes.
const small = 1 << 12

// of returns a value that is known, or nil.
func (in *Interpreter) of(v *fgraph.Variable) *array.Array {
	if a := in.values[v]; a != nil {
		return a
	}
	return tensor.ConstantOf(v)
}

// needed returns the inputs of an apply that have to be known next: of an IfElse the condition, and then
// those of one branch.
func (in *Interpreter) needed(a *fgraph.Apply) []*fgraph.Variable {
	op, ok := a.Op().(tensor.IfElseOp)
	if !ok {
		return a.Inputs()
	}
	condition := in.of(a.Inputs()[0])
	switch {
	case condition == nil:
		return a.Inputs()[:1]
	case condition.Int(0) != 0:
		return a.Inputs()[1:][:op.Outputs]
	}
	return a.Inputs()[1+op.Outputs:]
}

// apply computes the results of an apply.
func (in *Interpreter) apply(a *fgraph.Apply) error {
	k, err := tensor.Compile(a)
	if err != nil {
		return err
	}
	args := make([]*array.Array, len(a.Inputs()))
	for i, v := range a.Inputs() {
		args[i] = in.of(v) // nil in the other branch of an IfElse
	}
	out, err := Run(a, k, &array.Workspace{MaxBytes: in.MaxBytes}, args)
	if err != nil {
		return fmt.Errorf("%v: %w", a.Op(), err)
	}
	for i, v := range a.Outputs() {
		in.values[v] = out[i]
	}
	return nil
}

// Run runs the kernel of an apply for values of its inputs, which stay as they are even if the op
// overwrites one. What a kernel panics with is an error.
func Run(a *fgraph.Apply, k tensor.Kernel, ws *array.Workspace, in []*array.Array) (out []*array.Array, err error) {
	defer func() {
		if p := recover(); p != nil {
			fault, ok := p.(runtime.Error)
			if !ok {
				panic(p)
			}
			err = fault
		}
	}()
	if d, ok := a.Op().(fgraph.Destroyer); ok {
		for _, alias := range d.DestroyMap() {
			in[alias.Input] = in[alias.Input].Clone()
		}
	}
	out = make([]*array.Array, len(a.Outputs()))
	for i := range out {
		out[i] = new(array.Array)
	}
	return out, k(ws, in, out)
}

// A Body computes a graph that an op holds, see tensor.Nesting.
type Body struct{ Graph *fgraph.FunctionGraph }

// Run returns the values of the outputs.
func (b Body) Run(ctx context.Context, args ...*array.Array) ([]*array.Array, error) {
	in := New(ctx)
	for i, v := range b.Graph.Inputs() {
		in.Set(v, args[i])
	}
	return in.Values(b.Graph.Outputs())
}

// Values returns the values of several variables.
func (in *Interpreter) Values(vars []*fgraph.Variable) ([]*array.Array, error) {
	list := make([]*array.Array, len(vars))
	for i, v := range vars {
		var err error
		if list[i], err = in.Value(v); err != nil {
			return nil, err
		}
	}
	return list, nil
}
