package onnxtest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

// Inline returns a model that means the same as one with functions, and has none: each call is the nodes of the
// function, references to attributes are the attributes, and all names are different. It is a few lines that follow
// ONNX's text, to compare with what computes such models. Functions must not call themselves.
func Inline(m *onnx.Model) *onnx.Model {
	in := &inliner{functions: make(map[string]*onnx.Function), keep: make(map[string]bool)}
	for _, f := range m.Functions {
		in.functions[key(f.Domain, f.Name, f.Overload)] = f
	}
	for _, list := range [][]*onnx.ValueInfo{m.Graph.Inputs, m.Graph.Outputs} {
		for _, v := range list {
			in.keep[v.Name] = true
		}
	}
	out := *m
	out.Functions = nil
	out.Opsets = slices.DeleteFunc(slices.Clone(m.Opsets), func(o *onnx.Opset) bool { return o.Domain == local })
	// The main graph has the names of its inputs and outputs for itself.
	top := frame{names: make(map[string]string), main: true}
	for name := range in.keep {
		top.names[name] = name
	}
	out.Graph = in.graph(m.Graph, top)
	return &out
}

func key(domain, name, overload string) string { return domain + ":" + name + ":" + overload }

type inliner struct {
	functions map[string]*onnx.Function
	keep      map[string]bool
	count     int
}

// A frame says what the names that nodes read stand for, and the attributes of the function around. An input of the
// function that is left out stands for "".
type frame struct {
	names      map[string]string
	attributes map[string]*onnx.Attribute
	main       bool // of the main graph
}

// inside returns the frame of a graph in a node.
func (f frame) inside() frame {
	return frame{maps.Clone(f.names), f.attributes, false}
}

// define gives a name that a graph defines a new one, unless the main graph keeps it.
func (in *inliner) define(f frame, name string) string {
	if name == "" {
		return ""
	}
	if f.main && in.keep[name] {
		return name
	}
	in.count++
	f.names[name] = fmt.Sprint("v", in.count)
	for in.keep[f.names[name]] {
		f.names[name] += "_"
	}
	return f.names[name]
}

func (in *inliner) graph(g *onnx.Graph, f frame) *onnx.Graph {
	out := *g
	out.Inputs, out.Initializers, out.Outputs = nil, nil, nil
	for _, v := range g.Inputs {
		v := *v
		v.Name = in.define(f, v.Name)
		out.Inputs = append(out.Inputs, &v)
	}
	for _, t := range g.Initializers {
		t := *t
		t.Name = in.define(f, t.Name)
		out.Initializers = append(out.Initializers, &t)
	}
	out.Nodes = in.nodes(g.Nodes, f)
	for _, v := range g.Outputs {
		v := *v
		v.Name = f.names[v.Name]
		out.Outputs = append(out.Outputs, &v)
	}
	return &out
}

func (in *inliner) nodes(list []*onnx.Node, f frame) (out []*onnx.Node) {
	for _, n := range list {
		c := *n
		c.Inputs, c.Outputs, c.Attributes = nil, nil, nil
		for _, name := range n.Inputs {
			c.Inputs = append(c.Inputs, f.names[name]) // "" if there is none
		}
		for _, a := range n.Attributes {
			if a = in.attribute(a, f); a != nil {
				c.Attributes = append(c.Attributes, a)
			}
		}
		for _, name := range n.Outputs {
			c.Outputs = append(c.Outputs, in.define(f, name))
		}
		if callee := in.functions[key(n.Domain, n.Op, n.Overload)]; callee != nil {
			out = append(out, in.call(callee, &c)...)
		} else {
			out = append(out, &c)
		}
	}
	return out
}

// attribute returns what an attribute is in a frame, or nil if it refers to one that the call leaves out.
func (in *inliner) attribute(a *onnx.Attribute, f frame) *onnx.Attribute {
	c := *a
	switch {
	case a.Ref != "":
		to := f.attributes[a.Ref]
		if to == nil {
			return nil
		}
		c = *to
		c.Name = a.Name
	case a.Graph != nil:
		c.Graph = in.graph(a.Graph, f.inside())
	}
	return &c
}

// call returns the nodes of a function, whose inputs and outputs are those of the node, and Identities for outputs.
func (in *inliner) call(callee *onnx.Function, n *onnx.Node) []*onnx.Node {
	// The body sees nothing of the caller but its inputs and attributes.
	f := frame{make(map[string]string), make(map[string]*onnx.Attribute), false}
	// Those of the call come second, and replace defaults.
	for _, a := range slices.Concat(callee.Defaults, n.Attributes) {
		f.attributes[a.Name] = a
	}
	for i, name := range callee.Inputs {
		f.names[name] = ""
		if i < len(n.Inputs) {
			f.names[name] = n.Inputs[i]
		}
	}
	out := in.nodes(callee.Nodes, f)
	for i, name := range n.Outputs {
		if name != "" {
			out = append(out, &onnx.Node{Op: "Identity", Inputs: []string{f.names[callee.Outputs[i]]}, Outputs: []string{name}})
		}
	}
	return out
}
