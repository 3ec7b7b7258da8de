package ir

import (
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/onnx"
)

// Brief returns the text of the op for readers: as [Op.String], but what has no short form is said in
// words, and the element type to convert to has its name.
func (op *Op) Brief() string {
	parts := make([]string, 0, len(op.Attributes))
	for _, a := range op.Attributes {
		parts = append(parts, a.Name+"="+briefAttribute(op, a))
	}
	text, _, _ := strings.Cut(op.String(), "{")
	if len(parts) > 0 {
		text += "{" + strings.Join(parts, ", ") + "}"
	}
	return text
}

func briefAttribute(op *Op, a *onnx.Attribute) string {
	switch {
	case a.Type == onnx.AttributeInt && (op.Type == "Cast" && a.Name == "to" || a.Name == "dtype"):
		return onnx.DataType(a.Int).String()
	case a.Graph != nil:
		return "graph of " + nodes(len(a.Graph.Nodes))
	case a.Tensor != nil:
		return fmt.Sprintf("tensor of %v%s", a.Tensor.DataType, listText(a.Tensor.Dims, func(n int64) string { return fmt.Sprint(n) }))
	}
	text := attributeText(a)
	if strings.HasPrefix(text, "proto[") {
		return "…"
	}
	return text
}

func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// maxDescribed is how many nodes of a graph are described.
const maxDescribed = 30

// Describe lists the nodes of the graphs among the attributes, a node a line. It returns "" where
// there is no graph.
func (op *Op) Describe() string {
	var b strings.Builder
	for _, a := range op.Attributes {
		if a.Graph == nil {
			continue
		}
		fmt.Fprintf(&b, "%s(%s) → %s\n", a.Name, values(a.Graph.Inputs), values(a.Graph.Outputs))
		for i, n := range a.Graph.Nodes {
			if i == maxDescribed {
				fmt.Fprintf(&b, "  … %s more\n", nodes(len(a.Graph.Nodes)-i))
				break
			}
			fmt.Fprintf(&b, "  %s = %s(%s)\n", strings.Join(n.Outputs, ", "), qualified(n.Domain, n.Op), strings.Join(n.Inputs, ", "))
		}
	}
	return b.String()
}

func values(list []*onnx.ValueInfo) string {
	names := make([]string, len(list))
	for i, v := range list {
		names[i] = v.Name
	}
	return strings.Join(names, ", ")
}
