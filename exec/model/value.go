package model

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/fileio/spell"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// Inputs are the inputs of a run by name. A value is one of
//
//   - a tensor, *array.Array, which is not copied
//   - a [Shaped], whose elements are not copied
//   - nested slices or arrays of elements, [][]int64 or [1][512]float32, or one element, int64(16000)
//   - a slice or an element for an input of another number of dimensions: it gets the shape that the model declares if
//     at most one size of that is open
//
// Elements have the type of the input; an int is an int64. A model does not change its inputs. An item of a sequence is
// an input of its own, "s[0]".
type Inputs map[string]any

// Outputs are the outputs of a run by name. Those that are sequences have items, "s[0]".
type Outputs map[string]*array.Array

// A Shaped is the elements of a tensor in row-major order, with its sizes. [Tensor] makes one.
type Shaped struct {
	data  any
	shape []int
}

// Tensor returns elements with sizes, for Inputs: whether they fit each other, Run finds.
func Tensor[T array.Element](data []T, shape ...int) Shaped { return Shaped{data, shape} }

// Slice returns the elements of an output in row-major order: the memory of the output or, if they lie in another
// order there, a copy. The error says which type the elements have if it is not T.
func Slice[T array.Element](a *array.Array) ([]T, error) {
	if a == nil {
		return nil, fmt.Errorf("model: Slice of no tensor: there is no output of this name, see Model.Outputs")
	}
	if want := array.Of[T](nil, 0).DType(); want != a.DType() || a.IsCSR() {
		return nil, fmt.Errorf("model: Slice of elements of type %v of a tensor that is %v: ask for its type, or Cast it", want, text(a))
	}
	if !a.Contiguous() {
		a = a.Clone()
	}
	return array.Slice[T](a), nil
}

// ErrInput is what all errors of inputs are, by errors.Is.
var ErrInput = lower.ErrInput

// An InputError is an input that a model does not take.
type InputError struct {
	Name   string
	Wanted string // such as int64[batch,3], or the names that there are
	Given  string // such as float32[2,4], or a type of Go
	Why    string // what else there is to say
}

func (e *InputError) Error() string {
	s := fmt.Sprintf("model: input %s: wanted %s, given %s", strconv.Quote(fileio.Excerpt(e.Name, 0)), e.Wanted, e.Given)
	if e.Why != "" {
		s += ": " + e.Why
	}
	return s
}

// Is reports that the error is an ErrInput.
func (e *InputError) Is(target error) bool { return target == ErrInput }

// A Value describes an input or an output of a model.
type Value struct {
	Name string
	// Type is the type of the elements, by the name that it has in Go but for float16 and bfloat16 (array.F16 and
	// array.BF16). "" is any.
	Type string
	// Dims are the sizes. nil is any number of any.
	Dims []Dim
	// Sequence means that it is a list of such tensors, Optional that it may be left out.
	Sequence, Optional bool
}

// A Dim is a size: a number, or -1 if it is known in a run. Those of one Symbol are equal then.
type Dim struct {
	Size   int
	Symbol string
}

// String returns a description such as float32[batch,3,224,224].
func (v Value) String() string {
	dims := make([]string, len(v.Dims))
	for i, d := range v.Dims {
		switch {
		case d.Size >= 0:
			dims[i] = strconv.Itoa(d.Size)
		case d.Symbol != "":
			dims[i] = fileio.Excerpt(d.Symbol, 0)
		default:
			dims[i] = "?"
		}
	}
	s := v.Type
	if s == "" {
		s = "any"
	}
	if s += "[" + strings.Join(dims, ",") + "]"; v.Dims == nil {
		s = strings.TrimSuffix(s, "]") + "...]"
	}
	if v.Sequence {
		s = "sequence of " + s
	}
	if v.Optional {
		s += " or nothing"
	}
	return s
}

func clone(list []Value) []Value {
	list = slices.Clone(list)
	for i := range list {
		list[i].Dims = slices.Clone(list[i].Dims)
	}
	return list
}

// describe returns what a model says of inputs or outputs, with sizes that are fixed.
func describe(list []*onnx.ValueInfo, fixed map[string]int) []Value {
	values := make([]Value, len(list))
	for i, info := range list {
		v := &values[i]
		v.Name = info.Name
		t := info.Type
		if t != nil && t.Optional != nil {
			v.Optional, t = true, t.Optional.Elem
		}
		if t != nil && t.Sequence != nil {
			v.Sequence, t = true, t.Sequence.Elem
		}
		if t == nil || t.Tensor == nil {
			continue
		}
		if a, err := lower.NewArray(t.Tensor.Elem); err == nil {
			v.Type = a.DType().String()
		}
		if t.Tensor.Shape == nil {
			continue
		}
		v.Dims = make([]Dim, len(t.Tensor.Shape.Dims))
		for k, d := range t.Tensor.Shape.Dims {
			n, name := d.Size()
			v.Dims[k] = Dim{int(n), name}
			if n, ok := fixed[name]; ok && name != "" {
				v.Dims[k] = Dim{Size: n}
			}
		}
	}
	return values
}

