package ir

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

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
	// Defaults says that initializers which are also inputs are constants. Otherwise whoever runs the
	// model may give them other values.
	Defaults bool
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
	im := &importer{Options: o, functions: make(map[string]*onnx.Function), free: make(map[*onnx.Graph][]string), read: make(map[*onnx.Function]map[string]bool), overloads: make(map[string]int), redefined: make(map[*onnx.Function]bool), source: &Source{
		Model: m, Operators: o.Operators, Evaluator: o.Evaluator, Dir: o.Dir,
		origins: newOrigins(), opsets: opsetsOf(m.Opsets), raise: cmp.Or(o.Opset, raised),
		fixed: len(o.Shapes) > 0 || len(o.Values) > 0,
	}}
	if len(m.Opsets) == 0 {
		im.source.opsets[""] = 1
	}
	for _, f := range m.Functions {
		im.functions[functionName(f.Domain, f.Name, f.Overload)] = f
		im.overloads[qualified(f.Domain, f.Name)]++
	}
	root := im.scope(nil, im.newGraph(), &frame{opsets: im.source.opsets})
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
	g, err := fgraph.NewInOrder(inputs, outputs, im.live(root.made.applies, outputs), im.source)
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

// live returns the applies that outputs depend on, in the order in which they were made.
func (im *importer) live(applies []*fgraph.Apply, outputs []*fgraph.Variable) []*fgraph.Apply {
	needed := make(map[*fgraph.Apply]bool)
	seen := make(map[*fgraph.Variable]bool)
	fgraph.Walk(outputs, func(v *fgraph.Variable) bool { return seen[v] }, func(a *fgraph.Apply) {
		needed[a] = true
		if f := im.source.nodes[a.Origin()].function; f != nil {
			f.live = true
		}
		for _, v := range a.Outputs() {
			seen[v] = true
		}
	})
	return slices.DeleteFunc(applies, func(a *fgraph.Apply) bool { return !needed[a] })
}

// An importer makes the applies of a model.
type importer struct {
	Options
	source    *Source
	functions map[string]*onnx.Function
	inlined   int                      // nodes of functions
	graphs    int                      // how many there are: the main one and bodies
	free      map[*onnx.Graph][]string // of graphs in nodes
	read      map[*onnx.Function]map[string]bool
	overloads map[string]int          // how many functions of a name there are
	redefined map[*onnx.Function]bool // whether functions define a name twice
	faults    []error
	stopped   bool // by a fault that would only be repeated
}

// A scope has the values that names stand for in a graph of the model: the main one, a branch of an If,
// a body, or the nodes of a function.
type scope struct {
	*frame
	outer  *scope // whose names are known as well, nil for none
	made   *graphOf
	vars   map[string]*fgraph.Variable
	failed map[string]bool // names of values that nothing computes because of a fault
	types  map[string]Type // those that the model declares
	path   string          // for messages: of the graphs around
	branch *branchOf
	// lenient says that types need not fit: a branch of an If that is never taken may be one for other
	// shapes.
	lenient bool
}

// A graphOf collects the applies of a graph. Branches of Ifs and functions belong to the graph that
// they are in, and a body is one of its own.
type graphOf struct {
	number  int
	applies []*fgraph.Apply
	// captured are the values from around a body, in order, and what they are in it.
	captured []*fgraph.Variable
	inside   map[*fgraph.Variable]*fgraph.Variable
}

// A frame is a function whose nodes take the place of a call, or the model itself.
type frame struct {
	caller     *frame
	depth      int
	function   *onnx.Function
	call       *functionCall // that of the function
	opsets     map[string]int64
	attributes map[string]*onnx.Attribute // that nodes may refer to
}

// newGraph returns a graph without applies.
func (im *importer) newGraph() *graphOf {
	im.graphs++
	return &graphOf{number: im.graphs}
}

// scope returns a new scope in another one, or without any names.
func (im *importer) scope(outer *scope, made *graphOf, f *frame) *scope {
	s := &scope{frame: f, outer: outer, made: made, vars: make(map[string]*fgraph.Variable), failed: make(map[string]bool), types: make(map[string]Type), lenient: im.Lenient}
	if outer != nil {
		s.path, s.branch, s.lenient = outer.path, outer.branch, outer.lenient
	}
	return s
}

// find returns the value of a name. On the way into a body it becomes an input of that.
func (s *scope) find(name string) *fgraph.Variable {
	if v := s.vars[name]; v != nil || s.outer == nil {
		return v
	}
	v := s.outer.find(name)
	if v == nil || s.made == s.outer.made {
		return v
	}
	return s.made.capture(v, name)
}

