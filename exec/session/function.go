package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/interp"
)

// A Function computes a model for inputs of some shapes.
type Function struct {
	f    *exec.Function
	l    *lower.Lowered
	open bool // it is for any sizes that the types of variables don't have
	took time.Duration
}

// Outputs lists the outputs in the order of the model.
func (f *Function) Outputs() []lower.Output { return slices.Clone(f.l.Outputs) }

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
	return f.run(ctx, inputs, f.f.Call, make([]*array.Array, len(f.l.Inputs)), make(map[string]*array.Array))
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
	return &Runner{r, f, make([]*array.Array, len(f.l.Inputs)), make(map[string]*array.Array)}
}

// Profile runs the function so many times and returns what that took, if it was made with the option for it.
func (f *Function) Profile(ctx context.Context, inputs map[string]*array.Array, runs int) (*profile.Function, error) {
	r := f.NewRunner()
	for range runs {
		if _, err := r.Run(ctx, inputs); err != nil {
			return nil, err
		}
	}
	return r.Profile(), nil
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

// output returns the index of an output, -1 if there is none.
func (f *Function) output(name string) int {
	return slices.IndexFunc(f.l.Outputs, func(o lower.Output) bool { return o.Name == name })
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
	f.l.Strings.Begin()
	defer f.l.Strings.End()
	for i, v := range f.l.Inputs {
		var err error
		if args[i], err = f.l.Strings.Numbers(inputs[v.Name()]); err != nil {
			return nil, err
		}
	}
	values, err := by(ctx, args...)
	if err != nil {
		in := interp.New(ctx)
		for i, v := range f.l.Inputs {
			in.Set(v, args[i])
		}
		if other := f.differs(func(d lower.Demand) *array.Array { v, _ := in.Value(d.Variable); return v }); other != nil {
			err = fmt.Errorf("%w: %v", other, err)
		}
		return nil, err
	}
	// Behind the outputs are the values that the graph was made for. If one is another now, the outputs before
	// it are those of a wrong graph.
	made := values[len(f.l.Outputs):]
	if err := f.differs(func(d lower.Demand) (v *array.Array) {
		if d.Input < 0 {
			v, made = made[0], made[1:]
		}
		return v
	}); err != nil {
		return nil, err
	}
	for i, o := range f.l.Outputs {
		if outputs[o.Name] = values[i]; o.Elem == onnx.String {
			if outputs[o.Name], err = f.l.Strings.Texts(values[i]); err != nil {
				return nil, err
			}
		}
	}
	return outputs, nil
}

// refuses returns a lower.ErrInput if inputs have other types, shapes or values than the graph was made for. It
// finds what shows without computing anything.
func (f *Function) refuses(inputs map[string]*array.Array) error {
	for i, v := range f.l.Inputs {
		switch a := inputs[v.Name()]; {
		case a == nil:
			return fmt.Errorf("%w: %s has no value", lower.ErrInput, v.Name())
		case !takes(tensor.TypeOf(v), a, f.l.Elems[i]):
			return fmt.Errorf("%w: %s is %v %v, and was %v", lower.ErrInput, v.Name(), a.DType(), a.Shape(), v.Type())
		}
	}
	if len(inputs) > len(f.l.Inputs) { // all of which are there
		others := maps.Clone(inputs)
		for _, v := range f.l.Inputs {
			delete(others, v.Name())
		}
		return fmt.Errorf("%w: %s had no value", lower.ErrInput, slices.Min(slices.Collect(maps.Keys(others))))
	}
	for _, d := range f.l.Demands {
		if d.Input >= 0 && !array.Equal(inputs[f.l.Inputs[d.Input].Name()], d.Value) {
			return fmt.Errorf("%w: the graph depends on the value of %v, which is another one", lower.ErrInput, d.Variable)
		}
	}
	return nil
}

// takes reports whether an input may have a value: sizes of 1 and 0 are never open.
func takes(t tensor.Type, a *array.Array, elem onnx.DataType) bool {
	text := a.DType() == array.String
	return text == (elem == onnx.String) && (text || a.DType() == t.DType()) && slices.EqualFunc(t.Shape(), a.Shape(), func(want, n int) bool {
		return n == want || want == tensor.Unknown && n >= lower.LeastFree
	})
}

// differs returns the lower.ErrInput of inputs for which demands have other values now, nil if none has. They are looked
// at in their order, since each may depend on those before, and passed over where there is no value.
func (f *Function) differs(now func(lower.Demand) *array.Array) error {
	for i, d := range f.l.Demands {
		if v := now(d); v != nil && !array.Equal(v, d.Value) {
			known := append(slices.Clone(f.l.Demands[:i]), lower.Demand{Value: v.Clone()})
			return &otherValue{known, fmt.Errorf("%w: the graph depends on %v, whose value is another one", lower.ErrInput, d.Variable)}
		}
	}
	return nil
}

// An otherValue is the lower.ErrInput of a graph that depends on values. Known are those that were found, to the first
// that differs.
type otherValue struct {
	known []lower.Demand
	error
}

// Unwrap returns the lower.ErrInput.
func (e *otherValue) Unwrap() error { return e.error }

// declared returns a lower.ErrInput if inputs have other sizes than the model declares. A size with a name is one
// number in all inputs: passes take sizes of one name for equal, so a graph for different ones might compute
// something else. Only an input of which no sizes are read may have any: ONNX's own tests give such ones to
// CastLike. What inputs a model has, and of what types, is found when they are bound.
func declared(g *onnx.Graph, inputs map[string]*array.Array) error {
	known := make(map[string]declaredSize)
	var faults []error
	for _, in := range g.Inputs {
		t, list := in.Type, false
		if t != nil && t.Optional != nil {
			t = t.Optional.Elem
		}
		if t != nil && t.Sequence != nil {
			t, list = t.Sequence.Elem, true
		}
		if t == nil || t.Tensor == nil || t.Tensor.Shape == nil {
			continue
		}
		if !list {
			if err := fits(in.Name, t.Tensor, inputs[in.Name], known); err != nil && sizesRead(g, in.Name) {
				faults = append(faults, err)
			}
			continue
		}
		// The tensors of a sequence may have different sizes, so names say nothing in them.
		for i := 0; inputs[lower.Item(in.Name, i)] != nil; i++ {
			faults = append(faults, fits(lower.Item(in.Name, i), t.Tensor, inputs[lower.Item(in.Name, i)], nil))
		}
	}
	return errors.Join(faults...)
}

// sizesRead reports whether a graph, or one inside it, does more with a value than to ask for its type.
func sizesRead(g *onnx.Graph, name string) bool {
	for g := range onnx.Nested(g) {
		if slices.ContainsFunc(g.Outputs, func(o *onnx.ValueInfo) bool { return o.Name == name }) {
			return true
		}
		for _, n := range g.Nodes {
			if i := slices.Index(n.Inputs, name); i >= 0 && !(i == 1 && n.Op == "CastLike" && (n.Domain == "" || n.Domain == "ai.onnx")) {
				return true
			}
		}
	}
	return false
}

// A declaredSize is the number that a name stands for, with where that was found.
type declaredSize struct {
	size  int
	input string
}

// fits returns an error if a value, which may be missing, does not have the sizes of its type. It notes those
// of names in known, unless that is nil.
func fits(name string, t *onnx.TensorType, a *array.Array, known map[string]declaredSize) error {
	if a == nil {
		return nil
	}
	dims := t.Shape.Dims
	if len(dims) != a.NDim() {
		return fmt.Errorf("%w: %s is declared as %v, with %d dimensions, and has %d: %v", lower.ErrInput, fileio.Excerpt(name, 0), t, len(dims), a.NDim(), a.Shape())
	}
	for i, d := range dims {
		n := a.Dim(i)
		size, symbol := d.Size()
		switch first, again := known[symbol]; {
		case size >= 0 && size != int64(n):
			return fmt.Errorf("%w: %s is declared as %v, and has the shape %v: size %d should be %d", lower.ErrInput, fileio.Excerpt(name, 0), t, a.Shape(), i, size)
		case symbol == "" || known == nil:
		case again && first.size != n:
			return fmt.Errorf("%w: %s is declared as %v, and has the shape %v: size %d should be %d, since %s is %d in %s", lower.ErrInput,
				fileio.Excerpt(name, 0), t, a.Shape(), i, first.size, fileio.Excerpt(symbol, 0), first.size, fileio.Excerpt(first.input, 0))
		case !again:
			known[symbol] = declaredSize{n, name}
		}
	}
	return nil
}
