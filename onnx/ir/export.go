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

// constants writes constants: those of Constant nodes as nodes, others as initializers. Before
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

// written reports whether a constant is a value in the file. One that is an attribute in this version
// everywhere is none.
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

// nodes writes the nodes of a region, and what makes its outputs values of their names.
func (e *exporter) nodes(g *onnx.Graph, r *region, outputs []*fgraph.Variable, names []string) {
	own := make(map[*fgraph.Variable]bool)
	for _, a := range r.nodes {
		g.Nodes = append(g.Nodes, e.node(a, r))
		for _, v := range a.Outputs() {
			own[v] = true
		}
	}
	given := make(map[string]bool)
	for i, v := range outputs {
		if (own[v] || v.IsInput()) && e.names[v] == names[i] && !given[names[i]] {
			given[names[i]] = true
			continue
		}
		g.Nodes = append(g.Nodes, &onnx.Node{Op: "Identity", Inputs: []string{e.name(v)}, Outputs: []string{names[i]}})
	}
}

// node writes an apply.
func (e *exporter) node(a *fgraph.Apply, r *region) *onnx.Node {
	op := a.Op().(*Op)
	n := &onnx.Node{Op: op.Type, Domain: op.Domain, Overload: op.Overload}
	if old := e.origin(a); old != nil {
		if old.op != nil && old.op.EqualOp(op) {
			c := *old.node
			n = &c
		}
		n.Name = e.nodeName(a, r, old.node.Name)
	}
	in := a.Inputs()
	attributes, in, err := denormalize(op, e.opset, in[:len(in)-len(op.Captures)])
	if err != nil {
		e.faults = append(e.faults, fmt.Errorf("node %s: %w", n.Name, err))
		return n
	}
	captured := a.Inputs()[len(a.Inputs())-len(op.Captures):]
	if isIf(a) {
		attributes, in = e.branches(a, r, n.Attributes), in[:1]
	} else {
		attributes = slices.Clone(attributes)
		for i, b := range attributes {
			attributes[i] = e.renamed(b, op, captured)
		}
	}
	n.Attributes = keep(n.Attributes, attributes)
	n.Inputs = nil
	for _, v := range in {
		n.Inputs = append(n.Inputs, e.name(v))
	}
	n.Outputs = make([]string, 0, len(a.Outputs()))
	for i, v := range a.Outputs() {
		if v.Name() == "" && len(v.Clients()) == 0 && (i > 0 || len(a.Outputs()) > 1) {
			n.Outputs = append(n.Outputs, "")
		} else {
			n.Outputs = append(n.Outputs, e.name(v))
		}
	}
	return n
}

// origin returns the node of the model that an apply comes from, or nil.
func (e *exporter) origin(a *fgraph.Apply) *imported {
	if k := a.Origin(); k >= 0 && k < len(e.Source.nodes) {
		return &e.Source.nodes[k]
	}
	return nil
}

// A nodeKey is a name of a node in a graph of the model.
type nodeKey struct {
	region *region
	name   string
}

// nodeName returns the name of a node that comes from one of a name. Several nodes may come from one: then
// the name is that of the node that is still what it was, or else of the first, and others have none.
func (e *exporter) nodeName(a *fgraph.Apply, r *region, name string) string {
	key := nodeKey{r, name}
	if name != "" && e.nodeNames[key] == nil {
		for _, b := range r.nodes {
			old := e.origin(b)
			if old == nil || old.node.Name == "" {
				continue
			}
			k := nodeKey{r, old.node.Name}
			if e.nodeNames[k] == nil || !e.unchanged(e.nodeNames[k]) && e.unchanged(b) {
				e.nodeNames[k] = b
			}
		}
	}
	if e.nodeNames[key] != a {
		return ""
	}
	return name
}

// unchanged reports whether an apply has the op of the node that it comes from.
func (e *exporter) unchanged(a *fgraph.Apply) bool {
	old := e.origin(a)
	return old != nil && old.op != nil && old.op.EqualOp(a.Op())
}