// capture returns what a value from around a body is in it. A small constant is one inside as well,
// since axes and the like are what types follow from.
func (b *graphOf) capture(v *fgraph.Variable, name string) *fgraph.Variable {
	if in := b.inside[v]; in != nil {
		return in
	}
	var in *fgraph.Variable
	if x := ValueOf(v); IsOmitted(v) || x != nil && x.Small() {
		in = fgraph.NewConstant(v.Type(), v.Data(), v.Name())
	} else {
		in = fgraph.NewInput(v.Type(), name)
		b.captured = append(b.captured, v)
	}
	if b.inside == nil {
		b.inside = make(map[*fgraph.Variable]*fgraph.Variable)
	}
	b.inside[v] = in
	return in
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
	initial := make(map[string]bool)
	for _, t := range g.Initializers {
		initial[t.Name] = true
	}
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
		switch x := im.Values[in.Name]; {
		case x != nil:
			given[in.Name] = true
			c := Constant(NewValue(x, im.Dir), in.Name)
			if !v.Type().Accepts(c.Type()) {
				im.fault("input "+in.Name, fmt.Errorf("the value is of type %v, not %v", c.Type(), v.Type()))
			}
			s.vars[in.Name] = c
		case im.Defaults && initial[in.Name]:
			continue
		default:
			s.vars[in.Name] = v
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
	dims, ranked := t.Shape()
	if !ranked || name == "" || !slices.ContainsFunc(dims, Dim.IsUnknown) {
		return t
	}
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

// declare notes the types that the model declares in a graph. Their symbols are left out: programs
// that write models give the same name to different sizes. If sizes are given, those of the model may
// be others.
func (im *importer) declare(g *onnx.Graph, s *scope) {
	for _, v := range slices.Concat(g.Values, g.Outputs) {
		t := FromProto(v.Type)
		if t.IsTensor() {
			t = t.numbersOnly()
		}
		if im.source.fixed {
			t = t.elementsOnly()
		}
		s.types[v.Name] = t
	}
}

// elementsOnly returns the type with the number of dimensions of a tensor, but without sizes.
func (t Type) elementsOnly() Type {
	if dims, ranked := t.Shape(); ranked {
		return NewType(t.elem, unknowns(len(dims))...)
	}
	return t
}

// graph imports the initializers and nodes of a graph.
func (im *importer) graph(g *onnx.Graph, s *scope) {
	im.declare(g, s)
	for _, t := range g.Initializers {
		if s.vars[t.Name] == nil {
			s.vars[t.Name] = Constant(NewValue(t, im.Dir), t.Name)
		}
	}
	for _, t := range g.SparseInitializers {
		if t.Values != nil {
			s.vars[t.Values.Name] = Constant(&Value{Sparse: t, dir: im.Dir}, t.Values.Name)
		}
	}
	im.nodes(g.Nodes, s)
}

// nodes imports nodes.
func (im *importer) nodes(nodes []*onnx.Node, s *scope) {
	order, err := im.sorted(nodes, s)
	if err != nil {
		im.fault(s.path+"nodes", err)
		return
	}
	for _, i := range order {
		if im.stopped {
			return
		}
		if err := im.node(i, nodes[i], s); err != nil {
			im.fault(s.path+whereOf(i, nodes[i]), err)
		}
	}
}

// errFollows means that an input of a node is the output of one with a fault.
var errFollows = errors.New("an input failed")

func (im *importer) node(i int, n *onnx.Node, s *scope) error {
	outputs, err := im.apply(i, n, s)
	for i, name := range n.Outputs {
		switch {
		case name == "":
		case err != nil:
			s.failed[name] = true
		case i < len(outputs) && outputs[i] != nil:
			if s.vars[name] != nil {
				return fmt.Errorf("the name of its output %s is taken", name)
			}
			s.vars[name] = outputs[i]
		}
	}
	if errors.Is(err, errFollows) {
		return nil
	}
	return err
}

// apply makes what computes the outputs of a node.
func (im *importer) apply(i int, n *onnx.Node, s *scope) ([]*fgraph.Variable, error) {
	n = s.resolved(n)
	if n.Op == "Constant" && domainOf(n.Domain) == "" && len(n.Outputs) == 1 {
		c, err := im.constant(n)
		return []*fgraph.Variable{c}, err
	}
	in := make([]*fgraph.Variable, len(n.Inputs))
	for i, name := range n.Inputs {
		if name == "" {
			in[i] = Missing()
		} else if in[i] = s.find(name); in[i] == nil {
			if s.hasFailed(name) {
				return nil, errFollows
			}
			return nil, fmt.Errorf("nothing computes its input %s", name)
		}
	}
	if f := im.function(n); f != nil {
		return im.call(i, n, f, in, s)
	}
	origin := len(im.source.nodes)
	im.source.nodes = append(im.source.nodes, imported{node: n, path: s.path, index: i, branch: s.branch})
	op, in, err := im.op(origin, n, in, s)
	if err != nil {
		return nil, err
	}
	im.source.nodes[origin].op = op
	if s.opsets[""] == im.source.opsets[""] { // others can't be written as they are in any case
		im.source.latest = min(im.source.latest, op.latest())
	}
	a, err := im.Operators.Apply(op, in...)
	if err != nil && s.lenient {
		a, err = fgraph.NewApply(op, in, slices.Repeat([]fgraph.Type{Type{}}, op.Outputs)...), nil
	}
	if err != nil {
		return nil, err
	}
	a = im.declared(a, n, s)
	a.SetOrigin(origin)
	if s.call != nil {
		im.source.nodes[origin].function = &inFunction{in: s.call, opsets: s.opsets, graph: s.made.number, inputs: refsOf(a.Inputs())}
	}
	s.made.applies = append(s.made.applies, a)
	return a.Outputs(), nil
}

// hasFailed reports whether a fault is why nothing computes a value.
func (s *scope) hasFailed(name string) bool {
	for ; s != nil; s = s.outer {
		if s.failed[name] {
			return true
		}
	}
	return false
}

// declared gives the outputs of an apply their names, and the types that the model declares where
// they say more.
func (im *importer) declared(a *fgraph.Apply, n *onnx.Node, s *scope) *fgraph.Apply {
	types := make([]fgraph.Type, len(a.Outputs()))
	for i, v := range a.Outputs() {
		t := TypeOf(v)
		if i < len(n.Outputs) {
			if both, ok := t.Meet(s.types[n.Outputs[i]]); ok {
				t = both
			}
			t = symbolized(im.source.symbols, t, n.Outputs[i])
		}
		types[i] = t
	}
	b := fgraph.NewApply(a.Op(), a.Inputs(), types...)
	for i, name := range n.Outputs {
		if i < len(b.Outputs()) {
			b.Outputs()[i].SetName(name)
		}
	}
	return b
}
