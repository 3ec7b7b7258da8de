package nnet3

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/internal/fileio/spell"
	"github.com/nnopt/nnopt/nnet3/internal/descriptor"
)

// define is the second pass for a line: it completes the node.
func (c *configReader) define(i int) {
	l := &c.lines[i]
	node := c.starts[i]
	var known []string
	switch l.First {
	case "component":
		return
	case "component-node":
		known = []string{"name", "component", "input"}
		c.descriptor(l, node)
		c.nn.Nodes[node+1].Component = c.componentOf(l)
	case "input-node":
		known = []string{"name", "dim"}
		c.nn.Nodes[node].Dim = c.number(l, "dim", 1)
	case "output-node":
		known = []string{"name", "input", "objective"}
		c.descriptor(l, node)
		c.nn.Nodes[node].quadratic = c.isQuadratic(l)
	case "dim-range-node":
		known = []string{"name", "input-node", "dim", "dim-offset"}
		n := &c.nn.Nodes[node]
		n.Dim, n.DimOffset = c.number(l, "dim", 1), c.number(l, "dim-offset", 0)
		n.Input = c.inputNode(l)
	}
	if left := l.Unused(); left != "" {
		key, _, _ := strings.Cut(left, "=")
		c.failf(l, "unknown key%s (known: %s)", didYouMean(key, known...), strings.Join(known, ", "))
	}
}

// required returns the value of a required key.
func (c *configReader) required(l *configLine, key string) (string, bool) {
	v, ok := l.Value(key)
	if !ok {
		c.failf(l, "%s= is missing", key)
	}
	return v, ok
}

// number returns the value of a key, at least low.
func (c *configReader) number(l *configLine, key string, low int) int {
	if !l.Has(key) {
		c.failf(l, "%s= is missing", key)
		return low
	}
	v := l.Int(key, low-1)
	if err := l.Err(); err != nil {
		c.fail(l, err)
		return low
	}
	if v < low || v > math.MaxInt32 {
		c.failf(l, "%s=%d: must be at least %d", key, v, low)
		return low
	}
	return v
}

// componentOf returns the component that a component-node names.
func (c *configReader) componentOf(l *configLine) int {
	name, ok := c.required(l, "component")
	if !ok {
		return 0
	}
	i, ok := c.components[name]
	if !ok {
		c.failf(l, "component=%s: there is no component%s", fileio.Excerpt(name, 0), didYouMean(name, c.nn.ComponentNames...))
		return 0
	}
	return i
}

// isQuadratic returns whether the objective of an output-node is quadratic.
func (c *configReader) isQuadratic(l *configLine) bool {
	v, ok := l.Value("objective")
	if ok && v != "linear" && v != "quadratic" {
		c.failf(l, "objective=%s: must be linear or quadratic", v)
	}
	return v == "quadratic"
}

// inputNode returns the node whose columns a dim-range-node takes.
func (c *configReader) inputNode(l *configLine) int {
	name, ok := c.required(l, "input-node")
	if !ok {
		return 0
	}
	i := c.nn.NodeIndex(name)
	if i < 0 || c.nn.Nodes[i].Kind == DescriptorNode || c.nn.Nodes[i].Kind == DimRangeNode {
		c.failf(l, "input-node=%s: %s", name, c.whyNot(name, func(k NodeKind) bool { return k == InputNode || k == ComponentNode }))
		return 0
	}
	return i
}

// descriptor parses the input of a node.
func (c *configReader) descriptor(l *configLine, node int) {
	text, ok := c.required(l, "input")
	if !ok {
		return
	}
	d, err := descriptor.ParseWithin(text, c.source, &c.terms)
	if err != nil {
		if e := (*descriptor.Error)(nil); errors.As(err, &e) && e.Unknown != "" {
			e.What += c.explain(e.Unknown)
		}
		c.fail(l, err)
		return
	}
	c.nn.Nodes[node].Descriptor = d
}

// source returns a node that a descriptor may refer to.
func (c *configReader) source(name string) (int, bool) {
	i := c.nn.NodeIndex(name)
	return i, i >= 0 && c.nn.Nodes[i].Kind != DescriptorNode
}

// explain returns the end of a message about a name that a descriptor must not refer to.
func (c *configReader) explain(name string) string {
	switch i := c.nn.NodeIndex(name); {
	case i >= 0:
		return ": " + c.whyNot(name, func(k NodeKind) bool { return k != DescriptorNode })
	case c.nn.ComponentIndex(name) >= 0:
		return ": it is a component, which has to be made a node by a component-node line"
	}
	if s := c.nearest(name, func(k NodeKind) bool { return k != DescriptorNode }); s != "" {
		return "; did you mean " + s + "?"
	}
	return ""
}

// whyNot says why a name can't be used for a node of the wanted kinds.
func (c *configReader) whyNot(name string, wanted func(NodeKind) bool) string {
	i := c.nn.NodeIndex(name)
	switch {
	case i < 0:
		if s := c.nearest(name, wanted); s != "" {
			return fmt.Sprintf("there is no such node; did you mean %s?", s)
		}
		return "there is no such node"
	case c.nn.IsOutputNode(i):
		return "it is an output-node, which nothing can take as its input; name the node that it takes its own from"
	case c.nn.IsComponentInputNode(i):
		return "it is the hidden input of a component-node"
	}
	return fmt.Sprintf("it is a %s", c.nn.Nodes[i].Kind)
}

// nearest returns the node of a wanted kind whose name is most similar.
func (c *configReader) nearest(name string, wanted func(NodeKind) bool) string {
	var names []string
	for i := range c.nn.Nodes {
		if wanted(c.nn.Nodes[i].Kind) {
			names = append(names, c.nn.Nodes[i].Name)
		}
	}
	return spell.Nearest(name, names)
}
