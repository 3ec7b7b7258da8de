package ir

import (
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
)

// Brief returns the text of the op for readers: as [Op.String], but what has no short form is said in
// words, and the element type to convert to has its name.
func (op *Op) Brief() string {
	return op.textWith(op.brief, bodyTexts(op.Bodies))
}

func (op *Op) brief(a *onnx.Attribute) string {
	switch {
	case a.Type == onnx.AttributeInt && (op.Type == "Cast" && a.Name == "to" || a.Name == "dtype"):
		return onnx.DataType(a.Int).String()
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

// Describe lists the applies of the bodies, a line each. It returns "" where there is none.
func (op *Op) Describe() string {
	var text strings.Builder
	for _, b := range op.Bodies {
		names := make(map[*fgraph.Variable]string)
		list := func(vars []*fgraph.Variable) string {
			parts := make([]string, len(vars))
			for i, v := range vars {
				switch {
				case v.Name() != "":
					parts[i] = v.Name()
				case v.IsConstant():
					parts[i] = v.String()
				default:
					if names[v] == "" {
						names[v] = fmt.Sprintf("%%%d", len(names))
					}
					parts[i] = names[v]
				}
			}
			return strings.Join(parts, ", ")
		}
		fmt.Fprintf(&text, "%s(%s) → %s\n", b.Name, list(b.Graph.Inputs()), list(b.Graph.Outputs()))
		n := 0
		for a := range b.Graph.Ordered() {
			if n++; n > maxDescribed {
				fmt.Fprintf(&text, "  … %s more\n", nodes(b.Graph.NumApplies()-maxDescribed))
				break
			}
			fmt.Fprintf(&text, "  %s = %s(%s)\n", list(a.Outputs()), a.Op().(*Op).Name(), list(a.Inputs()))
		}
	}
	return text.String()
}
