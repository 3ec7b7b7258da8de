package ir

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
)

// Export returns the model of a graph. Inputs and outputs are those of the model that the graph is
// from, with their names and, unless sizes were given, with their types. If nothing has changed, it is
// that model itself. It shares the tensors and other parts of that model, which must not change.
func Export(g *fgraph.FunctionGraph) (*onnx.Model, error) {
	s := SourceOf(g)
	if s.imported == g && g.Commits() == 0 && !s.fixed {
		return s.Model, nil
	}
	applies, err := g.Toposort()
	if err != nil {
		return nil, err
	}
	e := &exporter{Source: s, graph: g, opset: s.version(g), names: make(map[*fgraph.Variable]string), taken: make(map[string]bool), nodeNames: make(map[nodeKey]*fgraph.Apply)}
	m := *s.Model
	if e.opset > s.opsets[""] {
		e.raise(&m)
	}
	m.Graph = e.main(divide(applies, g.Outputs()))
	return &m, errors.Join(e.faults...)
}

type exporter struct {
	*Source
	opset     int64 // of ONNX's own operators
	graph     *fgraph.FunctionGraph
	names     map[*fgraph.Variable]string
	taken     map[string]bool
	nodeNames map[nodeKey]*fgraph.Apply // whose the names of nodes are
	// outputs are the names of the outputs.
	outputs []string
	faults  []error
}

// raise raises the version of ONNX's operators, which an operator asks for that rules have made.
func (e *exporter) raise(m *onnx.Model) {
	if e.opset > e.latest {
		e.faults = append(e.faults, fmt.Errorf("the graph has operators of version %d, and others that mean something else after version %d", e.opset, e.latest))
	}
	m.IRVersion = max(m.IRVersion, formatOf(e.opset))
	m.Opsets = slices.Clone(m.Opsets)
	for i, o := range m.Opsets {
		if o.Domain == "" || o.Domain == "ai.onnx" {
			c := *o
			c.Version = e.opset
			m.Opsets[i] = &c
		}
	}
}

// main writes the main graph.
func (e *exporter) main(r *region) *onnx.Graph {
	old := e.Model.Graph
	g := *old
	g.Nodes, g.Initializers, g.SparseInitializers = nil, nil, nil
	e.reserve()
	overridden := make(map[string]bool)
	var inputs []*onnx.ValueInfo
	for i, v := range e.graph.Inputs() {
		overridden[v.Name()] = true
		var info *onnx.ValueInfo
		if i < len(old.Inputs) && old.Inputs[i].Name == v.Name() {
			info = old.Inputs[i]
		}
		inputs = append(inputs, e.info(info, v, e.names[v]))
	}
	g.Inputs = inputs
	// The defaults of inputs stay.
	for _, t := range old.Initializers {
		if overridden[t.Name] {
			g.Initializers = append(g.Initializers, t)
		}
	}
	e.constants(&g)
	names := e.outputNames()
	e.nodes(&g, r, e.graph.Outputs(), names)
	g.Outputs = nil
	for i, v := range e.graph.Outputs() {
		var info *onnx.ValueInfo
		name := names[i]
		if i < len(old.Outputs) && e.imported == e.graph {
			info = old.Outputs[i]
		}
		g.Outputs = append(g.Outputs, e.info(info, v, name))
	}
	g.Values = e.valueInfos(old)
	return &g
}

// outputNames returns the names of the outputs: those of the model, if the graph is its own.
func (e *exporter) outputNames() []string {
	if e.outputs == nil {
		for i, v := range e.graph.Outputs() {
			if old := e.Model.Graph.Outputs; e.imported == e.graph && i < len(old) {
				e.outputs = append(e.outputs, old[i].Name)
			} else {
				e.outputs = append(e.outputs, e.fresh(cmp.Or(v.Name(), "output_"+strconv.Itoa(i))))
			}
		}
	}
	return e.outputs
}

// reserve gives inputs and outputs their names. An output is a value of its name, if that is one of a
// node and of no other output.
func (e *exporter) reserve() {
	for i, v := range e.graph.Inputs() {
		name := v.Name()
		if name == "" {
			name = "input_" + strconv.Itoa(i)
		}
		e.names[v] = e.fresh(name)
	}
	names := e.outputNames()
	for i, v := range e.graph.Outputs() {
		e.taken[names[i]] = true
		if e.names[v] == "" && v.Owner() != nil {
			e.names[v] = names[i]
		}
	}
	// Names of values that stay come before those of new ones.
	for v := range e.graph.Variables() {
		if name := v.Name(); name != "" && e.names[v] == "" && !e.taken[name] && !IsOmitted(v) {
			e.names[v] = name
			e.taken[name] = true
		}
	}
	// A graph in an attribute must not hide a new name by one of its own.
	for a := range e.graph.Applies() {
		for _, attribute := range a.Op().(*Op).Attributes {
			for _, g := range append(slices.Clone(attribute.Graphs), attribute.Graph) {
				e.hide(g)
			}
		}
	}
}

