package lower_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
)

// TestUnsupported: what can't be computed is listed by node, also in subgraphs and functions, and
// operators that ONNX does not have are told apart.
func TestUnsupported(t *testing.T) {
	branch := &onnx.Graph{Nodes: []*onnx.Node{{Op: "ImageDecoder", Name: "inner"}}}
	m := model([]string{"x"}, nil,
		&onnx.Node{Op: "Relu"},
		&onnx.Node{Op: "Frobnicate", Name: "first"},
		&onnx.Node{Op: "If", Attributes: []*onnx.Attribute{{Name: "then_branch", Graph: branch}}},
		&onnx.Node{Op: "Relu", Domain: "com.example"},
		&onnx.Node{Op: "Twice", Domain: "mine"})
	m.Functions = []*onnx.Function{{Domain: "mine", Name: "Twice", Nodes: []*onnx.Node{{Op: "Multinomial"}}}}
	m.Graph.Initializers = []*onnx.Tensor{{Name: "w", DataType: onnx.String}}
	m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: "list", Type: &onnx.Type{Sequence: &onnx.ElementType{}}})
	var got []string
	for _, g := range lower.Unsupported(m, nil) {
		got = append(got, fmt.Sprint(g, " ", g.Unknown))
	}
	want := []string{
		"initializer w: not supported: elements of type string false",
		"input list: not supported: a value of type seq(unknown) false",
		"node 1, Frobnicate first: not supported: operator Frobnicate is unknown true",
		"node 2, If/then_branch/node 0, ImageDecoder inner: not supported: operator ImageDecoder false",
		"node 3, Relu: not supported: operator com.example.Relu is unknown true",
		"function Twice/node 0, Multinomial: not supported: operator Multinomial false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}
