package standard_test

import (
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// oldONNX writes a model of version 3 of the format, whose initializers are inputs: weights, and a shape.
func oldONNX(t *testing.T, name string) {
	t.Helper()
	size := func(n int64) *onnx.Dim { return &onnx.Dim{Value: &n} }
	m := &onnx.Model{IRVersion: 3, Opsets: []*onnx.Opset{{Version: 8}}, Graph: &onnx.Graph{
		Name: "old",
		Nodes: []*onnx.Node{
			{Op: "Conv", Inputs: []string{"x", "w"}, Outputs: []string{"c"}},
			{Op: "Mul", Inputs: []string{"c", "k"}, Outputs: []string{"m"}},
			{Op: "Reshape", Inputs: []string{"m", "shape"}, Outputs: []string{"y"}},
		},
		Inputs:  []*onnx.ValueInfo{{Name: "x", Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float, Shape: &onnx.Shape{Dims: []*onnx.Dim{size(1), size(2), size(3), size(4)}}}}}},
		Outputs: []*onnx.ValueInfo{{Name: "y", Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float, Shape: &onnx.Shape{Dims: []*onnx.Dim{size(3), size(8)}}}}}},
	}}
	for _, d := range []struct {
		name string
		a    *array.Array
		elem onnx.DataType
	}{
		{"w", array.Of([]float32{1, 2, 3, 4}, 2, 2, 1, 1), onnx.Float}, {"k", array.Of([]float32{2, 3}, 2, 1, 1), onnx.Float},
		{"shape", array.Of([]int64{3, -1}, 2), onnx.Int64},
	} {
		x, err := lower.TensorOf(d.name, d.a, d.elem)
		if err != nil {
			t.Fatal(err)
		}
		s := new(onnx.Shape)
		for _, n := range x.Dims {
			s.Dims = append(s.Dims, size(n))
		}
		m.Graph.Initializers = append(m.Graph.Initializers, x)
		m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: d.name, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: d.elem, Shape: s}}})
	}
	if err := m.WriteFile(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

// TestDefaults: initializers that are inputs are the values with which a model is checked. They stay inputs, and are
// constants if the flag says so.
func TestDefaults(t *testing.T) {
	longtest.Only(t)
	t.Chdir(t.TempDir())
	oldONNX(t, "old.onnx")
	const verified = "\nverified on random inputs: both models compute the same\n"
	out := nnopt(t, "opt", "--output=same.onnx", "old.onnx").ok(t).stdout
	contains(t, out, "nodes, without constants: 3, before 3\n", "\ndefaults: 3 inputs are initializers, too, which whoever runs the model may replace; --fix-defaults makes constants of them, which more rules can use\n", verified)
	out = nnopt(t, "opt", "--fix-defaults", "--output=fixed.onnx", "old.onnx").ok(t).stdout
	contains(t, out, "nodes, without constants: 2, before 3\n", "by simplify_nodes/fuse_mul_into_conv", "\ndefaults: 3 inputs that are initializers have become constants\n", verified)
	contains(t, nnopt(t, "opt", "--fix-defaults", "--json", "--output=fixed.onnx", "old.onnx").ok(t).stdout, `"defaults":3`)
	contains(t, nnopt(t, "info", "same.onnx").ok(t).stdout, "ir-version: 3\n", "input x: float[1, 2, 3, 4]\ninputs with a default: w, k, shape\n")
	info := nnopt(t, "info", "fixed.onnx").ok(t).stdout
	contains(t, info, "ir-version: 4\n", "input x: float[1, 2, 3, 4]\noutput")
	want := nnopt(t, "eval", "old.onnx").ok(t).stdout
	for _, args := range [][]string{{"same.onnx"}, {"fixed.onnx"}, {"--fix-defaults", "old.onnx"}} {
		if got := nnopt(t, append([]string{"eval"}, args...)...).ok(t).stdout; got != want {
			t.Errorf("%v: %s, want %s", args, got, want)
		}
	}
	nnopt(t, "eval", "--fix-defaults", "--set=k=1", "old.onnx").fails(t, statusUsage, "the model has no input k; it has x")
	// Other verbs know the flag, and reproducers keep it.
	graph := nnopt(t, "graph", "--fix-defaults", "old.onnx").ok(t).stdout
	contains(t, graph, "onnx-defaults: fixed\n", "graph {\n    input %x : float[1,2,3,4]\n    %")
	contains(t, nnopt(t, "profile", "--fix-defaults", "old.onnx").ok(t).stdout, "fuse_mul_into_conv")
	contains(t, nnopt(t, "bench", "onnx", "--fix-defaults", "--json", "--model=old.onnx").ok(t).stdout, `"run_seconds":`)
	nnopt(t, "opt", "--fix-defaults", "--rule=(Conv{a} x w) => (Neg (Conv{a} x w))", "old.onnx").fails(t, statusFault, "a reproducer is in nnopt-failure-1.graph")
	nnopt(t, "reproduce", "nnopt-failure-1.graph").fails(t, statusFault, "it still fails")
	// A wrong rewrite is found with defaults, too.
	nnopt(t, "opt", "--rule=(Reshape{a} (Mul x k) s) => (Reshape{a} x s)", "--output=wrong.onnx", "old.onnx").fails(t, statusFault, "computes something else")
}
