package ir_test

import (
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
)

// TestBrief: attributes that are messages are said in words, and the graphs among them are listed.
func TestBrief(t *testing.T) {
	carried := info("v", 4)
	count, condition := &onnx.ValueInfo{Name: "i", Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Int64, Shape: new(onnx.Shape)}}},
		&onnx.ValueInfo{Name: "c", Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Bool, Shape: new(onnx.Shape)}}}
	going := *condition
	going.Name = "going"
	body := &onnx.Graph{Name: "body", Inputs: []*onnx.ValueInfo{count, condition, carried}, Outputs: []*onnx.ValueInfo{&going, info("w", 4)},
		Nodes: []*onnx.Node{node("Identity", "c", "going"), node("Add", "v x", "w")}}
	loop := node("Loop", "", "y", graphAttribute("body", body))
	loop.Inputs = []string{"", "p", "x"}
	g := imported(t, model(17, &onnx.Graph{
		Nodes: []*onnx.Node{loop, node("Cast", "y", "z", &onnx.Attribute{Name: "to", Type: onnx.AttributeInt, Int: int64(onnx.Float16)}),
			node("Abs", "z", "out")},
		Inputs:  []*onnx.ValueInfo{info("x", 4), {Name: "p", Type: condition.Type}},
		Outputs: []*onnx.ValueInfo{{Name: "out", Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float16}}}},
	}))
	want := map[string][2]string{"Loop": {"Loop{body=graph of 2 nodes}", "body(i, c, v, x) → going, w\n  going = Identity(c)\n  w = Add(v, x)\n"}, "Cast": {"Cast{to=float16}", ""}, "Abs": {"Abs", ""}}
	order, err := g.Toposort()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range order {
		op, ok := a.Op().(*ir.Op)
		if !ok {
			continue
		}
		if w, known := want[op.Type]; !known || op.Brief() != w[0] || op.Describe() != w[1] {
			t.Errorf("%.60s: %q, %q", op, op.Brief(), op.Describe())
		}
		delete(want, op.Type)
	}
	if len(want) > 0 {
		t.Errorf("not there: %v", want)
	}
}

// TestBodyHashes: ops with equal bodies have one hash, and those with others have others: of a constant, an operator, or an input.
func TestBodyHashes(t *testing.T) {
	loop := func(number float32, op, input string) fgraph.Op {
		body := &onnx.Graph{
			Name: "body", Inputs: []*onnx.ValueInfo{{Name: "i"}, {Name: "c"}, {Name: "v"}}, Outputs: []*onnx.ValueInfo{{Name: "d"}, {Name: "w"}},
			Initializers: []*onnx.Tensor{{Name: "k", DataType: onnx.Float, Floats: []float32{number}}},
			Nodes:        []*onnx.Node{node("Identity", "c", "d"), node("Neg", "v", "u"), node(op, input+" k", "w")},
		}
		g := imported(t, model(17, &onnx.Graph{
			Name: "g", Inputs: []*onnx.ValueInfo{info("x", 3)}, Outputs: []*onnx.ValueInfo{info("y", 3)}, Nodes: []*onnx.Node{node("Loop", "_ _ x", "y", graphAttribute("body", body))},
		}))
		return g.Outputs()[0].Owner().Op()
	}
	first, same := loop(1, "Add", "u"), loop(1, "Add", "u")
	if !fgraph.OpsEqual(first, same) || fgraph.HashOp(first) != fgraph.HashOp(same) {
		t.Error("equal bodies differ")
	}
	for _, other := range []fgraph.Op{loop(2, "Add", "u"), loop(1, "Mul", "u"), loop(1, "Add", "v")} {
		if fgraph.OpsEqual(first, other) || fgraph.HashOp(first) == fgraph.HashOp(other) {
			t.Errorf("%v: other bodies are equal, or have one hash", other)
		}
	}
}
