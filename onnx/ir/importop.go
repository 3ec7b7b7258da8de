package ir

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
)

// op returns the op of a node, and its inputs with those that attributes became, results of branches,
// and what bodies capture.
func (im *importer) op(origin int, n *onnx.Node, in []*fgraph.Variable, s *scope) (*Op, []*fgraph.Variable, error) {
	domain := domainOf(n.Domain)
	version, ok := s.opsets[domain]
	if !ok && !s.lenient {
		return nil, nil, fmt.Errorf("the model has no version of the operators of domain %q", cmp.Or(domain, "ai.onnx"))
	}
	op := Op{Type: n.Op, Domain: domain, overload: n.Overload, Outputs: len(n.Outputs)}
	for _, a := range n.Attributes {
		if a.Graph == nil && len(a.Graphs) == 0 {
			op.Attributes = append(op.Attributes, a)
		}
	}
	if domain == blocked && n.Op == "Conv" {
		if im.block == 0 {
			im.block, _ = blockOf(im.source.Model, im.Dir)
		}
		op.Attributes = append(op.without(channelBlock), Int(channelBlock, im.block))
	}
	if domain == "" {
		im.source.contributed = im.source.contributed || n.Op == contributed && version < Since(n.Op)
		op.Legacy = legacy(n.Op, version, op.Attribute, len(n.Outputs))
		modernize(&op, in)
		setDefaults(&op, version, in)
		if n.Op == "If" {
			return im.branches(origin, op, n, in, s)
		}
		var err error
		if in, err = normalize(&op, in); err != nil {
			return nil, nil, err
		}
	}
	in = slices.Clip(in)
	var captured []capturing
	for _, a := range n.Attributes {
		for k, g := range a.Subgraphs() {
			b, values, err := im.body(a.Name, g, in, op, s)
			if err != nil {
				return nil, nil, err
			}
			b.listed = a.Graph == nil || k > 0
			captured = append(captured, capturing{b, values})
		}
	}
	// Captures are in the order of the bodies, which NewOp sorts.
	slices.SortStableFunc(captured, func(a, b capturing) int { return cmp.Compare(a.Name, b.Name) })
	for _, c := range captured {
		op.Bodies = append(op.Bodies, c.Body)
		in = append(in, c.values...)
	}
	return im.shared(op), in, nil
}

// shared returns the op for all nodes that compute the same: a model has few different ones.
func (im *importer) shared(op Op) *Op {
	// The text of an op does not tell its bodies from others.
	if im.Operators.complete(&op); len(op.Bodies) > 0 {
		return op.completed()
	}
	text := op.format()
	if im.ops[text] == nil {
		im.ops[text] = op.completed()
	}
	return im.ops[text]
}

// A capturing body is one with the values that it captures.
type capturing struct {
	*Body
	values []*fgraph.Variable
}

// branches imports both branches of an If into the graph that the If is in.
func (im *importer) branches(origin int, op Op, n *onnx.Node, in []*fgraph.Variable, s *scope) (*Op, []*fgraph.Variable, error) {
	if len(in) != 1 {
		return nil, nil, fmt.Errorf("an If has one input, not %d", len(in))
	}
	where := im.source.nodes[origin].where()
	for k, name := range []string{"then_branch", "else_branch"} {
		i := slices.IndexFunc(n.Attributes, func(a *onnx.Attribute) bool { return a.Name == name && a.Graph != nil })
		if i < 0 {
			return nil, nil, fmt.Errorf("it has no %s", name)
		}
		g := n.Attributes[i].Graph
		// A branch is no graph of its own. Its nodes go into the graph of the If, where rules see them
		// beside all others; Regions finds later what only a branch needs.
		inner := im.scope(s, s.made, s.frame)
		inner.path, inner.branch, inner.lenient = where+"/"+name+"/", &branchOf{s.branch, origin, k}, true
		values, err := im.results(g, inner)
		if err != nil {
			return nil, nil, fmt.Errorf("its %s: %w", name, err)
		}
		if len(values) != op.Outputs {
			return nil, nil, fmt.Errorf("its %s has %d outputs, and the node %d", name, len(values), op.Outputs)
		}
		in = append(in, values...)
	}
	return im.shared(op), in, nil
}