// hide takes the names that a graph and those in it define.
func (e *exporter) hide(g *onnx.Graph) {
	if g == nil {
		return
	}
	for _, v := range g.Inputs {
		e.taken[v.Name] = true
	}
	for _, t := range g.Initializers {
		e.taken[t.Name] = true
	}
	for _, n := range g.Nodes {
		for _, name := range n.Outputs {
			e.taken[name] = true
		}
		for _, a := range n.Attributes {
			for _, inner := range append(slices.Clone(a.Graphs), a.Graph) {
				e.hide(inner)
			}
		}
	}
}

// name returns the name of a value.
func (e *exporter) name(v *fgraph.Variable) string {
	if IsOmitted(v) {
		return ""
	}
	name := e.names[v]
	if name == "" {
		base := v.Name()
		if base == "" {
			base = strings.ToLower(opName(v))
		}
		name = e.fresh(base)
		e.names[v] = name
	}
	return name
}

// fresh returns a name that nothing has.
func (e *exporter) fresh(base string) string {
	name := base
	for i := 1; e.taken[name]; i++ {
		name = base + "_" + strconv.Itoa(i)
	}
	e.taken[name] = true
	return name
}

// constants writes constants of Constant nodes as nodes, and other constants as initializers. Before
// version 4 of the format, initializers are inputs that may be overridden, so new ones are nodes.
func (e *exporter) constants(g *onnx.Graph) {
	initial := make(map[*onnx.Tensor]bool)
	for _, t := range e.Model.Graph.Initializers {
		initial[t] = true
	}
	for v := range e.graph.Variables() {
		x := ValueOf(v)
		if x == nil || !e.written(v) {
			continue
		}
		name := e.name(v)
		switch {
		case e.Source.constants[x] != nil:
			n := *e.Source.constants[x]
			n.Outputs = []string{name}
			g.Nodes = append(g.Nodes, &n)
		case x.Sparse != nil:
			t := *x.Sparse
			values := *t.Values
			values.Name = name
			t.Values = &values
			g.SparseInitializers = append(g.SparseInitializers, &t)
		case e.Model.IRVersion < 4 && !initial[x.Tensor]:
			g.Nodes = append(g.Nodes, &onnx.Node{Op: "Constant", Outputs: []string{name}, Attributes: []*onnx.Attribute{
				{Name: "value", Type: onnx.AttributeTensor, Tensor: x.Tensor}}})
		default:
			t := x.Tensor
			if t.Name != name {
				c := *t
				c.Name = name
				t = &c
			}
			g.Initializers = append(g.Initializers, t)
		}
	}
	// In the order of the file, new ones last, so that little moves in it.
	position := make(map[string]int)
	for i, t := range e.Model.Graph.Initializers {
		position[t.Name] = i + 1
	}
	slices.SortStableFunc(g.Initializers, func(a, b *onnx.Tensor) int {
		x, y := position[a.Name], position[b.Name]
		if x == 0 || y == 0 {
			return y - x
		}
		return x - y
	})
}

// written reports whether a constant is a value in the file. A constant that all its clients take as an
// attribute in this version is not.
func (e *exporter) written(v *fgraph.Variable) bool {
	for _, c := range v.Clients() {
		if c.Apply == nil {
			return true
		}
		op := c.Apply.Op().(*Op)
		m, ok := movedSince[op.Type]
		if !ok || op.Domain != "" || op.Legacy != 0 || e.opset >= m.version ||
			!slices.ContainsFunc(m.list, func(a moved) bool { return a.input == c.Index }) {
			return true
		}
	}
	return false
}

// info returns the declaration of a value: the one that the model has, unless sizes were given.
func (e *exporter) info(old *onnx.ValueInfo, v *fgraph.Variable, name string) *onnx.ValueInfo {
	if old == nil {
		return &onnx.ValueInfo{Name: name, Type: TypeOf(v).Proto()}
	}
	info := *old
	info.Name = name
	t, now := FromProto(old.Type), TypeOf(v)
	if e.fixed && now.IsTensor() && (!t.IsTensor() || moreNumbers(t, now)) {
		info.Type = now.Proto()
	}
	return &info
}

// moreNumbers reports whether the second type has a number for a size where the first has none or
// another.
func moreNumbers(t, u Type) bool {
	x, ranked := t.Shape()
	y, too := u.Shape()
	if !too {
		return false
	}
	if !ranked || len(x) != len(y) {
		return true
	}
	for i := range x {
		if _, ok := y[i].Number(); ok && x[i] != y[i] {
			return true
		}
	}
	return false
}

// valueInfos returns the declarations of what is left of the values that the model declares.
func (e *exporter) valueInfos(old *onnx.Graph) []*onnx.ValueInfo {
	byName := make(map[string]*fgraph.Variable)
	for v, name := range e.names {
		byName[name] = v
	}
	var list []*onnx.ValueInfo
	for _, info := range old.Values {
		v := byName[info.Name]
		if v == nil || v.IsInput() {
			continue
		}
		now := e.info(info, v, info.Name)
		if _, ok := FromProto(now.Type).Meet(TypeOf(v)); ok {
			list = append(list, now)
		}
	}
	return list
}
