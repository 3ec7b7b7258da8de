package tensors

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/tool/repro"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// tolerance is the relative difference that rounding may explain.
const tolerance = 1e-4

// World returns the world of graphs of tensors that are written in a dialect. They are run as an
// [exec.Function] that checks what ops declare. Values are arrays.
func World(d graphfile.Dialect) repro.World { return world{d} }

type world struct{ dialect graphfile.Dialect }

func (w world) Dialect() graphfile.Dialect { return w.dialect }

func (w world) Random(ctx context.Context, g *fgraph.FunctionGraph, seed uint64) ([]any, error) {
	f, err := exec.NewFunction(ctx, g.Inputs(), g.Outputs(), exec.FunctionOptions{})
	if err != nil {
		return nil, err
	}
	args, err := f.RandomArguments(ctx, seed)
	return anys(args), err
}

func anys(arrays []*array.Array) []any {
	return lists.Map(arrays, func(a *array.Array) any { return a })
}

func (w world) Evaluate(ctx context.Context, g *fgraph.FunctionGraph, inputs []any) ([]any, error) {
	return w.call(ctx, g, inputs, g.Outputs(), exec.FunctionOptions{Check: true})
}

func (w world) call(ctx context.Context, g *fgraph.FunctionGraph, inputs []any, outputs []*fgraph.Variable, opts exec.FunctionOptions) ([]any, error) {
	f, err := exec.NewFunction(ctx, g.Inputs(), outputs, opts)
	if err != nil {
		return nil, err
	}
	args := make([]*array.Array, len(inputs))
	for i, v := range inputs {
		a, ok := v.(*array.Array)
		if !ok {
			return nil, fmt.Errorf("%w: a %T for input %v", exec.ErrArgument, v, g.Inputs()[i])
		}
		args[i] = a.Clone() // an op that lies may overwrite it
	}
	results, err := f.Call(ctx, args...)
	return anys(results), err
}

func (w world) Record(ctx context.Context, g *fgraph.FunctionGraph, inputs []any, vars []*fgraph.Variable) ([]any, error) {
	return w.call(ctx, g, inputs, vars, exec.FunctionOptions{})
}

func (w world) Differ(outputs, right []any) string {
	if len(outputs) != len(right) {
		return fmt.Sprintf("there are %d outputs, not %d", len(outputs), len(right))
	}
	for i, v := range right {
		a, b := outputs[i].(*array.Array), v.(*array.Array)
		if d := array.MaxRelDiff(a, b); a.DType() != b.DType() || !(d <= tolerance) {
			return fmt.Sprintf("output %d is %s, not %s", i, fileio.Excerpt(a.String(), 0), fileio.Excerpt(b.String(), 0))
		}
	}
	return ""
}

func (w world) FormatValue(t fgraph.Type, value any) (string, error) {
	return w.dialect.DataText(t, value)
}

func (w world) ParseValue(t fgraph.Type, text string) (any, error) {
	return w.dialect.ParseData(t, text)
}

// Simpler leaves out operands.
func (world) Simpler(a *fgraph.Apply) iter.Seq[*fgraph.Apply] {
	return func(yield func(*fgraph.Apply) bool) {
		op, ok := a.Op().(tensor.Op)
		for i := range a.Inputs() {
			if !ok || len(a.Inputs()) < 2 {
				return
			}
			fewer, err := tensor.Make(op, slices.Delete(slices.Clone(a.Inputs()), i, i+1)...)
			if err == nil && sameTypes(a, fewer) && !yield(fewer) {
				return
			}
		}
	}
}

// sameTypes reports whether the outputs of b can replace those of a.
func sameTypes(a, b *fgraph.Apply) bool {
	return slices.EqualFunc(a.Outputs(), b.Outputs(), func(v, w *fgraph.Variable) bool { return v.Type().Accepts(w.Type()) })
}

