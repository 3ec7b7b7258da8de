package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/onnx"
)

// model returns relu(Swish(|x|; 2)) + x*sigmoid(x).
func model() *onnx.Model {
	n := int64(3)
	info := func(name string) *onnx.ValueInfo {
		return &onnx.ValueInfo{Name: name, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float,
			Shape: &onnx.Shape{Dims: []*onnx.Dim{{Param: "n"}, {Value: &n}}}}}}
	}
	node := func(domain, op, out string, in ...string) *onnx.Node {
		return &onnx.Node{Domain: domain, Op: op, Name: "make_" + out, Inputs: in, Outputs: []string{out}}
	}
	own := node(domain, "Swish", "s", "a")
	own.Attributes = []*onnx.Attribute{{Name: "beta", Type: onnx.AttributeFloat, Float: 2}}
	return &onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: 17}, {Domain: domain, Version: 1}}, Graph: &onnx.Graph{
		Name: "example", Inputs: []*onnx.ValueInfo{info("x")}, Outputs: []*onnx.ValueInfo{info("y")},
		Nodes: []*onnx.Node{
			node("", "Abs", "a", "x"), own, node("", "Relu", "r", "s"),
			node("", "Sigmoid", "g", "x"), node("", "Mul", "p", "x", "g"), node("", "Add", "y", "r", "p"),
		},
	}}
}

// TestVerbs runs verbs on a model with the operator.
func TestVerbs(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := model().WriteFile(t.Context(), "model.onnx"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("own.rules", []byte(rules), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"info", "model.onnx"}, []string{"com.example.Swish"}},
		{[]string{"graph", "--query=none", "model.onnx"}, []string{"com.example.Swish{beta=2.0}(%a)", "float[n,3]"}},
		{[]string{"eval", "--shape=x=1x3", "--set=x=1", "model.onnx"}, []string{"y: float[1, 3] 1.61"}},
		{[]string{"opt", "--output=out.onnx", "model.onnx"}, []string{"nodes, without constants: 4, before 6", "1 by simplify_nodes/fuse_swish", "1 by simplify_nodes/drop_relu_of_swish", "both models compute the same"}},
		{[]string{"eval", "--shape=x=1x3", "--set=x=1", "out.onnx"}, []string{"y: float[1, 3] 1.61"}},
		{[]string{"opt", "--query=none", "--trace=all", "--rule=(Mul x (Sigmoid x)) => (com.example.Swish x)", "model.onnx"}, []string{"Mul(x, Sigmoid(x)) -> com.example.Swish(x)"}},
		{[]string{"opt", "--why-not=fuse_swish", "--query=+fuse_swish", "out.onnx"}, []string{"why not"}},
		{[]string{"rule", "check", "--file=own.rules"}, []string{"2 of 2 rules are what their tags promise"}},
		{[]string{"rule", "check", "(Relu (com.example.Swish x)) => (com.example.Swish x)"}, []string{"wrong"}},
	} {
		var stdout, stderr bytes.Buffer
		program().Run(context.Background(), c.args, strings.NewReader(""), &stdout, &stderr)
		got := stdout.String() + stderr.String()
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%v: %q is missing in\n%s", c.args, want, got)
			}
		}
	}
}
