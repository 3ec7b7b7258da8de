package ir_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
)

// A walk gives the values of a model types, node by node.
type walk struct {
	operators *ir.Operators
	opsets    map[string]int64
	versions  []*onnx.Opset
	applies   []*fgraph.Apply
	// depth is how many branches the walk is in, of which some may never run.
	depth int
	// inputs are the types of inputs that are not those of the model.
	inputs map[string]*fgraph.Variable
}

// types returns the values of a model by name.
func (w *walk) types(m *onnx.Model) (scope map[string]*fgraph.Variable, err error) {
	w.opsets, w.versions = make(map[string]int64), m.Opsets
	for _, o := range m.Opsets {
		if o.Domain == "ai.onnx" {
			o.Domain = ""
		}
		w.opsets[o.Domain] = o.Version
	}
	scope = make(map[string]*fgraph.Variable)
	for _, in := range m.Graph.Inputs {
		if scope[in.Name] = w.inputs[in.Name]; scope[in.Name] == nil {
			scope[in.Name] = fgraph.NewInput(w.named(in), in.Name)
		}
	}
	return scope, w.graph(m.Graph, scope)
}

// named returns the type of an input, with symbols for sizes that have no name.
func (w *walk) named(in *onnx.ValueInfo) ir.Type {
	t := ir.FromProto(in.Type)
	dims, ranked := t.Shape()
	if !ranked {
		return t
	}
	for i, d := range dims {
		if d.IsUnknown() {
			dims[i] = ir.Symbol(fmt.Sprintf("%s.%d", in.Name, i))
		}
	}
	return ir.NewType(t.Elem(), dims...)
}

func (w *walk) graph(g *onnx.Graph, scope map[string]*fgraph.Variable) error {
	for _, t := range g.Initializers {
		scope[t.Name] = ir.Constant(ir.NewValue(t, ""), t.Name)
	}
	for _, n := range g.Nodes {
		out, err := w.node(n, scope)
		if err != nil {
			return fmt.Errorf("%s %s: %w", n.Op, n.Name, err)
		}
		for i, name := range n.Outputs {
			scope[name] = out[i]
		}
	}
	return nil
}

func (w *walk) node(n *onnx.Node, scope map[string]*fgraph.Variable) ([]*fgraph.Variable, error) {
	if n.Op == "Constant" {
		for _, a := range n.Attributes {
			if a.Tensor != nil {
				return []*fgraph.Variable{ir.Constant(ir.NewValue(a.Tensor, ""), "")}, nil
			}
		}
	}
	var in []*fgraph.Variable
	for _, name := range n.Inputs {
		if v := scope[name]; v != nil || name == "" {
			in = append(in, v)
		} else {
			return nil, fmt.Errorf("there is no value %q", name)
		}
	}
	op := ir.Op{Type: n.Op, Domain: n.Domain, Outputs: len(n.Outputs), Attributes: slices.Clone(n.Attributes)}
	if n.Domain == "" || n.Domain == "ai.onnx" {
		in = modern(&op, w.opsets[""], in)
	}
	if n.Op == "If" {
		for _, branch := range []string{"then_branch", "else_branch"} {
			list, err := w.branch(op.Attribute(branch).Graph, scope)
			if err != nil {
				return nil, err
			}
			in = append(in, list...)
		}
		op.Attributes = nil
	}
	a, err := w.operators.Apply(w.withBodies(op), in...)
	if err != nil && w.depth > 0 {
		a, err = fgraph.NewApply(w.operators.NewOp(op), nil, slices.Repeat([]fgraph.Type{ir.Type{}}, max(op.Outputs, 1))...), nil
	}
	if err != nil {
		return nil, err
	}
	w.applies = append(w.applies, a)
	return a.Outputs(), nil
}

// withBodies completes an op. Graphs among its attributes that see nothing around them become bodies.
func (w *walk) withBodies(op ir.Op) *ir.Op {
	for _, a := range op.Attributes {
		if a.Graph == nil {
			continue
		}
		// A node alone has the bodies, whatever its inputs are.
		alone := &onnx.Node{Op: op.Type, Domain: op.Domain, Attributes: []*onnx.Attribute{a}, Outputs: []string{"alone"}}
		m := &onnx.Model{Opsets: w.versions, Graph: &onnx.Graph{Nodes: []*onnx.Node{alone}, Outputs: []*onnx.ValueInfo{{Name: "alone"}}}}
		g, err := ir.Import(m, ir.Options{Operators: w.operators, Lenient: true})
		if err == nil {
			op.Bodies = append(op.Bodies, g.Outputs()[0].Owner().Op().(*ir.Op).Bodies...)
		}
	}
	return w.operators.NewOp(op)
}

// branch returns the results of a graph in a scope.
func (w *walk) branch(g *onnx.Graph, outer map[string]*fgraph.Variable) ([]*fgraph.Variable, error) {
	w.depth++
	defer func() { w.depth-- }()
	scope := maps.Clone(outer)
	if err := w.graph(g, scope); err != nil {
		return nil, err
	}
	var list []*fgraph.Variable
	for _, o := range g.Outputs {
		list = append(list, scope[o.Name])
	}
	return list, nil
}

// modern makes inputs of attributes that became inputs, and notes old meanings.
func modern(op *ir.Op, opset int64, in []*fgraph.Variable) []*fgraph.Variable {
	input := func(k int, name string) {
		i := slices.IndexFunc(op.Attributes, func(a *onnx.Attribute) bool { return a.Name == name })
		if i < 0 {
			return
		}
		a := op.Attributes[i]
		op.Attributes = slices.Delete(slices.Clone(op.Attributes), i, i+1)
		for len(in) <= k {
			in = append(in, nil)
		}
		switch a.Type {
		case onnx.AttributeInts:
			in[k] = ir.Int64s(a.Ints...)
		case onnx.AttributeInt:
			in[k] = ir.Int64s(a.Int)
		case onnx.AttributeFloat:
			in[k] = ir.Constant(ir.NewValue(&onnx.Tensor{DataType: onnx.Float, Floats: []float32{a.Float}}, ""), "")
		case onnx.AttributeFloats:
			in[k] = ir.Constant(ir.NewValue(&onnx.Tensor{DataType: onnx.Float, Dims: []int64{int64(len(a.Floats))}, Floats: a.Floats}, ""), "")
		}
	}
	before := int64(math.MaxInt64)
	switch op.Type {
	case "Squeeze", "Unsqueeze":
		input(1, "axes")
	case "Slice":
		input(1, "starts")
		input(2, "ends")
		input(3, "axes")
	case "Pad":
		input(1, "pads")
		input(2, "value")
	case "Clip":
		input(1, "min")
		input(2, "max")
	case "Split":
		input(1, "split")
	case "TopK":
		input(1, "k")
	case "Upsample":
		input(1, "scales")
	case "Softmax", "LogSoftmax", "Hardmax":
		before = 13
	case "Dropout":
		input(1, "ratio")
		before = 10
	case "Scan":
		before = 9
	case "DFT":
		before = 20
	case "BatchNormalization":
		before = 14
	}
	if strings.HasPrefix(op.Type, "Reduce") {
		input(1, "axes")
	}
	if before != math.MaxInt64 && opset < before {
		op.Legacy = opset
	}
	return in
}
