package lower

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/onnx"
)

// A Gap is something in a model that can't be computed.
type Gap struct {
	// Where is a node, "node 3, If/then_branch/node 0, Optional", an initializer or an input.
	Where string `json:"where"`
	// Op is the operator of the node, with its domain unless that is ONNX's own.
	Op string `json:"op,omitempty"`
	// Unknown means that ONNX has no such operator, and the model no such function.
	Unknown bool   `json:"unknown,omitempty"`
	Reason  string `json:"reason"`
}

// String returns the gap as a line.
func (g Gap) String() string { return g.Where + ": " + g.Reason }

// maxGaps bounds the gaps that are listed.
const maxGaps = 1000

// Unsupported lists what can't be computed, whatever the inputs are: operators, and types of
// elements. What depends on shapes and values, Model finds. Weights are not read.
// others are operators that can be computed besides those of this package, see [Options].
func Unsupported(m *onnx.Model, others map[string]Operator) []Gap {
	u := &gaps{model: m, functions: make(map[string]bool)}
	for name := range others {
		u.functions[name] = true
	}
	for _, f := range m.Functions {
		u.functions[qualified(f.Domain, f.Name)] = true
	}
	if m.Graph != nil {
		u.graph("", m.Graph, 0)
	}
	for _, f := range m.Functions {
		u.nodes("function "+f.Name+"/", f.Nodes, 0)
	}
	return u.list
}

type gaps struct {
	model     *onnx.Model
	functions map[string]bool
	list      []Gap
}

func (u *gaps) add(g Gap) {
	if len(u.list) < maxGaps {
		u.list = append(u.list, g)
	}
}

// graph looks at a graph, depth graphs below that of the model.
func (u *gaps) graph(path string, g *onnx.Graph, depth int) {
	for _, t := range g.Initializers {
		if _, err := dtypeOf(t.DataType); err != nil {
			u.add(Gap{Where: path + "initializer " + t.Name, Reason: err.Error()})
		}
	}
	for _, in := range g.Inputs {
		if in.Type == nil || in.Type.Tensor == nil && depth > 0 { // what a node gives may be anything
			continue
		}
		if err := supported(in.Type); err != nil {
			u.add(Gap{Where: path + "input " + in.Name, Reason: err.Error()})
		}
	}
	u.nodes(path, g.Nodes, depth)
}

func (u *gaps) nodes(path string, nodes []*onnx.Node, depth int) {
	for i, n := range nodes {
		where := path + whereOf(i, n)
		op := qualified(n.Domain, n.Op)
		switch {
		case operators[op] != nil || u.functions[op]:
		default:
			u.add(Gap{where, op, !isOperator(n), noOperator(n).Error()})
		}
		for _, a := range n.Attributes {
			if a.Graph != nil && depth < maxDepth {
				u.graph(where+"/"+a.Name+"/", a.Graph, depth+1)
			}
		}
	}
}

// whereOf names a node by its place in its graph, its operator and its name.
func whereOf(i int, n *onnx.Node) string {
	where := fmt.Sprintf("node %d, %s", i, n.Op)
	if n.Name != "" {
		where += " " + n.Name
	}
	return where
}

// qualified returns the name of an operator with its domain, unless that is ONNX's own.
func qualified(domain, op string) string {
	return strings.TrimPrefix(domainOf(domain)+"."+op, ".")
}

// notComputed are ONNX's operators, up to opset 27, that operators does not have. Of those that it has,
// some can be computed in part: nodes say so.
const notComputed = `Adagrad Adam Bernoulli ImageDecoder Momentum Multinomial RandomNormal RandomNormalLike
	RandomUniform RandomUniformLike RegexFullMatch StringConcat StringNormalizer StringSplit`

// isOperator reports whether ONNX has the operator of a node that can't be computed.
func isOperator(n *onnx.Node) bool {
	return domainOf(n.Domain) == "" && slices.Contains(strings.Fields(notComputed), n.Op)
}

// noOperator returns the error about a node whose operator can't be computed.
func noOperator(n *onnx.Node) error {
	op := qualified(n.Domain, n.Op)
	if isOperator(n) {
		return fmt.Errorf("%w %s", ErrOperator, op)
	}
	return fmt.Errorf("%w %s is unknown", ErrOperator, op)
}
