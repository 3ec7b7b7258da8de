package fgraph

import (
	"fmt"
	"strings"

	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/encoding"
	"gonum.org/v1/gonum/graph/encoding/dot"
	"gonum.org/v1/gonum/graph/simple"
)

// DOT returns the graph in the DOT language of Graphviz: a box for each apply, an ellipse for
// each input and constant, and an edge for each use of a variable. The label of an edge has the
// index of the output if the source has several, and that of the input if the target has
// several.
func (g *FunctionGraph) DOT(name string) ([]byte, error) {
	return g.LabelledDOT(name, func(a *Apply) string { return a.op.String() })
}

// LabelledDOT is [FunctionGraph.DOT] with labels for applies of the caller's choice.
func (g *FunctionGraph) LabelledDOT(name string, label func(*Apply) string) ([]byte, error) {
	d := dotGraph{DirectedGraph: simple.NewDirectedGraph()}
	base := int64(len(g.applies))
	for v := range g.Variables() {
		if v.owner == nil && (len(v.clients) > 0 || v.leaf.input) {
			d.AddNode(&dotNode{id: base + int64(v.id), name: fmt.Sprintf("v%d", v.id), label: leafString(v), shape: "ellipse"})
		}
	}
	for a := range g.Applies() {
		d.AddNode(&dotNode{id: int64(a.id), name: fmt.Sprintf("a%d", a.id), label: label(a), shape: "box"})
	}
	outs := base + int64(len(g.variables))
	for i := range g.outputs {
		d.AddNode(&dotNode{id: outs + int64(i), name: fmt.Sprintf("out%d", i), label: fmt.Sprintf("output %d", i), shape: "plaintext"})
	}
	for a := range g.Applies() {
		for i, v := range a.inputs {
			d.read(g, v, int64(a.id), i, len(a.inputs) > 1)
		}
	}
	for i, v := range g.outputs {
		d.read(g, v, outs+int64(i), 0, false)
	}
	return dot.Marshal(d, dotQuote(name), "", "  ")
}

type dotGraph struct{ *simple.DirectedGraph }

// read adds the edge from v to input i of node to.
func (d dotGraph) read(g *FunctionGraph, v *Variable, to int64, i int, several bool) {
	from, label := int64(len(g.applies))+int64(v.id), v.suffix()
	if v.owner != nil {
		from = int64(v.owner.id)
	}
	if several {
		label = strings.TrimSpace(fmt.Sprintf("%s %d", label, i))
	}
	if e, ok := d.Edge(from, to).(*dotEdge); ok {
		e.label += ", " + label
		return
	}
	d.SetEdge(&dotEdge{d.Node(from), d.Node(to), label})
}

type dotNode struct {
	id                 int64
	name, label, shape string
}

func (n *dotNode) ID() int64     { return n.id }
func (n *dotNode) DOTID() string { return n.name }
func (n *dotNode) Attributes() []encoding.Attribute {
	return []encoding.Attribute{{Key: "label", Value: dotQuote(n.label)}, {Key: "shape", Value: n.shape}}
}

type dotEdge struct {
	from, to graph.Node
	label    string
}

func (e *dotEdge) From() graph.Node { return e.from }
func (e *dotEdge) To() graph.Node   { return e.to }
func (e *dotEdge) ReversedEdge() graph.Edge {
	return &dotEdge{e.to, e.from, e.label}
}
func (e *dotEdge) Attributes() []encoding.Attribute {
	if e.label == "" {
		return nil
	}
	return []encoding.Attribute{{Key: "label", Value: dotQuote(e.label)}}
}

// dotQuote quotes text for DOT.
func dotQuote(s string) string {
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s)
	return `"` + s + `"`
}
