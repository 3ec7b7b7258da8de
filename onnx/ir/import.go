package ir

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
)

// ErrModel means that a model is no graph of nodes whose inputs and outputs fit together.
var ErrModel = errors.New("onnx: faulty model")

// Options say how a model is imported.
type Options struct {
	// Operators are those that are known. The default is Standard.
	Operators *Operators
	// Dir is the folder of the model, where external data are.
	Dir string
	// Shapes are the sizes of inputs, in place of those in the model. Unknown ones leave those.
	Shapes map[string][]Dim
	// Values are those of inputs that become constants. The model keeps the inputs.
	Values map[string]*onnx.Tensor
	// Evaluator computes nodes whose inputs are constants. Without it they stay.
	Evaluator Evaluator
	// Opset is the version of ONNX's operators to which the model may be raised if a rule makes an
	// operator that its own version lacks. The default is 17.
	Opset int64
	// Lenient says that a node whose operator can't have inputs of such types, or whose domain has no
	// version, is no fault of the graph, only of who computes it. Its results are of unknown types.
	Lenient bool
}

// Import returns the graph of a model, with a [Source]. The error names all faults of nodes.
//
// Nodes may be in any order. Functions of the model take the place of the nodes that call them, unless
// Operators has an operator of that name. An If is an apply of the condition and of the results of both
// branches; the graphs in other nodes are bodies.
func Import(m *onnx.Model, o Options) (*fgraph.FunctionGraph, error) {
	if m.Graph == nil {
		return nil, fmt.Errorf("%w: it has no graph", ErrModel)
	}
	if o.Operators == nil {
		o.Operators = Standard()
	}
	im := &importer{Options: o, functions: make(map[string]*onnx.Function), read: make(map[*onnx.Function]map[string]bool), overloads: make(map[string]int), ops: make(map[string]*Op), types: make(map[*onnx.Type]Type), redefined: make(map[*onnx.Function]bool), source: &Source{
		Model: m, Operators: o.Operators, Evaluator: o.Evaluator, Dir: o.Dir,
		origins: newOrigins(m), opsets: opsetsOf(m.Opsets), raise: cmp.Or(o.Opset, raised),
		fixed: len(o.Shapes) > 0 || len(o.Values) > 0,
	}}
	// Before ir_version 3 no version was written, and operators were those of the first.
	if len(m.Opsets) == 0 {
		im.source.opsets[""] = 1
	}
	for _, f := range m.Functions {
		im.functions[functionName(f.Domain, f.Name, f.Overload)] = f
		im.overloads[qualified(f.Domain, f.Name)]++
	}
	root := im.scope(nil, im.newGraph(), &frame{opsets: im.source.opsets})
	root.vars = make(map[string]*fgraph.Variable, len(m.Graph.Initializers)+len(m.Graph.Nodes))
	// Before the initializers: one with the name of an input is only its default.
	inputs := im.inputs(m.Graph, root)
	im.graph(m.Graph, root)
	outputs := make([]*fgraph.Variable, len(m.Graph.Outputs))
	for i, out := range m.Graph.Outputs {
		if outputs[i] = root.vars[out.Name]; outputs[i] == nil && !root.failed[out.Name] && !im.stopped {
			im.fault("output "+out.Name, errors.New("nothing computes it"))
		}
	}
	if err := errors.Join(im.faults...); err != nil {
		return nil, fmt.Errorf("%w:\n%w", ErrModel, err)
	}
	g, err := fgraph.NewInOrder(inputs, outputs, im.live(root.made, outputs), im.source)
	im.source.imported = g
	return g, err
}

func opsetsOf(list []*onnx.Opset) map[string]int64 {
	opsets := make(map[string]int64)
	for _, s := range list {
		opsets[domainOf(s.Domain)] = s.Version
	}
	return opsets
}

// domainOf returns the name of a domain: that of ONNX's own operators is empty.
func domainOf(name string) string {
	if name == "ai.onnx" {
		return ""
	}
	return name
}

// live returns the applies of a graph that outputs depend on, in the order in which they were made.
func (im *importer) live(made *graphOf, outputs []*fgraph.Variable) []*fgraph.Apply {
	needed := make([]bool, len(im.source.nodes)-made.first) // by origin
	need := func(list []*fgraph.Variable) {
		for _, v := range list {
			if v.Owner() != nil {
				needed[v.Owner().Origin()-made.first] = true
			}
		}
	}
	need(outputs)
	// Operands were made before what reads them, so one pass from the end finds all that is needed.
	for _, a := range slices.Backward(made.applies) {
		if !needed[a.Origin()-made.first] {
			continue
		}
		need(a.Inputs())
		if f := im.source.nodes[a.Origin()].function; f != nil {
			f.live = true
		}
	}
	return slices.DeleteFunc(made.applies, func(a *fgraph.Apply) bool { return !needed[a.Origin()-made.first] })
}

// An importer makes the applies of a model.
type importer struct {
	Options
	source    *Source
	functions map[string]*onnx.Function
	inlined   int // nodes of functions
	graphs    int // how many there are: the main one and bodies
	uses      onnx.Uses
	read      map[*onnx.Function]map[string]bool
	overloads map[string]int          // how many functions of a name there are
	redefined map[*onnx.Function]bool // whether functions define a name twice
	faults    []error
	stopped   bool                // by a fault that would only be repeated
	ops       map[string]*Op      // those without bodies, by text
	types     map[*onnx.Type]Type // that the model declares
	block     int64               // of channels, see blockOf; 0 if nobody has asked
}

