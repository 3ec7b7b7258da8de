package onnxpass

import (
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/rewrite"
)

// invariant are operators whose nodes may be computed although a loop has no rounds: whatever the values are,
// they compute something of the sizes that their inputs have. Their meaning and their inputs are the same in all
// versions of ONNX from 7 on, since nodes of a loop are as the model has them.
const invariant = `Abs Acos Acosh Add And Asin Asinh Atan Atanh Cast Ceil Cos Cosh Elu Equal Erf Exp Floor Greater HardSigmoid Identity
	LeakyRelu Less Log MatMul Mul Neg Not Or Reciprocal Relu Selu Shape Sigmoid Sign Sin Sinh Size Softplus Softsign Sqrt Sub Tan Tanh
	ThresholdedRelu Transpose Xor`

// oldestSame is the version since which that holds.
const oldestSame = 7

// moveOutOfLoop computes in front of a loop what is the same in all rounds. What the nodes of constants alone
// become is folded there, and captured as a constant.
var moveOutOfLoop = rewrite.Rule{
	Name: "move_invariant_out_of_loop", On: onOps, Depth: 1,
	Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
		op := a.Op().(*ir.Op)
		body := op.Attribute("body")
		if op.Domain != "" || body == nil || body.Graph == nil || len(op.Captures) > len(a.Inputs()) {
			return c.Miss("it is no loop"), nil
		}
		source := ir.SourceOf(c.Graph())
		if source.Opset("") < oldestSame {
			return c.Miss("the operators of version %d are other ones", source.Opset("")), nil
		}
		l := &hoisting{source: source, outside: make(map[string]*fgraph.Variable)}
		known := a.Inputs()[:len(a.Inputs())-len(op.Captures)]
		for i, name := range op.Captures {
			l.outside[name] = a.Inputs()[len(known)+i]
		}
		g, moved := l.hoist(body.Graph)
		if moved == 0 {
			return c.Miss("all of its nodes depend on the round"), nil
		}
		names := ir.FreeNames(g)
		inputs := slices.Clone(known)
		for _, name := range names {
			inputs = append(inputs, l.outside[name])
		}
		changed := *body
		changed.Graph = g
		b, err := source.Operators.Apply(op.WithBody(&changed, names), inputs...)
		if err != nil {
			return c.Miss("%v", err), nil
		}
		return rewrite.Replace(b.Outputs()...), nil
	},
}

// A hoisting moves nodes out of a graph.
type hoisting struct {
	source  *ir.Source
	outside map[string]*fgraph.Variable // what is known in front of the loop, by the name in it
}

// hoist returns the graph without the nodes that it has moved, and their number. Constants of the graph are
// known in front of the loop, too, but stay where rounds need them.
func (l *hoisting) hoist(g *onnx.Graph) (*onnx.Graph, int) {
	constants := make(map[string]*fgraph.Variable)
	for _, t := range g.Initializers {
		constants[t.Name] = ir.Constant(ir.NewValue(t, l.source.Dir), "")
	}
	// Names that are defined in the graph are not those of captures.
	inside := make(map[string]bool)
	for _, v := range g.Inputs {
		inside[v.Name] = true
	}
	wanted := make(map[string]bool)
	for _, v := range g.Outputs {
		wanted[v.Name] = true
	}
	c := *g
	c.Nodes = nil
	moved := 0
	for _, n := range g.Nodes {
		if n.Op == "Constant" && n.Domain == "" && len(n.Attributes) == 1 && n.Attributes[0].Tensor != nil && len(n.Outputs) == 1 {
			constants[n.Outputs[0]] = ir.Constant(ir.NewValue(n.Attributes[0].Tensor, l.source.Dir), "")
		}
		v := l.moved(n, constants, inside)
		if v == nil || wanted[n.Outputs[0]] { // an output of the graph is computed in it
			c.Nodes = append(c.Nodes, n)
			for _, name := range n.Outputs {
				inside[name] = true
			}
			continue
		}
		l.outside[n.Outputs[0]] = v
		moved++
	}
	return &c, moved
}

// moved returns what a node computes in front of the loop, nil if it can't be computed there.
func (l *hoisting) moved(n *onnx.Node, constants map[string]*fgraph.Variable, inside map[string]bool) *fgraph.Variable {
	if n.Domain != "" || len(n.Outputs) != 1 || n.Outputs[0] == "" || len(n.Inputs) == 0 || !slices.Contains(strings.Fields(invariant), n.Op) {
		return nil
	}
	var inputs []*fgraph.Variable
	for _, name := range n.Inputs {
		v := constants[name]
		if v == nil && !inside[name] {
			v = l.outside[name]
		}
		if v == nil {
			return nil
		}
		inputs = append(inputs, v)
	}
	v, err := l.source.Operators.Make(n.Op, n.Attributes, inputs...)
	if err != nil {
		return nil
	}
	v.SetName(n.Outputs[0])
	return v
}
