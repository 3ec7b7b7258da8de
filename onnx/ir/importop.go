package ir

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
)

// op returns the op of a node, and its inputs with those that attributes became.
func (im *importer) op(n *onnx.Node, in []*fgraph.Variable, s *scope) (*Op, []*fgraph.Variable, error) {
	domain := n.Domain
	if domain == "ai.onnx" {
		domain = ""
	}
	version, ok := im.source.opsets[domain]
	if !ok {
		return nil, nil, fmt.Errorf("the model has no version of the operators of domain %q", cmp.Or(domain, "ai.onnx"))
	}
	op := Op{Type: n.Op, Domain: domain, Overload: n.Overload, Attributes: slices.Clone(n.Attributes), Outputs: len(n.Outputs)}
	if domain == "" {
		attribute := func(name string) *onnx.Attribute { return op.Attribute(name) }
		op.Legacy = legacy(n.Op, version, attribute, len(n.Outputs))
		modernize(&op, in)
		if n.Op == "If" {
			return im.branches(op, in, s)
		}
		var err error
		if in, err = normalize(&op, version, in); err != nil {
			return nil, nil, err
		}
	}
	for _, a := range op.Attributes {
		for _, g := range append(slices.Clone(a.Graphs), a.Graph) {
			if g == nil {
				continue
			}
			im.source.latest = min(im.source.latest, im.source.opsets[""]) // what is in it stays as it is
			for _, name := range FreeNames(g) {
				if v := s.find(name); v != nil && !slices.Contains(op.Captures, name) {
					op.Captures = append(op.Captures, name)
					in = append(in, v)
				}
			}
		}
	}
	return im.source.Operators.newOp(op), in, nil
}

// branches imports both branches of an If into the graph.
func (im *importer) branches(op Op, in []*fgraph.Variable, s *scope) (*Op, []*fgraph.Variable, error) {
	if len(in) != 1 {
		return nil, nil, fmt.Errorf("an If has one input, not %d", len(in))
	}
	im.lenient++
	defer func() { im.lenient-- }()
	types := im.types
	defer func() { im.types = types }()
	for _, name := range []string{"then_branch", "else_branch"} {
		a := op.Attribute(name)
		if a == nil || a.Graph == nil {
			return nil, nil, fmt.Errorf("it has no %s", name)
		}
		inner := &scope{outer: s, vars: make(map[string]*fgraph.Variable)}
		im.values(a.Graph)
		im.graph(a.Graph, inner)
		if len(a.Graph.Outputs) != op.Outputs {
			return nil, nil, fmt.Errorf("its %s has %d outputs, and the node %d", name, len(a.Graph.Outputs), op.Outputs)
		}
		for _, out := range a.Graph.Outputs {
			v := inner.find(out.Name)
			if v == nil {
				return nil, nil, fmt.Errorf("nothing computes the output %s of its %s", out.Name, name)
			}
			in = append(in, v)
		}
	}
	op.Attributes = slices.DeleteFunc(slices.Clone(op.Attributes), func(a *onnx.Attribute) bool { return a.Graph != nil })
	return im.source.Operators.newOp(op), in, nil
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
		x = &Value{Sparse: s, dir: im.Dir}
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

// FreeNames returns the names that a graph uses and does not define, in order.
func FreeNames(g *onnx.Graph) []string {
	defined := make(map[string]bool)
	for _, v := range g.Inputs {
		defined[v.Name] = true
	}
	for _, t := range g.Initializers {
		defined[t.Name] = true
	}
	for _, t := range g.SparseInitializers {
		if t.Values != nil {
			defined[t.Values.Name] = true
		}
	}
	var free []string
	use := func(name string) {
		if name != "" && !defined[name] && !slices.Contains(free, name) {
			free = append(free, name)
		}
	}
	for _, n := range g.Nodes {
		for _, name := range n.Inputs {
			use(name)
		}
		for _, a := range n.Attributes {
			for _, sub := range append(slices.Clone(a.Graphs), a.Graph) {
				if sub != nil {
					for _, name := range FreeNames(sub) {
						use(name)
					}
				}
			}
		}
		for _, name := range n.Outputs {
			defined[name] = true
		}
	}
	for _, out := range g.Outputs {
		use(out.Name)
	}
	return free
}