// Shrink makes all dimensions of one size smaller, and then values of inputs simpler.
func (w world) Shrink(g *fgraph.FunctionGraph, values []any) iter.Seq[repro.Smaller] {
	return func(yield func(repro.Smaller) bool) {
		// All dimensions of one size change together, because they are probably one size: of
		// operands of a sum, or the inner one of a product. Where they are not, tensor.Make rejects
		// the graph and the next size is tried. A smaller size leaves fewer elements to simplify,
		// so sizes come first.
		for _, n := range sizes(g, values) {
			last := 0
			for _, m := range []int{1, 2, n / 2} {
				if m <= last || m >= n {
					continue
				}
				last = m
				if s, err := resize(g, values, n, m); err == nil && !yield(s) {
					return
				}
			}
		}
		for i := range values {
			for _, v := range simpler(values[i].(*array.Array)) {
				c, _ := g.Clone()
				s := repro.Smaller{Graph: c, Values: slices.Clone(values)}
				s.Values[i] = v
				if !yield(s) {
					return
				}
			}
		}
	}
}

// sizes returns the sizes of dimensions that can get smaller, the largest first.
func sizes(g *fgraph.FunctionGraph, values []any) []int {
	var list []int
	add := func(a any) {
		if a, ok := a.(*array.Array); ok && !a.IsCSR() {
			list = append(list, a.Shape()...)
		}
	}
	for _, v := range values {
		add(v)
	}
	for v := range g.Variables() {
		if t, ok := v.Type().(tensor.Type); ok && v.IsInput() && !t.IsCSR() {
			list = append(list, t.Shape()...)
		}
		if v.IsConstant() {
			add(v.Data())
		}
	}
	list = slices.DeleteFunc(list, func(n int) bool { return n < 2 })
	slices.Sort(list)
	slices.Reverse(list)
	return slices.Compact(list)
}

// resize gives inputs and constants with dimensions of size n dimensions of size m.
func resize(g *fgraph.FunctionGraph, values []any, n, m int) (repro.Smaller, error) {
	s := repro.Smaller{Values: slices.Clone(values)}
	for i, v := range values {
		s.Values[i] = cropped(v.(*array.Array), n, m)
	}
	var err error
	s.Graph, err = repro.Rebuild(g, func(v *fgraph.Variable) *fgraph.Variable {
		t, ok := v.Type().(tensor.Type)
		if !ok || t.IsCSR() {
			return repro.Leaf(v)
		}
		shape := t.Shape()
		for d := range shape {
			if shape[d] == n {
				shape[d] = m
			}
		}
		if v.IsConstant() {
			a := cropped(v.Data().(*array.Array), n, m)
			return fgraph.NewConstant(tensor.NewType(a.DType(), a.Shape()...), a, v.Name())
		}
		return fgraph.NewInput(tensor.NewType(t.DType(), shape...), v.Name())
	}, func(a *fgraph.Apply, in []*fgraph.Variable) (*fgraph.Apply, error) {
		op, ok := a.Op().(tensor.Op)
		if !ok {
			return nil, fmt.Errorf("%w: %v", tensor.ErrType, a)
		}
		return tensor.Make(op, in...)
	})
	return s, err
}

// cropped returns an array whose dimensions of size n have size m.
func cropped(a *array.Array, n, m int) *array.Array {
	if !slices.Contains(a.Shape(), n) {
		return a
	}
	return selected(a, func(_, size int) []int {
		if size != n {
			return nil
		}
		return lists.Range[int](m)
	})
}

// simpler returns arrays with simpler elements: all the same, or rounded.
func simpler(a *array.Array) (list []*array.Array) {
	if a.IsCSR() {
		return nil
	}
	v, same := array.Uniform(a)
	if a.Len() == 0 || same && (v == 1 || v == -1) {
		return nil
	}
	list = append(list, array.Full(a.DType(), 1, a.Shape()...))
	if a.DType().IsFloat() {
		list = append(list, array.Full(a.DType(), -1, a.Shape()...))
	}
	if a.DType().IsFloat() {
		b := a.Clone()
		for i := range b.Len() {
			x := a.Float(i)
			if r := float64(int64(x)); x-r < 1 && r-x < 1 && r != 0 {
				b.SetFloat(i, r)
			}
		}
		if !array.Equal(a, b) {
			list = append(list, b)
		}
	}
	return list
}
