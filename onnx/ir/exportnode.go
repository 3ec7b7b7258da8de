package ir

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
)

// nodes adds the nodes of a region to a list, and what makes its outputs values of their names.
func (w *writer) nodes(list []*onnx.Node, r *Region, outputs []*fgraph.Variable, names []string) []*onnx.Node {
	list = slices.Grow(list, len(r.Applies))
	for _, a := range r.Applies {
		list = append(list, w.node(a, r))
	}
	given := make(map[string]bool)
	for i, v := range outputs {
		// A graph has to compute an output itself, under the name of that output. A constant, a value
		// from around the graph, or one that is two outputs gets there through an Identity.
		if (r.computes(v) || v.IsInput()) && w.names[v.ID()] == names[i] && !given[names[i]] {
			given[names[i]] = true
			continue
		}
		list = append(list, &onnx.Node{Op: "Identity", Inputs: []string{w.name(v)}, Outputs: []string{names[i]}})
	}
	return list
}

// node writes an apply.
func (w *writer) node(a *fgraph.Apply, r *Region) *onnx.Node {
	op := a.Op().(*Op)
	n, old := onnx.Node{Op: op.Type, Domain: op.Domain, Overload: op.overload}, w.origin(a)
	// Documentation and metadata of a node belong to its operator. On what took its place they would be wrong.
	unchanged := w.unchanged(a)
	if unchanged {
		n = *old.node
	}
	if old != nil {
		n.Name = w.nodeName(a, r, old.node.Name)
	}
	known, captured := op.Split(a.Inputs())
	version := w.versionOf(a)
	attributes, in, err := denormalize(op, version, known)
	if err != nil {
		w.faults = append(w.faults, fmt.Errorf("node %s: %w", n.Name, err))
		return new(n)
	}
	if IsIf(a) {
		// What branches result in is output by the graphs in the node, not read by it.
		attributes, in = w.branches(a, r, n.Attributes), in[:1]
	} else {
		attributes = append(slices.Clip(attributes), w.bodies(op, captured, r, n.Attributes)...)
	}
	n.Attributes = keep(n.Attributes, attributes)
	n.Inputs, n.Outputs = lists.Map(in, w.name), lists.Map(a.Outputs(), w.name)
	if version != w.ownVersion(op.Domain) {
		return w.versionedCall(n, op, version)
	}
	w.noteDomain(a)
	if unchanged && n.Name == old.node.Name && slices.Equal(n.Inputs, old.node.Inputs) && slices.Equal(n.Outputs, old.node.Outputs) && slices.Equal(n.Attributes, old.node.Attributes) {
		return old.node // so that a model of very many nodes is not there twice
	}
	return new(n)
}

// A nodeKey is a name of a node in a graph of the model.
type nodeKey struct {
	region *Region
	name   string
}

// nodeName returns the name of a node that comes from a node of a given name. If several come from the
// same node, only one keeps the name: the one that has not changed, or else the first.
func (w *writer) nodeName(a *fgraph.Apply, r *Region, name string) string {
	key := nodeKey{r, name}
	if name != "" && w.nodeNames[key] == nil {
		// The whole region at once, since who keeps a name depends on all that come from its node.
		for _, b := range r.Applies {
			old := w.origin(b)
			if old == nil || old.node.Name == "" {
				continue
			}
			k := nodeKey{r, old.node.Name}
			if w.nodeNames[k] == nil || !w.unchanged(w.nodeNames[k]) && w.unchanged(b) {
				w.nodeNames[k] = b
			}
		}
	}
	if w.nodeNames[key] != a {
		return ""
	}
	return name
}

// unchanged reports whether an apply has the op of the node that it comes from.
func (s *Source) unchanged(a *fgraph.Apply) bool {
	old := s.origin(a)
	return old != nil && old.op != nil && old.op.EqualOp(a.Op())
}

