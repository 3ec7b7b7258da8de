package session

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A Function computes a model for inputs of some shapes.
type Function struct {
	f         *exec.Function
	inputs    []string
	variables []*fgraph.Variable
	elems     []onnx.DataType // of inputs
	strings   *lower.Strings
	demands   []lower.Demand
	outputs   []lower.Output
	open      bool // it is for any sizes that the types of variables don't have
	took      time.Duration
	failures  atomic.Int32 // of one that is open
}

// Outputs lists the outputs in the order of the model.
func (f *Function) Outputs() []lower.Output { return slices.Clone(f.outputs) }

// AnySizes reports whether the function is one for any sizes, see lower.Options.
func (f *Function) AnySizes() bool { return f.open }

// LowerTime returns how long it took to make and optimize the graph.
func (f *Function) LowerTime() time.Duration { return f.took }

// Graph returns the optimized graph of tensors. It must not be changed.
func (f *Function) Graph() *fgraph.FunctionGraph { return f.f.Graph() }

// Memory returns how much memory a call needs for what it computes.
func (f *Function) Memory() exec.Memory { return f.f.Memory() }

// Call computes the outputs. The error is a lower.ErrInput if the model has to be lowered again for these
// inputs.
func (f *Function) Call(ctx context.Context, inputs map[string]*array.Array) (map[string]*array.Array, error) {
	return f.run(ctx, inputs, f.f.Call, make([]*array.Array, len(f.inputs)), make(map[string]*array.Array))
}

// A Runner calls a Function for one goroutine. It reuses memory: after the first calls it allocates
// next to nothing.
type Runner struct {
	*exec.Runner
	f       *Function
	args    []*array.Array
	outputs map[string]*array.Array
}

// NewRunner returns a Runner for one goroutine.
func (f *Function) NewRunner() *Runner { return f.runner(f.f.NewRunner()) }

func (f *Function) runner(r *exec.Runner) *Runner {
	return &Runner{r, f, make([]*array.Array, len(f.inputs)), make(map[string]*array.Array)}
}

// LendOutput makes an array the memory of an output, into which Run then writes, see exec.Runner.LendOutput. The
// error is a lower.ErrInput if there is no such output.
func (r *Runner) LendOutput(name string, a *array.Array) error {
	i := r.f.output(name)
	if i < 0 {
		return fmt.Errorf("%w: there is no output %s", lower.ErrInput, name)
	}
	return r.Runner.LendOutput(i, a)
}

// lendRoom is exec.Runner.LendRoom for an output with a name, if there is one.
func (r *Runner) lendRoom(name string, room *array.Array) {
	if i := r.f.output(name); i >= 0 {
		r.Runner.LendRoom(i, room)
	}
}

func (f *Function) output(name string) int {
	return slices.IndexFunc(f.outputs, func(o lower.Output) bool { return o.Name == name })
}

// Run is like Function.Call, but the outputs, and the map, are valid only until the next Run. It reads inputs
// where they are.
func (r *Runner) Run(ctx context.Context, inputs map[string]*array.Array) (map[string]*array.Array, error) {
	return r.f.run(ctx, inputs, r.Runner.Run, r.args, r.outputs)
}

// run computes the outputs by something that runs f.f, and sets args and outputs, which it returns.
func (f *Function) run(ctx context.Context, inputs map[string]*array.Array, by func(context.Context, ...*array.Array) ([]*array.Array, error), args []*array.Array, outputs map[string]*array.Array) (map[string]*array.Array, error) {
	if err := f.refuses(inputs); err != nil {
		return nil, err
	}
	f.strings.Begin()
	defer f.strings.End()
	for i, name := range f.inputs {
		if args[i] = inputs[name]; f.elems[i] == onnx.String {
			var err error
			if args[i], err = f.strings.Numbers(args[i]); err != nil {
				return nil, err
			}
		}
	}
	values, err := by(ctx, args...)
	if err != nil {
		return nil, f.broken(ctx, args, err)
	}
	// Behind the outputs are the values that the graph was made for. If one is another now, the outputs before
	// it are those of a wrong graph.
	made := values[len(f.outputs):]
	for i, d := range f.demands {
		if d.Input >= 0 {
			continue
		}
		if !array.Equal(made[0], d.Value) {
			return nil, &otherValue{i, made[0].Clone(), "a value that is computed", nil}
		}
		made = made[1:]
	}
	for i, o := range f.outputs {
		if outputs[o.Name] = values[i]; o.Elem == onnx.String {
			if outputs[o.Name], err = f.strings.Texts(values[i]); err != nil {
				return nil, err
			}
		}
	}
	return outputs, nil
}

// refuses returns a lower.ErrInput if inputs have other types, shapes or values than the graph was made for. It
// finds what shows without computing anything; broken finds the rest.
func (f *Function) refuses(inputs map[string]*array.Array) error {
	for i, name := range f.inputs {
		a := inputs[name]
		switch {
		case a == nil:
			return fmt.Errorf("%w: %s has no value", lower.ErrInput, name)
		case !f.takes(tensor.TypeOf(f.variables[i]), a, f.elems[i]):
			return fmt.Errorf("%w: %s is %v %v, and was %v", lower.ErrInput, name, a.DType(), a.Shape(), f.variables[i].Type())
		}
	}
	for i, d := range f.demands {
		if d.Input >= 0 && !array.Equal(inputs[f.inputs[d.Input]], d.Value) {
			return &otherValue{i, inputs[f.inputs[d.Input]], "the value of " + f.inputs[d.Input], nil}
		}
	}
	for name := range inputs {
		if !slices.Contains(f.inputs, name) {
			return fmt.Errorf("%w: %s had no value", lower.ErrInput, name)
		}
	}
	return nil
}

// takes reports whether an input may have a value: sizes of 1 and 0 are never open.
func (f *Function) takes(t tensor.Type, a *array.Array, elem onnx.DataType) bool {
	if isString := a.DType() == array.String; isString != (elem == onnx.String) || !isString && t.DType() != a.DType() || t.NDim() != a.NDim() {
		return false
	}
	for d := range t.NDim() {
		if n := t.Dim(d); n != a.Dim(d) && (n != tensor.Unknown || f.open && a.Dim(d) < lower.LeastFree) {
			return false
		}
	}
	return true
}

// broken returns the error of a run: a lower.ErrInput if the inputs lead to another graph. The values that the
// graph depends on are computed again in the order in which it was asked for them, since each may depend on
// those before.
func (f *Function) broken(ctx context.Context, args []*array.Array, err error) error {
	for i, d := range f.demands {
		if d.Input >= 0 || ctx.Err() != nil {
			continue
		}
		g, fault := exec.NewFunction(ctx, f.variables, []*fgraph.Variable{d.Variable}, exec.FunctionOptions{})
		if fault != nil {
			return err
		}
		values, fault := g.Call(ctx, args...)
		if fault != nil {
			return err
		}
		if !array.Equal(values[0], d.Value) {
			return &otherValue{i, values[0], "a value that is computed", err}
		}
	}
	return err
}

// An otherValue is the lower.ErrInput of a graph that depends on values: at is the index of the first demand whose
// value differs.
type otherValue struct {
	at    int
	value *array.Array
	what  string
	err   error // what came of it
}

func (e *otherValue) Error() string {
	text := fmt.Sprintf("%v: the graph depends on %s, which is another one", lower.ErrInput, e.what)
	if e.err != nil {
		text += ": " + e.err.Error()
	}
	return text
}

// Is reports that the error is a lower.ErrInput.
func (e *otherValue) Is(target error) bool { return target == lower.ErrInput }