// results imports a graph in a node, and returns its outputs.
func (im *importer) results(g *onnx.Graph, s *scope) ([]*fgraph.Variable, error) {
	im.graph(g, s)
	values := make([]*fgraph.Variable, len(g.Outputs))
	for i, out := range g.Outputs {
		if values[i] = s.find(out.Name); values[i] == nil {
			if s.hasFailed(out.Name) || im.stopped {
				return nil, errFollows
			}
			return nil, fmt.Errorf("nothing computes its output %s", out.Name)
		}
	}
	return values, nil
}

// body imports a graph in a node as a body, and returns the values that it captures.
func (im *importer) body(name string, g *onnx.Graph, in []*fgraph.Variable, op Op, s *scope) (*Body, []*fgraph.Variable, error) {
	inner := im.scope(s, im.newGraph(), s.frame)
	inner.path, inner.branch, inner.lenient = s.path+op.Type+"/"+name+"/", nil, true
	params := make([]*fgraph.Variable, len(g.Inputs))
	for i, p := range g.Inputs {
		if inner.vars[p.Name] != nil {
			return nil, nil, fmt.Errorf("two inputs of its %s are called %s", name, p.Name)
		}
		t := im.declaredType(p.Type)
		if t.IsUnknown() {
			t = paramType(op, i, in)
		}
		params[i] = fgraph.NewInput(symbolized(im.source.symbols, t, p.Name), p.Name)
		inner.vars[p.Name] = params[i]
	}
	outputs, err := im.results(g, inner)
	if err != nil {
		return nil, nil, fmt.Errorf("its %s: %w", name, err)
	}
	inputs := slices.Clone(params)
	for _, v := range inner.made.captured {
		inputs = append(inputs, inner.made.inside[v])
	}
	graph, err := fgraph.NewInOrder(inputs, outputs, im.live(inner.made, outputs), im.source.For())
	if err != nil {
		return nil, nil, fmt.Errorf("its %s: %w", name, err)
	}
	b := &Body{Name: name, Graph: graph, Params: len(params), file: g}
	for _, out := range g.Outputs {
		b.types = append(b.types, inner.declared(out.Name)) // without sizes, if some were given
	}
	return b, inner.made.captured, nil
}

// paramType returns the type of a parameter of a body that declares none, as far as the node says it.
func paramType(op Op, i int, in []*fgraph.Variable) Type {
	switch {
	case op.Type != "Loop" || op.Domain != "":
	case i == 0:
		return NewType(onnx.Int64)
	case i == 1:
		return NewType(onnx.Bool)
	case i < len(in) && TypeOf(in[i]).IsTensor(): // which rounds may give another shape
		return AnyShape(TypeOf(in[i]).Elem())
	}
	return Type{}
}

// constant returns what a Constant node has.
func (im *importer) constant(n *onnx.Node) (*fgraph.Variable, error) {
	if len(n.Attributes) != 1 {
		return nil, fmt.Errorf("a Constant has one attribute, not %d", len(n.Attributes))
	}
	t, err := constantTensor(n.Attributes[0])
	if err != nil {
		return nil, err
	}
	x := NewValue(t, im.Dir)
	if s := n.Attributes[0].SparseTensor; s != nil {
		x = &Value{sparse: s, dir: im.Dir}
	}
	im.source.constants[x] = n
	return Constant(x, n.Outputs[0]), nil
}

func constantTensor(a *onnx.Attribute) (*onnx.Tensor, error) {
	size := func(n int) []int64 { return []int64{int64(n)} }
	switch a.Name {
	case "value":
		if a.Tensor != nil {
			return a.Tensor, nil
		}
	case "sparse_value":
		if a.SparseTensor != nil {
			return nil, nil
		}
	case "value_int":
		return &onnx.Tensor{DataType: onnx.Int64, Int64s: []int64{a.Int}}, nil
	case "value_ints":
		return &onnx.Tensor{DataType: onnx.Int64, Dims: size(len(a.Ints)), Int64s: a.Ints}, nil
	case "value_float":
		return &onnx.Tensor{DataType: onnx.Float, Floats: []float32{a.Float}}, nil
	case "value_floats":
		return &onnx.Tensor{DataType: onnx.Float, Dims: size(len(a.Floats)), Floats: a.Floats}, nil
	case "value_string":
		return &onnx.Tensor{DataType: onnx.String, Strings: [][]byte{a.String}}, nil
	case "value_strings":
		return &onnx.Tensor{DataType: onnx.String, Dims: size(len(a.Strings)), Strings: a.Strings}, nil
	}
	return nil, fmt.Errorf("a Constant whose attribute %s has no value", a.Name)
}
