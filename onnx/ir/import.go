package ir

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

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
}

// Import returns the graph of a model, with a [Source]. The error names all faults of nodes.
func Import(m *onnx.Model, o Options) (*fgraph.FunctionGraph, error) {
	if m.Graph == nil {
		return nil, fmt.Errorf("%w: it has no graph", ErrModel)
	}
	im := &importer{Options: o, source: &Source{
		Model: m, Operators: o.Operators, Evaluator: o.Evaluator, Dir: o.Dir, opsets: make(map[string]int64), constants: make(map[*Value]*onnx.Node),
		latest: math.MaxInt64, raise: cmp.Or(o.Opset, raised),
		fixed: len(o.Shapes) > 0 || len(o.Values) > 0,
	}}
	if im.source.Operators == nil {
		im.source.Operators = Standard()
	}
	for _, s := range m.Opsets {
		domain := s.Domain
		if domain == "ai.onnx" {
			domain = ""
		}
		im.source.opsets[domain] = s.Version
	}
	if len(m.Opsets) == 0 {
		im.source.opsets[""] = 1
	}
	root := &scope{vars: make(map[string]*fgraph.Variable)}
	inputs := im.inputs(m.Graph, root)
	im.values(m.Graph)
	im.graph(m.Graph, root)
	var outputs []*fgraph.Variable
	for _, out := range m.Graph.Outputs {
		v := root.vars[out.Name]
		if v == nil && !im.failed[out.Name] {
			im.fault("output "+out.Name, errors.New("nothing computes it"))
		}
		outputs = append(outputs, v)
	}
	if err := errors.Join(im.faults...); err != nil {
		return nil, fmt.Errorf("%w:\n%w", ErrModel, err)
	}
	g, err := fgraph.NewInOrder(inputs, outputs, im.live(outputs), im.source)
	im.source.imported = g
	return g, err
}

// live returns the applies that outputs depend on, in the order of the model.
func (im *importer) live(outputs []*fgraph.Variable) []*fgraph.Apply {
	needed := make(map[*fgraph.Apply]bool)
	seen := make(map[*fgraph.Variable]bool)
	fgraph.Walk(outputs, func(v *fgraph.Variable) bool { return seen[v] }, func(a *fgraph.Apply) {
		needed[a] = true
		for _, v := range a.Outputs() {
			seen[v] = true
		}
	})
	return slices.DeleteFunc(im.applies, func(a *fgraph.Apply) bool { return !needed[a] })
}

// An importer makes the applies of a model.
type importer struct {
	Options
	source  *Source
	applies []*fgraph.Apply
	types   map[string]Type // those that the model declares
	failed  map[string]bool // names of values that nothing computes because of a fault
	faults  []error
	lenient int // how many branches of an If we are in: those that are never taken may be wrong
}

// A scope has the values that names stand for in a graph.
type scope struct {
	outer *scope
	vars  map[string]*fgraph.Variable
}

func (s *scope) find(name string) *fgraph.Variable {
	for ; s != nil; s = s.outer {
		if v := s.vars[name]; v != nil {
			return v
		}
	}
	return nil
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
		v := fgraph.NewInput(symbolized(t, in.Name), in.Name)
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

// symbolized gives sizes that are not known symbols of their own: whatever they are, they are the same
// wherever the value is used.
func symbolized(t Type, name string) Type {
	dims, ranked := t.Shape()
	if !ranked || name == "" || !slices.ContainsFunc(dims, Dim.IsUnknown) {
		return t
	}
	for i, d := range dims {
		if d.IsUnknown() {
			dims[i] = Symbol(name + "." + strconv.Itoa(i))
		}
	}
	u := NewType(t.elem, dims...)
	u.data = t.data
	return u
}

// values notes the types that the model declares. Their symbols are left out: programs that write
// models give the same name to different sizes. If sizes are given, those of the model may be others.
func (im *importer) values(g *onnx.Graph) {
	im.types = make(map[string]Type)
	for _, v := range slices.Concat(g.Values, g.Outputs) {
		t := FromProto(v.Type)
		if dims, ranked := t.Shape(); ranked {
			for i, d := range dims {
				if _, ok := d.Number(); !ok || im.source.fixed {
					dims[i] = UnknownDim
				}
			}
			t = NewType(t.elem, dims...)
		}
		im.types[v.Name] = t
	}
}

// graph imports the initializers and nodes of a graph.
func (im *importer) graph(g *onnx.Graph, s *scope) {
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
	for i, n := range g.Nodes {
		if err := im.node(n, s); err != nil {
			where := fmt.Sprintf("node %d, %s", i, n.Op)
			if n.Name != "" {
				where += " " + n.Name
			}
			im.fault(where, err)
		}
	}
}

// errFollows means that an input of a node is the output of one with a fault.
var errFollows = errors.New("an input failed")

func (im *importer) node(n *onnx.Node, s *scope) error {
	outputs, err := im.apply(n, s)
	for i, name := range n.Outputs {
		switch {
		case name == "":
		case err != nil:
			if im.failed == nil {
				im.failed = make(map[string]bool)
			}
			im.failed[name] = true
		case i < len(outputs):
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
func (im *importer) apply(n *onnx.Node, s *scope) ([]*fgraph.Variable, error) {
	if n.Op == "Constant" && (n.Domain == "" || n.Domain == "ai.onnx") && len(n.Outputs) == 1 {
		c, err := im.constant(n)
		return []*fgraph.Variable{c}, err
	}
	origin := len(im.source.nodes)
	im.source.nodes = append(im.source.nodes, imported{node: n})
	in := make([]*fgraph.Variable, len(n.Inputs))
	for i, name := range n.Inputs {
		if name == "" {
			in[i] = Missing()
		} else if in[i] = s.find(name); in[i] == nil {
			if im.failed[name] {
				return nil, errFollows
			}
			return nil, fmt.Errorf("nothing computes its input %s", name)
		}
	}
	op, in, err := im.op(n, in, s)
	if err != nil {
		return nil, err
	}
	im.source.nodes[origin].op = op
	im.source.latest = min(im.source.latest, op.latest())
	a, err := im.source.Operators.Apply(op, in...)
	if err != nil && im.lenient > 0 {
		// Such a branch is often one for other shapes. It fails if it is taken.
		a, err = fgraph.NewApply(op, in, slices.Repeat([]fgraph.Type{Type{}}, op.Outputs)...), nil
	}
	if err != nil {
		return nil, err
	}
	a = im.declared(a, n)
	a.SetOrigin(origin)
	im.applies = append(im.applies, a)
	return a.Outputs(), nil
}

// declared gives the outputs of an apply their names, and the types that the model declares where
// they say more.
func (im *importer) declared(a *fgraph.Apply, n *onnx.Node) *fgraph.Apply {
	types := make([]fgraph.Type, len(a.Outputs()))
	for i, v := range a.Outputs() {
		t := TypeOf(v)
		if i < len(n.Outputs) {
			if both, ok := t.Meet(im.types[n.Outputs[i]]); ok {
				t = both
			}
			t = symbolized(t, n.Outputs[i])
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
