package onnxpass

import (
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/rewrite"
)

// invariant are operators whose nodes may be computed although a loop has no rounds: whatever the values are,
// they compute something of the sizes that their inputs have.
var invariant = strings.Fields(`Abs Acos Acosh Add And Asin Asinh Atan Atanh Cast Ceil Cos Cosh Elu Equal Erf Exp Floor Greater HardSigmoid Identity
	LeakyRelu Less Log MatMul Mul Neg Not Or Reciprocal Relu Selu Shape Sigmoid Sign Sin Sinh Size Softplus Softsign Sqrt Sub Tan Tanh
	ThresholdedRelu Transpose Xor`)

// moveOutOfLoop computes in front of a loop what is the same in all rounds. What the nodes of constants alone
// become is folded there.
func moveOutOfLoop(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	op := a.Op().(*ir.Op)
	if op.Domain != "" || len(op.Bodies) == 0 {
		return c.Miss("it is no loop"), nil
	}
	inputs, captured := op.Split(a.Inputs())
	bodies, moved := make([]*ir.Body, len(op.Bodies)), 0
	for i, b := range op.Bodies {
		h := &hoisting{operators: ir.SourceOf(c.Graph()).Operators, body: b, captured: captured[:b.Captures()], outside: make(map[*fgraph.Variable]*fgraph.Variable)}
		captured = captured[b.Captures():]
		g, now, err := h.hoist()
		if err != nil {
			return rewrite.Result{}, err
		}
		bodies[i], inputs = b.With(g), append(inputs, now...)
		moved += h.moved
	}
	if moved == 0 {
		return c.Miss("all of its nodes depend on the round"), nil
	}
	b, err := ir.SourceOf(c.Graph()).Operators.Apply(op.WithBodies(bodies...), inputs...)
	if err != nil {
		return c.Miss("%v", err), nil
	}
	return rewrite.Replace(b.Outputs()...), nil
}

// A hoisting moves nodes out of a body.
type hoisting struct {
	operators *ir.Operators
	body      *ir.Body
	captured  []*fgraph.Variable
	outside   map[*fgraph.Variable]*fgraph.Variable // by what is the same in all rounds, what computes it in front of the loop
	moved     int
}

// hoist returns the graph of the body without the nodes that it has moved, and what that captures.
func (h *hoisting) hoist() (*fgraph.FunctionGraph, []*fgraph.Variable, error) {
	params := h.body.Params
	for i, v := range h.body.Graph.Inputs()[params:] {
		h.outside[v] = h.captured[i]
	}
	order, err := h.body.Graph.Toposort()
	if err != nil {
		return nil, nil, err
	}
	var frontier []*fgraph.Variable // moved values that rounds read
	for _, a := range order {
		if h.move(a) {
			frontier = append(frontier, a.Out())
		}
	}
	if h.moved == 0 {
		return h.body.Graph, h.captured, nil
	}
	// The moved values that rounds read become inputs. What computes them is then unused in the body, and
	// with it some of the inputs may be.
	g, m, err := h.body.Copy()
	if err != nil {
		return nil, nil, err
	}
	captured := slices.Clone(h.captured)
	for _, v := range frontier {
		// Only moved nodes read it, and they are not in the body any more.
		if !slices.ContainsFunc(v.Clients(), func(c fgraph.Client) bool { return c.Apply == nil || h.outside[c.Apply.Outputs()[0]] == nil }) {
			continue
		}
		outside := h.outside[v]
		in := fgraph.NewInput(outside.Type(), v.Name())
		if err := g.AddInput(in); err != nil {
			return nil, nil, err
		}
		if err := g.Replace(m.Of(v), in, hoisted); err != nil {
			return nil, nil, err
		}
		captured = append(captured, outside)
	}
	captured, err = ir.DropUnread(g, params, captured, hoisted)
	return g, captured, err
}

// hoisted is the reason of changes in bodies.
var hoisted = fgraph.Reason{Pass: "simplify_nodes", Rule: "move_invariant_out_of_loop"}

// move computes an apply in front of the loop if it is the same in all rounds. An output of the body is
// computed in it.
func (h *hoisting) move(a *fgraph.Apply) bool {
	op := a.Op().(*ir.Op)
	if op.Domain != "" || op.Legacy != 0 || len(a.Outputs()) != 1 || len(a.Inputs()) == 0 || !slices.Contains(invariant, op.Type) ||
		slices.Contains(h.body.Graph.Outputs(), a.Out()) {
		return false
	}
	inputs := make([]*fgraph.Variable, len(a.Inputs()))
	for i, v := range a.Inputs() {
		// A constant belongs to its graph, so the one outside is another.
		if inputs[i] = h.outside[v]; v.IsConstant() {
			inputs[i] = fgraph.NewConstant(v.Type(), v.Data(), v.Name())
		}
		if inputs[i] == nil {
			return false
		}
	}
	b, err := h.operators.Apply(op, inputs...)
	if err != nil {
		return false
	}
	b.SetOrigin(a.Origin())
	b.Out().SetName(a.Out().Name())
	h.outside[a.Out()] = b.Out()
	h.moved++
	return true
}
