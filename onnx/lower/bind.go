package lower

import (
	"fmt"
	"maps"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// Item returns the name of an item of a sequence among inputs and outputs, for example x[0].
func Item(name string, i int) string { return fmt.Sprintf("%s[%d]", name, i) }

// A binding makes inputs of the values that are given.
type binding struct {
	*lowering
	inputs map[string]*array.Array
	scope  map[string]*value
	failed map[string]bool
	known  map[string]bool
}

// bind makes inputs of the values that are given, in place of initializers of their names.
func (l *lowering) bind(g *onnx.Graph, inputs map[string]*array.Array, scope map[string]*value, failed map[string]bool) {
	b := &binding{l, inputs, scope, failed, make(map[string]bool)}
	for _, in := range g.Inputs {
		b.known[in.Name] = true
		if in.Type != nil && in.Type.Tensor == nil {
			v, err := b.other(in.Name, in.Type)
			if err != nil {
				b.fault(in.Name, err)
				continue
			}
			scope[in.Name] = v
			continue
		}
		a, given := inputs[in.Name]
		switch {
		case given:
			v, err := b.tensor(in.Name, in.Type, a)
			if err != nil {
				b.fault(in.Name, err)
				continue
			}
			scope[in.Name] = v
		case scope[in.Name] != nil || failed[in.Name]: // an initializer
		case l.options.LeaveOut:
			l.leftOut[in.Name] = true
		default:
			b.fault(in.Name, fmt.Errorf("%w: it has no value", ErrInput))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		if !b.known[name] {
			b.fault(name, fmt.Errorf("%w: the model has no such input", ErrInput))
		}
	}
}

func (b *binding) fault(name string, err error) {
	b.lowering.fault("input "+name, err)
	b.failed[name] = true
}

// tensor makes an input of an array.
func (b *binding) tensor(name string, t *onnx.Type, a *array.Array) (*value, error) {
	elem, err := inputElem(t, a)
	if err != nil {
		return nil, err
	}
	v := fgraph.NewInput(tensor.NewType(a.DType(), a.Shape()...), name)
	b.lowering.inputs, b.arguments = append(b.lowering.inputs, v), append(b.arguments, a)
	return &value{v: v, elem: elem}, nil
}

// other makes a value of a type that is not that of tensors: a sequence of those that have names of
// its items, or an optional value, which is there if a value is given.
func (b *binding) other(name string, t *onnx.Type) (*value, error) {
	if err := supported(t); err != nil {
		return nil, err
	}
	if t.Optional != nil {
		t = t.Optional.Elem
		if _, given := b.inputs[name]; t.Sequence == nil && !given || t.Sequence != nil && b.inputs[Item(name, 0)] == nil {
			return &value{none: true}, nil
		}
	}
	if t.Sequence == nil {
		return b.tensor(name, t, b.inputs[name])
	}
	s := &sequence{elem: t.Sequence.Elem.Tensor.Elem}
	for i := range maxSteps {
		item := Item(name, i)
		a := b.inputs[item]
		if a == nil {
			break
		}
		b.known[item] = true
		v, err := b.tensor(item, t.Sequence.Elem, a)
		if err != nil {
			return nil, err
		}
		s.items, s.elem = append(s.items, v), v.elem
	}
	return &value{list: s}, nil
}

// supported reports whether there can be inputs of a type: tensors, sequences of them, and either as an
// optional value.
func supported(t *onnx.Type) error {
	inner := t
	if inner != nil && inner.Optional != nil {
		inner = inner.Optional.Elem
	}
	if inner != nil && inner.Sequence != nil {
		inner = inner.Sequence.Elem
	}
	switch {
	case inner == nil || inner.Tensor == nil:
		return fmt.Errorf("%w: a value of type %v", ErrUnsupported, t)
	case inner.Tensor.Elem == onnx.Undefined:
		return nil
	}
	_, err := dtypeOf(inner.Tensor.Elem)
	return err
}

// inputElem returns the type of the elements of an input, which the array must be able to hold.
func inputElem(t *onnx.Type, a *array.Array) (onnx.DataType, error) {
	if t == nil || t.Tensor.Elem == onnx.Undefined {
		return elementOf(a.DType()), nil
	}
	elem := t.Tensor.Elem
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
		vars, outputs = append(vars, v.v), append(outputs, Output{names[i], v.elem})
	}
	return vars, outputs, nil
}
