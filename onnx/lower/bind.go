package lower

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// Item returns the name of an item of a sequence among inputs and outputs, for example x[0].
func Item(name string, i int) string { return fmt.Sprintf("%s[%d]", name, i) }

// InputName returns the name by which input i of a graph is given: its own, if it has one.
func InputName(g *fgraph.FunctionGraph, i int) string {
	return cmp.Or(g.Inputs()[i].Name(), fmt.Sprintf("input_%d", i))
}

// A binding makes inputs of the values that are given.
type binding struct {
	*lowering
	given map[string]*array.Array
	known map[string]bool
}

// bind makes inputs of the values that are given. An input of the model without one has the value of its
// initializer, if there is one.
func (l *lowering) bind(g *fgraph.FunctionGraph, given map[string]*array.Array, s *scope) {
	b := &binding{l, given, make(map[string]bool)}
	for i, in := range g.Inputs() {
		name := InputName(g, i)
		b.known[name] = true
		v, err := b.input(name, ir.TypeOf(in))
		if err != nil {
			l.fault("input "+name, err)
			s.failed[in] = true
			continue
		}
		s.values[in] = v
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !b.known[name] {
			l.fault("input "+name, fmt.Errorf("%w: the model has no such input", ErrInput))
		}
	}
}

// input returns the value of an input, nil if it is left out.
func (b *binding) input(name string, t ir.Type) (*value, error) {
	if !t.IsTensor() && !t.IsUnknown() {
		return b.other(name, t)
	}
	if a, ok := b.given[name]; ok {
		return b.tensor(name, t, a)
	}
	// No input of the graph: a value that nobody gives is the same in all runs.
	if d := b.source.Initializer(name); d != nil {
		a, err := b.tensorOf(d, b.source.Dir)
		if err != nil {
			return nil, err
		}
		return &value{v: tensor.Constant(a), elem: d.DataType}, nil
	}
	if b.options.LeaveOut {
		return nil, nil
	}
	return nil, fmt.Errorf("%w: it has no value", ErrInput)
}

// tensor makes an input of an array.
func (b *binding) tensor(name string, t ir.Type, a *array.Array) (*value, error) {
	elem, err := inputElem(t, a)
	if err != nil {
		return nil, err
	}
	if a, err = b.strings.Numbers(a); err != nil {
		return nil, err
	}
	typ := tensor.NewType(a.DType(), a.Shape()...)
	if b.open != nil {
		typ = freeType(a, t)
	}
	v := fgraph.NewInput(typ, name)
	b.inputs, b.elems = append(b.inputs, v), append(b.elems, elem)
	b.values.Set(v, a)
	if b.open != nil {
		v = b.open.free(v, t)
	}
	return &value{v: v, elem: elem}, nil
}

// other makes a value of a type that is not that of tensors: a sequence of those that have names of
// its items, or an optional value, which is there if a value is given.
func (b *binding) other(name string, t ir.Type) (*value, error) {
	if err := supported(t); err != nil {
		return nil, err
	}
	if elem, _, optional := t.ElementOf(); optional {
		_, sequence, _ := elem.ElementOf()
		// An optional sequence is there if it has a first item. An empty one can't be told from none.
		if _, given := b.given[name]; !sequence && !given || sequence && b.given[Item(name, 0)] == nil {
			return &value{none: true}, nil
		}
		t = elem
	}
	elem, isSequence, _ := t.ElementOf()
	if !isSequence {
		return b.tensor(name, t, b.given[name])
	}
	s := &sequence{elem: elem.Elem()}
	for i := range maxSteps {
		item := Item(name, i)
		a := b.given[item]
		if a == nil {
			break
		}
		b.known[item] = true
		v, err := b.tensor(item, elem, a)
		if err != nil {
			return nil, err
		}
		s.items, s.elem = append(s.items, v), v.elem
	}
	return &value{list: s}, nil
}

// supported reports whether there can be inputs of a type: tensors, sequences of them, and either as an
// optional value.
func supported(t ir.Type) error {
	inner := t
	if elem, _, optional := inner.ElementOf(); optional {
		inner = elem
	}
	if elem, sequence, _ := inner.ElementOf(); sequence {
		inner = elem
	}
	switch {
	case inner.IsUnknown():
		return nil
	case !inner.IsTensor():
		return fmt.Errorf("%w: a value of type %v", ErrUnsupported, t)
	}
	_, err := dtypeOf(inner.Elem())
	return err
}

// inputElem returns the type of the elements of an input, which the array must be able to hold.
func inputElem(t ir.Type, a *array.Array) (onnx.DataType, error) {
	elem := t.Elem()
	if elem == onnx.Undefined {
		return elementOf(a.DType()), nil
	}
	d, err := dtypeOf(elem)
	if err == nil && d != a.DType() {
		err = fmt.Errorf("%w: its elements are %v, and %v are given", ErrInput, elem, a.DType())
	}
	return elem, err
}

// outputsOf lists the values of an output: its tensor, the items of a sequence, or none.
func outputsOf(name string, v *value) (vars []*fgraph.Variable, outputs []Output, err error) {
	list, names := []*value{v}, []string{name}
	switch {
	case v.none:
		return nil, nil, nil
	case v.list != nil:
		list, names = v.list.items, nil
		for i := range list {
			names = append(names, Item(name, i))
		}
	}
	for i, v := range list {
		if v.v == nil {
			return nil, nil, fmt.Errorf("%w: a sequence of values that are no tensors", ErrUnsupported)
		}
		vars, outputs = append(vars, v.v), append(outputs, Output{names[i], v.elem, v.keys})
	}
	return vars, outputs, nil
}

// A Demand is a value that the graph depends on: a condition, sizes, what a size is computed of. It was
// computed to make the graph, and is computed again with it: the results hold if it is the same again.
type Demand struct {
	Variable *fgraph.Variable
	Value    *array.Array
	// Input is the index of an input that is the value, otherwise -1.
	Input int
}

// valueOf computes a variable from the arguments. The graph depends on the value from then on.
func (l *lowering) valueOf(v *fgraph.Variable) (*array.Array, error) {
	if l.dependsOnSizes(v) {
		return nil, ErrSizes
	}
	return l.demand(v)
}

// demand is valueOf, also of what can be another value for other sizes: it is seldom another one, as a condition is.
func (l *lowering) demand(v *fgraph.Variable) (*array.Array, error) {
	a, err := l.values.Value(v)
	if err == nil && !v.IsConstant() && !l.demanded[v] {
		l.demanded[v] = true
		l.demands = append(l.demands, Demand{v, a, slices.Index(l.inputs, v)})
	}
	return a, err
}
