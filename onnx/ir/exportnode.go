package ir

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
)

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
	var nameless []string // the results as they were in the file, if the node is still that one
	if old := e.origin(a); old != nil {
		if old.op != nil && old.op.EqualOp(op) {
			c := *old.node
			n, nameless = &c, old.node.Outputs
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
		// Without a name is only what may be left out: the checker of ONNX refuses others, and ONNX Runtime ends at
		// once where a result of a Loop has none.
		if v.Name() == "" && len(v.Clients()) == 0 && (op.MayLeaveOut(i) || i < len(nameless) && nameless[i] == "") {
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

// nodeName returns the name of a node that comes from a node of a given name. If several come from the
// same node, only one keeps the name: the one that has not changed, or else the first.
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

// branchNames returns names for the outputs of a branch. A value that is computed in the branch has its
// own name, once; all others get new names.
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

// renameFree returns a copy of a graph in which names that it uses but does not define are replaced.
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
