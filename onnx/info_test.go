package onnx_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/onnx"
)

// TestInfoOrder: nodes that stand before what they read are counted, and inputs with defaults are named.
func TestInfoOrder(t *testing.T) {
	node := func(op, inputs, output string, graphs ...*onnx.Graph) *onnx.Node {
		n := &onnx.Node{Op: op, Outputs: []string{output}}
		if inputs != "" {
			n.Inputs = strings.Split(inputs, " ")
		}
		for _, g := range graphs {
			n.Attributes = append(n.Attributes, &onnx.Attribute{Name: "body", Type: onnx.AttributeGraph, Graph: g})
		}
		return n
	}
	inner := func(nodes ...*onnx.Node) *onnx.Graph {
		return &onnx.Graph{Nodes: nodes, Outputs: []*onnx.ValueInfo{{Name: nodes[len(nodes)-1].Outputs[0]}}}
	}
	for want, nodes := range map[int][]*onnx.Node{
		0: {node("Neg", "x", "a"), node("Neg", "a", "b"), node("If", "c", "y", inner(node("Neg", "b", "d"), node("Neg", "d", "e")))},
		1: {node("Neg", "a", "b"), node("Neg", "x", "a"), node("Clip", "a  b", "y")},
		2: {node("If", "b", "y", inner(node("Neg", "x", "d"), node("If", "d", "e", inner(node("Neg", "a", "f"))))), node("Neg", "a", "b"), node("Neg", "x", "a")},
		4: {node("Neg", "b", "y"), node("Neg", "a", "b"), node("Neg", "z", "a"), node("If", "x", "z", inner(node("Neg", "q", "p"), node("Neg", "x", "q")))},
	} {
		m := &onnx.Model{IRVersion: 3, Graph: &onnx.Graph{Nodes: nodes, Initializers: []*onnx.Tensor{{Name: "w"}, {Name: "k"}},
			Inputs: []*onnx.ValueInfo{{Name: "x"}, {Name: "c"}, {Name: "w"}}, Outputs: []*onnx.ValueInfo{{Name: "y"}}}}
		info := m.Info()
		if info.Unsorted != want { // of 4, one is in a graph inside
			t.Errorf("%d are out of order, want %d", info.Unsorted, want)
		}
		if got := strings.Contains(info.Text(), "\nout of order: "); got != (want > 0) {
			t.Error(info.Text())
		}
		if !slices.Equal(info.Defaults, []string{"w"}) || !strings.Contains(info.Text(), "\ninputs with a default: w\n") || len(info.Inputs) != 2 {
			t.Errorf("%+v", info)
		}
	}
	m := &onnx.Model{Graph: new(onnx.Graph)}
	for i := range 12 {
		name := string(rune('a' + i))
		m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: name})
		m.Graph.Initializers = append(m.Graph.Initializers, &onnx.Tensor{Name: name})
	}
	if text := m.Info().Text(); !strings.Contains(text, "default: a, b, c, d, e, f, g, h, i, j, … 12 in all\n") {
		t.Error(text)
	}
}