// keep returns attributes in the order of the file, and those messages of the file that are equal.
func keep(old, list []*onnx.Attribute) []*onnx.Attribute {
	if slices.Equal(old, list) {
		return old
	}
	rest := slices.Clone(list)
	var kept []*onnx.Attribute
	for _, a := range old {
		i := slices.IndexFunc(rest, func(b *onnx.Attribute) bool { return b.Name == a.Name })
		switch {
		case i < 0:
			continue
		case rest[i] == a || len(a.Subgraphs()) == 0 && attributeText(a) == attributeText(rest[i]):
			kept = append(kept, a)
		default:
			kept = append(kept, rest[i])
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return append(kept, rest...)
}

// branches writes the branches of an If.
func (w *writer) branches(a *fgraph.Apply, r *Region, old []*onnx.Attribute) []*onnx.Attribute {
	k := a.Op().(*Op).Outputs
	list := make([]*onnx.Attribute, 0, 2)
	for branch, name := range []string{"then_branch", "else_branch"} {
		g := &onnx.Graph{Name: name}
		if i := holder(old, name); i >= 0 {
			g = old[i].Graph
		}
		list = append(list, holding(old, name, w.inner(g, g.Inputs, r.Branch(a, branch), a.Inputs()[1+branch*k:1+(branch+1)*k])))
	}
	return list
}

// holder returns the index of the attribute of a name that holds a graph, -1 if there is none.
func holder(list []*onnx.Attribute, name string) int {
	return slices.IndexFunc(list, func(a *onnx.Attribute) bool { return a.Name == name && a.Graph != nil })
}

// holding returns the attribute of a name, as it is among those of old, with a graph.
func holding(old []*onnx.Attribute, name string, g *onnx.Graph) *onnx.Attribute {
	i := holder(old, name)
	switch {
	case i < 0:
		return &onnx.Attribute{Name: name, Type: onnx.AttributeGraph, Graph: g}
	case old[i].Graph == g:
		return old[i]
	}
	c := *old[i]
	c.Graph = g
	return &c
}

// inner writes a branch or a body, the graph old of the model if nothing of that has changed. An output that is
// computed in it has its own name, once; all others are values of new names.
func (w *writer) inner(old *onnx.Graph, inputs []*onnx.ValueInfo, r *Region, values []*fgraph.Variable) *onnx.Graph {
	names, given := make([]string, len(values)), make(map[*fgraph.Variable]bool)
	for i, v := range values {
		if r.computes(v) && !given[v] {
			names[i], given[v] = w.names[v.ID()], true
		} else {
			names[i] = w.fresh(cmp.Or(w.name(v), "output"), r)
		}
	}
	nodes := w.nodes(nil, r, values, names)
	outputs := make([]*onnx.ValueInfo, len(values))
	for i, v := range values {
		var info *onnx.ValueInfo
		if i < len(old.Outputs) {
			info = old.Outputs[i]
		}
		outputs[i] = w.info(info, v, names[i])
	}
	if len(old.Initializers)+len(old.SparseInitializers)+len(old.Values) == 0 && slices.Equal(nodes, old.Nodes) && slices.Equal(inputs, old.Inputs) && slices.Equal(outputs, old.Outputs) {
		return old // so that a model of very many graphs is not there twice
	}
	g := *old
	g.Initializers, g.SparseInitializers, g.Values = nil, nil, nil // all constants are in the main graph
	g.Nodes, g.Inputs, g.Outputs = nodes, inputs, outputs
	return &g
}

// bodies writes the bodies of an op in a region.
func (w *writer) bodies(op *Op, captured []*fgraph.Variable, r *Region, old []*onnx.Attribute) []*onnx.Attribute {
	var list []*onnx.Attribute
	for _, b := range op.Bodies {
		g := w.body(b, captured[:b.Captures()], r)
		captured = captured[b.Captures():]
		switch n := len(list); {
		case !b.listed:
			list = append(list, holding(old, b.Name, g))
		case n > 0 && list[n-1].Name == b.Name:
			list[n-1].Graphs = append(list[n-1].Graphs, g)
		default:
			list = append(list, &onnx.Attribute{Name: b.Name, Type: onnx.AttributeGraphs, Graphs: []*onnx.Graph{g}})
		}
	}
	return list
}

// body writes a body that is in a region and captures values from around it.
func (w *writer) body(b *Body, captured []*fgraph.Variable, r *Region) *onnx.Graph {
	old := cmp.Or(b.file, &onnx.Graph{Name: b.Name})
	graph := w.calling(b.Graph)
	root, err := regions(graph, &Region{outer: r, depth: r.depth + 1})
	if err != nil {
		w.faults = append(w.faults, err)
		return old
	}
	in, inputs := w.writer(graph), make([]*onnx.ValueInfo, b.Params)
	for i, v := range graph.Inputs() {
		// A graph in a node sees the names around it, so what it captures is no input in the file.
		if i >= b.Params {
			in.names[v.ID()] = w.name(captured[i-b.Params])
			continue
		}
		in.names[v.ID()] = in.fresh(cmp.Or(v.Name(), "input_"+strconv.Itoa(i)), root)
		var info *onnx.ValueInfo
		if i < len(old.Inputs) {
			info = old.Inputs[i]
		}
		inputs[i] = in.info(info, v, in.names[v.ID()])
	}
	in.nameValues(root)
	g := in.inner(old, inputs, root, graph.Outputs())
	root.Applies, root.placed = nil, nil // names stay taken in the region
	return g
}

// A region is a graph of the file. Graphs see the names of those around them, so a name is taken there if it is in a
// graph around it or in one of those inside. Two graphs that don't see each other may have the same names, and models
// have them.

type scopedName struct {
	name string
	in   *Region
}

// holders are the graphs that have a name: most names are in one of them, and some in one of very many branches each.
type holders struct {
	one *Region
	all map[*Region]bool // false for graphs around those; nil if there is only one
}

// sees reports whether a scope is one of the holders, or around one or in one.
func (h holders) sees(s *Region) bool {
	if h.all == nil {
		return h.one.contains(s) || s.contains(h.one)
	}
	_, has := h.all[s]
	for ; s != nil && !has; s = s.outer {
		has = h.all[s]
	}
	return has
}

func (h holders) add(s *Region) {
	h.all[s] = true
	for s = s.outer; s != nil; s = s.outer {
		if _, known := h.all[s]; !known {
			h.all[s] = false
		}
	}
}

// isFree reports whether a name can be given in all scopes of a list.
func (e *exporter) isFree(name string, scopes ...*Region) bool {
	h, taken := e.taken[name]
	return !taken || !slices.ContainsFunc(scopes, h.sees)
}

// take takes a name.
func (e *exporter) take(name string, scopes ...*Region) string {
	for _, s := range scopes {
		h, taken := e.taken[name]
		switch {
		case !taken:
			h.one = s
		case h.all == nil:
			h.all = make(map[*Region]bool)
			h.add(h.one)
		}
		if taken {
			h.add(s)
		}
		e.taken[name] = h
	}
	return name
}

// fresh takes a name that is free: base, or else base with a number, which is no name that another value
// would like to have.
func (e *exporter) fresh(base string, scopes ...*Region) string {
	if e.isFree(base, scopes...) {
		return e.take(base, scopes...)
	}
	// What is not free once never is, so only one scope counts from where it ended.
	n, key, name := 0, scopedName{base, scopes[0]}, base
	if len(scopes) == 1 {
		n = e.numbered[key]
	}
	for name == base || !e.isFree(name, scopes...) || e.hints[name] {
		n++
		name = base + "_" + strconv.Itoa(n)
	}
	if len(scopes) == 1 {
		e.numbered[key] = n
	}
	return e.take(name, scopes...)
}