// keep returns attributes in the order of the file, and those messages of the file that are equal.
func keep(old, list []*onnx.Attribute) []*onnx.Attribute {
	rest := slices.Clone(list)
	var kept []*onnx.Attribute
	for _, a := range old {
		i := slices.IndexFunc(rest, func(b *onnx.Attribute) bool { return b.Name == a.Name })
		switch {
		case i < 0:
			continue
		case rest[i] == a || a.Graph == nil && len(a.Graphs) == 0 && attributeText(a) == attributeText(rest[i]):
			kept = append(kept, a)
		default:
			kept = append(kept, rest[i])
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return append(kept, rest...)
}

// branches writes the branches of an If.
func (e *exporter) branches(a *fgraph.Apply, r *region, old []*onnx.Attribute) []*onnx.Attribute {
	k := a.Op().(*Op).Outputs
	var list []*onnx.Attribute
	for branch, name := range []string{"then_branch", "else_branch"} {
		attribute := &onnx.Attribute{Name: name, Type: onnx.AttributeGraph}
		g := &onnx.Graph{Name: name}
		var infos []*onnx.ValueInfo
		for _, b := range old {
			if b.Name == name && b.Graph != nil {
				c, d := *b, *b.Graph
				attribute, g, infos = &c, &d, b.Graph.Outputs
			}
		}
		values := a.Inputs()[1+branch*k : 1+(branch+1)*k]
		inner := r.branchOf(a, branch)
		names := e.branchNames(inner, values)
		g.Nodes, g.Initializers, g.SparseInitializers, g.Values, g.Outputs = nil, nil, nil, nil, nil
		e.nodes(g, inner, values, names)
		for i, v := range values {
			var info *onnx.ValueInfo
			if i < len(infos) {
				info = infos[i]
			}
			g.Outputs = append(g.Outputs, e.info(info, v, names[i]))
		}
		attribute.Graph = g
		list = append(list, attribute)
	}
	return list
}

// branchNames returns names for the outputs of a branch: those of values that are computed in it,
// each once, and new ones for others.
func (e *exporter) branchNames(r *region, values []*fgraph.Variable) []string {
	names := make([]string, len(values))
	for i, v := range values {
		if v.Owner() != nil && slices.Contains(r.nodes, v.Owner()) && !slices.Contains(values[:i], v) {
			names[i] = e.name(v)
		} else {
			names[i] = e.fresh(e.name(v))
		}
	}
	return names
}

// renamed returns an attribute whose graphs call captured values by the names that these have now.
func (e *exporter) renamed(a *onnx.Attribute, op *Op, captured []*fgraph.Variable) *onnx.Attribute {
	if a.Graph == nil && len(a.Graphs) == 0 {
		return a
	}
	rename := make(map[string]string)
	for i, name := range op.Captures {
		if now := e.name(captured[i]); now != name {
			rename[name] = now
		}
	}
	if len(rename) == 0 {
		return a
	}
	c := *a
	if c.Graph != nil {
		c.Graph = renameFree(c.Graph, rename)
	}
	c.Graphs = slices.Clone(c.Graphs)
	for i, g := range c.Graphs {
		c.Graphs[i] = renameFree(g, rename)
	}
	return &c
}

// renameFree returns a copy of a graph in which names that it does not define are others.
func renameFree(g *onnx.Graph, rename map[string]string) *onnx.Graph {
	free := FreeNames(g)
	name := func(s string) string {
		if to, ok := rename[s]; ok && slices.Contains(free, s) {
			return to
		}
		return s
	}
	c := *g
	c.Nodes = nil
	for _, n := range g.Nodes {
		d := *n
		d.Inputs = slices.Clone(n.Inputs)
		for i, s := range d.Inputs {
			d.Inputs[i] = name(s)
		}
		d.Attributes = slices.Clone(n.Attributes)
		for i, a := range d.Attributes {
			if a.Graph != nil {
				b := *a
				b.Graph = renameFree(a.Graph, rename)
				d.Attributes[i] = &b
			}
		}
		c.Nodes = append(c.Nodes, &d)
	}
	c.Outputs = slices.Clone(g.Outputs)
	for i, out := range c.Outputs {
		if to := name(out.Name); to != out.Name {
			d := *out
			d.Name = to
			c.Outputs[i] = &d
		}
	}
	return &c
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
