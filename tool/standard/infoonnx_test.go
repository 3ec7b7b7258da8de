package standard_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/nnopt/nnopt/onnx"
)

// writeONNX writes a small ONNX model.
func writeONNX(ctx context.Context, name string) error {
	m := &onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: 17}}, Graph: &onnx.Graph{
		Nodes:   []*onnx.Node{{Op: "Relu", Inputs: []string{"x"}, Outputs: []string{"y"}}},
		Inputs:  []*onnx.ValueInfo{{Name: "x", Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float}}}},
		Outputs: []*onnx.ValueInfo{{Name: "y"}},
	}}
	return m.WriteFile(ctx, name)
}

// TestInfoONNX describes an ONNX model as text and as JSON, and refuses what is none.
func TestInfoONNX(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "m.onnx")
	if err := writeONNX(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	contains(t, nnopt(t, "info", name).ok(t).stdout, "opset: 17\ninput x: float[]\noutput y: unknown\n", "nodes: 1\n  Relu ")
	contains(t, nnopt(t, "info", "--json", name).ok(t).stdout, `"ops":[{"op":"Relu","nodes":1}]`)
	nnopt(t, "info", "--srand=1", name).fails(t, statusUsage, "--srand")
	nnopt(t, "info", file(t, "text.onnx", "no model")).fails(t, statusFault, "text.onnx", "not a model")
	nnopt(t, "info", filepath.Join(t.TempDir(), "none.onnx")).fails(t, statusFault, "none.onnx")
}