// fixSizes makes numbers of sizes that the inputs of a graph leave open.
func fixSizes(g *onnx.Graph, sizes map[string]int) error {
	if len(sizes) == 0 {
		return nil
	}
	open := make(map[string]bool)
	g.Inputs = slices.Clone(g.Inputs)
	for i, in := range g.Inputs {
		if in.Type == nil || in.Type.Tensor == nil || in.Type.Tensor.Shape == nil {
			continue
		}
		// All on the way from the graph to the size is copied, because the model that was read shares it.
		info, typ, t, shape := *in, *in.Type, *in.Type.Tensor, *in.Type.Tensor.Shape
		g.Inputs[i], info.Type, typ.Tensor, t.Shape = &info, &typ, &t, &shape
		shape.Dims = slices.Clone(shape.Dims)
		for k, d := range shape.Dims {
			n, name := d.Size()
			if n >= 0 {
				continue
			}
			if name == "" {
				name = fmt.Sprintf("%s.%d", in.Name, k)
			}
			open[name] = true
			if n, ok := sizes[name]; ok {
				size := int64(n)
				shape.Dims[k] = &onnx.Dim{Value: &size}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		if !open[name] || sizes[name] < 0 {
			return fmt.Errorf("%w: a size %q of %d: sizes that the model leaves open are %q", ErrInput, fileio.Excerpt(name, 0), sizes[name], slices.Sorted(maps.Keys(open)))
		}
	}
	return nil
}

// bind sets arrays to the values of inputs, of which some may be missing unless all are wanted.
func (m *Model) bind(arrays map[string]*array.Array, inputs Inputs, all bool) error {
	var missing error // told last: one that is misspelt is missing, too
	for i := range m.inputs {
		v := &m.inputs[i]
		x, ok := inputs[v.Name]
		if !ok && all && !v.Optional && !v.Sequence && missing == nil {
			missing = &InputError{v.Name, v.String(), "nothing", ""}
		}
		if !ok || v.Sequence {
			continue
		}
		if err := m.put(arrays, v, x); err != nil {
			return err
		}
	}
	if len(arrays) == len(inputs) {
		return missing
	}
	for _, name := range slices.Sorted(maps.Keys(inputs)) { // a misspelt one, or items
		if arrays[name] != nil {
			continue
		}
		i := slices.IndexFunc(m.inputs, func(v Value) bool { return v.Sequence && strings.HasPrefix(name, v.Name+"[") })
		if i < 0 {
			return m.unknown(name)
		}
		item := Value{Name: name, Type: m.inputs[i].Type, Dims: clone(m.inputs)[i].Dims}
		for k := range item.Dims {
			item.Dims[k].Symbol = "" // it is another number in each item
		}
		if err := m.put(arrays, &item, inputs[name]); err != nil {
			return err
		}
	}
	return missing
}

func (m *Model) unknown(name string) error {
	names := lists.Map(m.inputs, func(v Value) string { return fileio.Excerpt(v.Name, 0) })
	if i := slices.IndexFunc(m.inputs, func(v Value) bool { return v.Name == name }); i >= 0 {
		return &InputError{name, m.inputs[i].String(), "one value", "its items are inputs of their own, " + lower.Item(names[i], 0) + " and so on"}
	}
	return &InputError{name, "one of " + strings.Join(names, ", "), "a name that the model does not have", strings.TrimPrefix(spell.Hint(name, names), "; ")}
}

// put adds a value of an input to arrays, if it fits the model and the values that are there.
func (m *Model) put(arrays map[string]*array.Array, v *Value, x any) error {
	a, ok := x.(*array.Array)
	given, why := "", ""
	if !ok {
		if a, why = v.array(x); why != "" {
			return &InputError{v.Name, v.String(), fmt.Sprintf("%T", x), why}
		}
	}
	switch {
	case a == nil:
		given = "a nil tensor"
	case a.IsCSR():
		given = "a sparse matrix"
	case v.Type != "" && v.Type != a.DType().String():
		why = "the type of the elements is another one"
	case v.Dims != nil && len(v.Dims) != a.NDim():
		why = fmt.Sprintf("it should have %d dimensions", len(v.Dims))
	default:
		// Stored before it is compared: a symbol that occurs twice in one shape is one number there, too.
		if arrays[v.Name] = a; v.Dims != nil {
			why = m.misfit(v, arrays, a)
		}
	}
	if given == "" && why == "" {
		return nil
	}
	if given == "" {
		given = text(a)
	}
	return &InputError{v.Name, v.String(), given, why}
}

// misfit says which size of a value is not what the model and other values ask for, or nothing.
func (m *Model) misfit(v *Value, arrays map[string]*array.Array, a *array.Array) string {
	for k, d := range v.Dims {
		if d.Size >= 0 && a.Dim(k) != d.Size {
			return fmt.Sprintf("size %d should be %d", k, d.Size)
		}
		if d.Size >= 0 || d.Symbol == "" {
			continue
		}
		if n, input := m.sizeOf(d.Symbol, arrays); n >= 0 && n != a.Dim(k) {
			return fmt.Sprintf("size %d should be %d, since %s is in %s", k, n, fileio.Excerpt(d.Symbol, 0), fileio.Excerpt(input, 0))
		}
	}
	return ""
}

// sizeOf returns the number that a symbol has in values of inputs, with the input that says so, or -1.
func (m *Model) sizeOf(symbol string, values map[string]*array.Array) (int, string) {
	for i := range m.inputs {
		v := &m.inputs[i]
		a := values[v.Name]
		if a == nil || v.Sequence {
			continue
		}
		for k, d := range v.Dims {
			if d.Size < 0 && d.Symbol == symbol {
				return a.Dim(k), v.Name
			}
		}
	}
	return -1, ""
}

// text describes a tensor as Value.String does.
func text(a *array.Array) string {
	return a.DType().String() + strings.ReplaceAll(fmt.Sprint(a.Shape()), " ", ",")
}
