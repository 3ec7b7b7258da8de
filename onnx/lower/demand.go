package lower

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A demand is a value that the graph depends on: a condition, sizes, what a size is computed of. It was
// computed to make the graph, and is computed again with it: the results hold if it is the same again.
type demand struct {
	v     *fgraph.Variable
	value *array.Array
	input int // the place of an input that is the value, otherwise -1
}

// valueOf computes a variable from the arguments. The graph depends on the value from then on.
func (l *lowering) valueOf(v *fgraph.Variable) (*array.Array, error) {
	if a := tensor.ConstantOf(v); a != nil {
		return a, nil
	}
	if a := l.known[v]; a != nil && l.loops == 0 {
		return a, nil
	}
	a, err := l.compute(v)
	if err == nil && !slices.ContainsFunc(l.demands, func(d demand) bool { return d.v == v }) {
		l.demands = append(l.demands, demand{v, a, slices.Index(l.inputs, v)})
	}
	return a, err
}

// compute computes a variable from the arguments.
func (l *lowering) compute(v *fgraph.Variable) (*array.Array, error) {
	if l.loops > 0 {
		return l.stepwise(v)
	}
	needed := fgraph.InputsOf(v)
	var inputs []*fgraph.Variable
	var args []*array.Array
	for i, in := range l.inputs {
		if slices.Contains(needed, in) {
			inputs, args = append(inputs, in), append(args, l.arguments[i])
		}
	}
	f, err := exec.NewFunction(l.ctx, inputs, []*fgraph.Variable{v}, exec.FunctionOptions{})
	if err != nil {
		return nil, err
	}
	values, err := f.Call(l.ctx, args...)
	if err != nil {
		return nil, err
	}
	if l.known == nil {
		l.known = make(map[*fgraph.Variable]*array.Array)
	}
	l.known[v] = values[0]
	return values[0], nil
}

// maxKept bounds the bytes of values that are kept to compute conditions.
const maxKept = 1 << 30

// stepwise computes a variable and keeps all values on the way: each iteration of a loop may ask for a
// value that goes on from that of the iteration before.
func (l *lowering) stepwise(v variable) (*array.Array, error) {
	if l.known == nil {
		l.known = make(map[variable]*array.Array)
	}
	for stack := []variable{v}; len(stack) > 0; {
		if err := l.ctx.Err(); err != nil {
			return nil, err
		}
		top, todo := stack[len(stack)-1], false
		if l.known[top] != nil {
			stack = stack[:len(stack)-1]
			continue
		}
		if a := top.Owner(); a != nil {
			for _, in := range l.needed(a) {
				if l.known[in] == nil {
					stack, todo = append(stack, in), true
				}
			}
		}
		if todo {
			continue
		}
		if err := l.keep(top); err != nil {
			return nil, err
		}
	}
	return l.known[v], nil
}

// needed returns the inputs of an apply that have to be computed now: of an IfElse the condition, and then those
// of one branch.
func (l *lowering) needed(a *fgraph.Apply) []variable {
	op, ok := a.Op().(tensor.IfElseOp)
	if !ok {
		return a.Inputs()
	}
	condition := l.known[a.Inputs()[0]]
	switch {
	case condition == nil:
		return a.Inputs()[:1]
	case condition.Int(0) != 0:
		return a.Inputs()[1:][:op.Outputs]
	}
	return a.Inputs()[1+op.Outputs:]
}

// keep computes a variable whose inputs are known.
func (l *lowering) keep(v variable) error {
	a := v.Owner()
	if a == nil {
		if l.known[v] = tensor.ConstantOf(v); l.known[v] == nil {
			i := slices.Index(l.inputs, v)
			if i < 0 {
				return errors.New("an input without a value")
			}
			l.known[v] = l.arguments[i]
		}
		return nil
	}
	k, err := tensor.Compile(a)
	if err != nil {
		return err
	}
	in, out := make([]*array.Array, len(a.Inputs())), make([]*array.Array, len(a.Outputs()))
	for i, x := range a.Inputs() {
		in[i] = l.known[x]
	}
	for i := range out {
		out[i] = new(array.Array)
	}
	ws := array.Workspace{MaxBytes: 1 << 28}
	if err := k(&ws, in, out); err != nil {
		return err
	}
	if l.kept += ws.Peak(); l.kept > maxKept {
		return fmt.Errorf("%w: loops that depend on values of %d bytes", ErrUnsupported, l.kept)
	}
	for i, x := range a.Outputs() {
		l.known[x] = out[i]
	}
	return nil
}
