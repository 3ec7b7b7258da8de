package ir

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
)

// functionName returns what a node calls a function by.
func functionName(domain, name, overload string) string {
	return qualified(domain, name) + ":" + overload
}

// function returns the function that a node calls, or nil. An operator that is known comes first: the
// function is for programs that don't know it.
func (im *importer) function(n *onnx.Node) *onnx.Function {
	if im.Operators.Lookup(domainOf(n.Domain), n.Op) != nil {
		return nil
	}
	return im.functions[functionName(n.Domain, n.Op, n.Overload)]
}

// maxCalls bounds how deep functions call each other.
const maxCalls = 1 << 10

// maxInlined bounds the nodes that functions become. Functions that call each other twice, a few levels
// deep, are as many as one wants.
const maxInlined = 1 << 17

// call puts the nodes of a function in the place of a node that calls it. They see no names but those of
// the function, have the versions of operators that it says, and refer to attributes of the node.
func (im *importer) call(i int, n *onnx.Node, f *onnx.Function, in []*fgraph.Variable, s *scope) ([]*fgraph.Variable, error) {
	if s.depth == maxCalls {
		return nil, fmt.Errorf("functions call each other, %d deep", maxCalls)
	}
	for c := s.frame; c != nil; c = c.caller {
		if c.function == f {
			im.stopped = true // others would call it, too
			return nil, fmt.Errorf("the function %s calls itself", f.Name)
		}
	}
	if im.inlined += len(f.Nodes) + 1; im.inlined > maxInlined {
		im.stopped = true
		return nil, fmt.Errorf("the functions of the model are more than %d nodes where they are called", maxInlined)
	}
	c := im.noteCall(i, n, f, in, s)
	fr := &frame{caller: s.frame, call: c, depth: s.depth + 1, function: f, opsets: opsetsOf(f.Opsets), attributes: make(map[string]*onnx.Attribute)}
	// The attributes of the node come last, and so override the defaults.
	for _, a := range slices.Concat(f.Defaults, n.Attributes) {
		fr.attributes[a.Name] = a
	}
	inner := im.scope(nil, s.made, fr)
	inner.path, inner.branch, inner.lenient = s.path+whereOf(i, n)+"/", s.branch, s.lenient
	// What the call leaves out is left out of the nodes that use it, too.
	for k, name := range f.Inputs {
		if inner.vars[name] = Missing(); k < len(in) {
			inner.vars[name] = in[k]
		}
	}
	im.nodes(f.Nodes, inner)
	c.last = len(im.source.nodes)
	outputs := make([]*fgraph.Variable, len(n.Outputs))
	for k, name := range n.Outputs {
		if k >= len(f.Outputs) || name == "" {
			continue
		}
		v := inner.vars[f.Outputs[k]]
		// An input that the function passes through keeps its name, under which others read it.
		switch {
		case v != nil && v.Owner() != nil && !slices.Contains(in, v):
			v.SetName(name) // the name by which all outside know it
			fallthrough
		case v != nil:
			outputs[k] = v
		case inner.failed[f.Outputs[k]] || im.stopped:
			return nil, errFollows
		default:
			return nil, fmt.Errorf("nothing computes output %s of the function %s", f.Outputs[k], f.Name)
		}
	}
	// A graph among the attributes would see other names in a call.
	if !c.inline && !slices.ContainsFunc(n.Attributes, func(a *onnx.Attribute) bool { return len(a.Subgraphs()) > 0 }) {
		c.outputs = refsOf(outputs)
	}
	return outputs, nil
}

// noteCall notes a node that calls a function, for Export.
func (im *importer) noteCall(i int, n *onnx.Node, f *onnx.Function, in []*fgraph.Variable, s *scope) *functionCall {
	c := &functionCall{outer: s.call, first: len(im.source.nodes), graph: s.made.number, inputs: refsOf(in), unread: make([]bool, len(in)), overloaded: im.overloads[qualified(n.Domain, n.Op)] > 1, short: len(in) < len(f.Inputs), inline: im.redefines(f)}
	read := im.namesIn(f)
	for k := range in {
		c.unread[k] = k >= len(f.Inputs) || !read[f.Inputs[k]]
	}
	im.source.calls = true
	// Programs that know no overloads may take calls of these in functions for endless recursion.
	if c.overloaded || c.inline {
		for o := s.call; o != nil; o = o.outer {
			o.inline = true
		}
	}
	im.source.nodes = append(im.source.nodes, imported{
		node: n, path: s.path, index: i, branch: s.branch,
		op:       im.Operators.NewOp(Op{Type: n.Op, Domain: domainOf(n.Domain), overload: n.Overload, Attributes: slices.Clone(n.Attributes), Outputs: len(n.Outputs)}),
		function: &inFunction{is: c, in: s.call, opsets: s.opsets, graph: s.made.number},
	})
	return c
}

// namesIn returns the names that nodes of a function use, or that are outputs.
func (im *importer) namesIn(f *onnx.Function) map[string]bool {
	names := im.read[f]
	if names == nil {
		names = make(map[string]bool)
		for _, n := range f.Nodes {
			for _, name := range im.uses.Of(n) {
				names[name] = true
			}
		}
		for _, name := range f.Outputs {
			names[name] = true
		}
		im.read[f] = names
	}
	return names
}

// redefines is the function of that name, asked once for each function.
func (im *importer) redefines(f *onnx.Function) bool {
	r, known := im.redefined[f]
	if !known {
		r = redefines(f)
		im.redefined[f] = r
	}
	return r
}

// resolved returns a node of a function with the attributes that it refers to. One that the call leaves
// out, without a default, is left out.
func (f *frame) resolved(n *onnx.Node) *onnx.Node {
	if !slices.ContainsFunc(n.Attributes, func(a *onnx.Attribute) bool { return a.Ref != "" }) {
		return n
	}
	c := *n
	c.Attributes = nil
	for _, a := range n.Attributes {
		if a.Ref == "" {
			c.Attributes = append(c.Attributes, a)
		} else if of := f.attributes[a.Ref]; of != nil {
			named := *of
			named.Name = a.Name
			c.Attributes = append(c.Attributes, &named)
		}
	}
	return &c
}

// redefines reports whether a graph in a function defines a name that one around it does. ONNX forbids it, and
// where ONNX Runtime 1.30 puts such a function in the place of a call, it may refuse what it has made.
func redefines(f *onnx.Function) bool {
	type scope struct {
		graph  *onnx.Graph
		around []map[string]bool
	}
	body := &onnx.Graph{Nodes: f.Nodes}
	for _, name := range f.Inputs {
		body.Inputs = append(body.Inputs, &onnx.ValueInfo{Name: name})
	}
	scopes := []scope{{graph: body}}
	for i := 0; i < len(scopes); i++ {
		s := scopes[i]
		own := s.graph.Defined()
		for _, names := range s.around {
			for name := range own {
				if names[name] {
					return true
				}
			}
		}
		// Clipped, since each of the graphs in this one appends to the list.
		around := append(slices.Clip(s.around), own)
		for _, n := range s.graph.Nodes {
			for _, a := range n.Attributes {
				for _, g := range a.Subgraphs() {
					scopes = append(scopes, scope{g, around})
				}
			}
		}
	}
	return false
}
