package session_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
)

// TestUnsupported: what can't be computed is listed by node, also in subgraphs and functions, and
// operators that ONNX does not have are told apart.
func TestUnsupported(t *testing.T) {
	branch := func(op, name string) *onnx.Graph {
		return &onnx.Graph{Nodes: []*onnx.Node{{Op: op, Name: name, Inputs: []string{"x"}, Outputs: []string{"b"}}}, Outputs: names("b")}
	}
	m := model([]string{"x"}, []string{"a", "b", "c", "d", "e", "f"},
		node("Relu", "x", "a"),
		&onnx.Node{Op: "Frobnicate", Name: "first", Inputs: []string{"x"}, Outputs: []string{"b"}},
		node("If", "x", "c", &onnx.Attribute{Name: "then_branch", Graph: branch("ImageDecoder", "inner")}, &onnx.Attribute{Name: "else_branch", Graph: branch("Abs", "")}),
		&onnx.Node{Op: "Relu", Domain: "com.example", Inputs: []string{"x"}, Outputs: []string{"d"}},
		&onnx.Node{Op: "Twice", Domain: "mine", Inputs: []string{"x"}, Outputs: []string{"e"}},
		node("Identity", "w", "f"))
	m.Functions = []*onnx.Function{{Domain: "mine", Name: "Twice", Inputs: []string{"x"}, Outputs: []string{"y"}, Nodes: []*onnx.Node{node("Multinomial", "x", "y")}, Opsets: m.Opsets}}
	m.Graph.Initializers = []*onnx.Tensor{{Name: "w", DataType: onnx.Complex64, Dims: []int64{0}}}
	m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: "list", Type: &onnx.Type{Map: &onnx.MapType{Key: onnx.Int64}}})
	gaps, err := session.Unsupported(m, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range gaps {
		got = append(got, fmt.Sprint(g, " ", g.Unknown))
	}
	want := []string{
		"input list: not supported: a value of type opaque[map(int64,unknown)] false",
		"initializer w: not supported: elements of type complex64 false",
		"node 1, Frobnicate first: not supported: operator Frobnicate is unknown true",
		"node 2, If/then_branch/node 0, ImageDecoder inner: not supported: operator ImageDecoder false",
		"node 3, Relu: not supported: operator com.example.Relu is unknown true",
		"node 4, Twice/node 0, Multinomial: not supported: operator Multinomial false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}