// maxFaults bounds the errors about a model.
const maxFaults = 100

func (im *importer) fault(where string, err error) {
	if len(im.faults) < maxFaults {
		im.faults = append(im.faults, fmt.Errorf("%s: %w", where, err))
	}
}

// inputs makes the inputs of the model.
func (im *importer) inputs(g *onnx.Graph, s *scope) []*fgraph.Variable {
	im.noteSymbols(g.Inputs)
	var inputs []*fgraph.Variable
	given := make(map[string]bool)
	for _, in := range g.Inputs {
		t := FromProto(in.Type)
		if dims, ok := im.Shapes[in.Name]; ok {
			given[in.Name] = true
			var err error
			if t, err = withShape(t, dims); err != nil {
				im.fault("input "+in.Name, err)
			}
		}
		v := fgraph.NewInput(symbolized(im.source.symbols, t, in.Name), in.Name)
		s.vars[in.Name] = v
		if x := im.Values[in.Name]; x != nil {
			given[in.Name] = true
			c := Constant(NewValue(x, im.Dir), in.Name)
			if !v.Type().Accepts(c.Type()) {
				im.fault("input "+in.Name, fmt.Errorf("the value is of type %v, not %v", c.Type(), v.Type()))
			}
			s.vars[in.Name] = c
		}
		inputs = append(inputs, v)
	}
	for _, name := range slices.Sorted(maps.Keys(im.Shapes)) {
		if !given[name] {
			im.fault("input "+name, errors.New("a shape is given, but the model has no such input"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(im.Values)) {
		if !given[name] {
			im.fault("input "+name, errors.New("a value is given, but the model has no such input"))
		}
	}
	return inputs
}

// withShape gives the type of an input other sizes.
func withShape(t Type, dims []Dim) (Type, error) {
	old, ranked := t.Shape()
	if ranked && len(old) != len(dims) {
		return t, fmt.Errorf("it has %d dimensions, and the shape that is given has %d", len(old), len(dims))
	}
	dims = slices.Clone(dims)
	for i := range old {
		if dims[i].IsUnknown() {
			dims[i] = old[i]
		}
	}
	return NewType(t.Elem(), dims...), nil
}

// noteSymbols notes the symbols of the model, so that none of ours is one of them.
func (im *importer) noteSymbols(list []*onnx.ValueInfo) {
	for _, in := range list {
		if in.Type == nil || in.Type.Tensor == nil || in.Type.Tensor.Shape == nil {
			continue
		}
		for _, d := range in.Type.Tensor.Shape.Dims {
			im.source.symbols[d.Param] = true
		}
	}
}

// symbolized gives sizes that are not known symbols of their own: whatever they are, they are the same
// wherever the value is used. Symbols are named after the value. Values of one name, in graphs that
// don't see each other, get different ones.
func symbolized(symbols map[string]bool, t Type, name string) Type {
	if name == "" || !strings.Contains(t.dims, unknownDim) {
		return t
	}
	dims, _ := t.Shape()
	for i, d := range dims {
		if !d.IsUnknown() {
			continue
		}
		symbol := fmt.Sprintf("%s.%d", name, i)
		for k := 2; symbols[symbol]; k++ {
			symbol = fmt.Sprintf("%s.%d.%d", name, i, k)
		}
		symbols[symbol] = true
		dims[i] = Symbol(symbol)
	}
	u := NewType(t.elem, dims...)
	u.data = t.data
	return u
}

// A declaration is the type that a model declares for a value.
type declaration struct {
	name string
	Type
}

// declare notes the types that the model declares in a graph. Their symbols are left out: programs
// that write models give the same name to different sizes. If sizes are given, those of the model may
// be others.
func (im *importer) declare(g *onnx.Graph, s *scope) {
	s.types = make([]declaration, 0, len(g.Outputs)+len(g.Values))
	// A list that is sorted, since most graphs are branches with a result or two. The last declaration of a name counts.
	for _, list := range [][]*onnx.ValueInfo{g.Outputs, g.Values} {
		for _, v := range slices.Backward(list) {
			if t := im.declaredType(v.Type); !t.IsUnknown() {
				s.types = append(s.types, declaration{v.Name, t})
			}
		}
	}
	slices.SortStableFunc(s.types, func(a, b declaration) int { return strings.Compare(a.name, b.name) })
}

// declared returns the type that the model declares for a value of a graph.
func (s *scope) declared(name string) Type {
	i, ok := slices.BinarySearchFunc(s.types, name, func(d declaration, name string) int { return strings.Compare(d.name, name) })
	if !ok {
		return Type{}
	}
	return s.types[i].Type
}

// declaredType returns the type that the model declares for a value within a graph.
func (im *importer) declaredType(p *onnx.Type) Type {
	t, known := im.types[p] // values of graphs in nodes share them
	if !known {
		if t = FromProto(p).numbersOnly(); im.source.fixed {
			t = t.elementsOnly()
		}
		im.types[p] = t
	}
	return t
}

// elementsOnly returns the type with the number of dimensions of a tensor, but without sizes.
func (t Type) elementsOnly() Type {
	if dims, ranked := t.Shape(); ranked {
		return NewType(t.elem, unknowns(len(dims))...)
	}
	return t
}
