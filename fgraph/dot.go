package fgraph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// DOT returns the graph in the DOT language of Graphviz: a box for each apply, an ellipse for
// each input and constant, and an edge for each use of a variable. The label of an edge has the
// index of the output if the source has several, and that of the input if the target has
// several.
func (g *FunctionGraph) DOT(name string) string {
	return g.LabelledDOT(name, func(a *Apply) string { return a.op.String() })
}

// LabelledDOT is [FunctionGraph.DOT] with labels for applies of the caller's choice.
func (g *FunctionGraph) LabelledDOT(name string, label func(*Apply) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "strict digraph %s {\n  // Node definitions.\n", dotQuote(name))
	node := func(id, label, shape string) {
		fmt.Fprintf(&b, "  %s [\n    label=%s\n    shape=%s\n  ];\n", id, dotQuote(label), shape)
	}
	for a := range g.Applies() {
		node(a.dotID(), label(a), "box")
	}
	for v := range g.Variables() {
		if v.owner == nil && (len(v.clients) > 0 || v.leaf.input) {
			node(v.dotID(), leafString(v), "ellipse")
		}
	}
	for i := range g.outputs {
		node(fmt.Sprintf("out%d", i), fmt.Sprintf("output %d", i), "plaintext")
	}
	b.WriteString("\n  // Edge definitions.\n")
	for _, e := range g.dotEdges() {
		fmt.Fprintf(&b, "  %s -> %s", e.from.dotID(), e.to)
		if e.label != "" {
			fmt.Fprintf(&b, " [label=%s]", dotQuote(e.label))
		}
		b.WriteString(";\n")
	}
	b.WriteByte('}')
	return b.String()
}

// A dotEdge leads from an apply or a leaf to the node that reads it. A strict graph has one edge
// between two nodes, so its label lists all uses.
type dotEdge struct {
	from      *Variable // the first one that is read, for its owner
	to, label string
}

// dotEdges returns the edges in the order of their sources: applies, then leaves.
func (g *FunctionGraph) dotEdges() []dotEdge {
	var edges []dotEdge
	at := make(map[string]int) // edges into the node at hand, by source
	read := func(to string, inputs []*Variable) {
		clear(at)
		for i, v := range inputs {
			label := v.suffix()
			if len(inputs) > 1 {
				label = strings.TrimSpace(fmt.Sprintf("%s %d", label, i))
			}
			if k, ok := at[v.dotID()]; ok {
				edges[k].label += ", " + label
				continue
			}
			at[v.dotID()] = len(edges)
			edges = append(edges, dotEdge{v, to, label})
		}
	}
	for a := range g.Applies() {
		read(a.dotID(), a.inputs)
	}
	for i, v := range g.outputs {
		read(fmt.Sprintf("out%d", i), []*Variable{v})
	}
	slices.SortStableFunc(edges, func(a, b dotEdge) int {
		return cmp.Compare(a.from.dotRank(g), b.from.dotRank(g))
	})
	return edges
}

func (a *Apply) dotID() string { return fmt.Sprintf("a%d", a.id) }

func (v *Variable) dotID() string {
	if v.owner != nil {
		return v.owner.dotID()
	}
	return fmt.Sprintf("v%d", v.id)
}

// dotRank orders the sources of edges.
func (v *Variable) dotRank(g *FunctionGraph) int {
	if v.owner != nil {
		return int(v.owner.id)
	}
	return len(g.applies) + int(v.id)
}

// dotQuote quotes text for DOT.
func dotQuote(s string) string {
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s)
	return `"` + s + `"`
}
