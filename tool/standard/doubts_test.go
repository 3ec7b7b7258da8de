package standard_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/model"
	"github.com/nnopt/nnopt/onnx"
)

// TestDoubts: what a file does not tell though results depend on it is said by info, by verbs that run the model, and by
// the model of a program.
func TestDoubts(t *testing.T) {
	t.Chdir(t.TempDir())
	const blocked = "com.microsoft.nchwc"
	shape := new(onnx.Shape)
	for _, n := range []int64{1, 3, 4, 4} {
		shape.Dims = append(shape.Dims, &onnx.Dim{Value: &n})
	}
	float := func(name string, s *onnx.Shape) []*onnx.ValueInfo {
		return []*onnx.ValueInfo{{Name: name, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float, Shape: s}}}}
	}
	w := &onnx.Tensor{Name: "w", DataType: onnx.Float, Dims: []int64{16, 3, 1, 1}, Floats: slices.Repeat([]float32{1}, 48)}
	keep := &onnx.Attribute{Name: "channels", Type: onnx.AttributeInt, Int: 16}
	m := &onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: 17}, {Domain: blocked, Version: 1}}, Graph: &onnx.Graph{
		Name: "blocks", Inputs: float("x", shape), Outputs: float("z", nil), Initializers: []*onnx.Tensor{w},
		Nodes: []*onnx.Node{
			{Domain: blocked, Op: "Conv", Inputs: []string{"x", "w"}, Outputs: []string{"y"}},
			{Domain: blocked, Op: "ReorderOutput", Inputs: []string{"y"}, Outputs: []string{"z"}, Attributes: []*onnx.Attribute{keep}},
		},
	}}
	for channels, doubt := range map[int64]bool{16: true, 8: false} {
		keep.Int = channels
		if err := m.WriteFile(t.Context(), "blocks.onnx"); err != nil {
			t.Fatal(err)
		}
		said := func(text string) {
			t.Helper()
			if strings.Contains(text, "warning: convolutions of "+blocked+" are taken to have weights in blocks of 16 channels, ") != doubt {
				t.Errorf("%d channels: %q", channels, text)
			}
		}
		said(nnopt(t, "info", "blocks.onnx").ok(t).stdout)
		said(nnopt(t, "eval", "blocks.onnx").ok(t).stderr)
		said(nnopt(t, "opt", "--output=out.onnx", "blocks.onnx").ok(t).stderr)
		opened, err := model.Open("blocks.onnx")
		if err != nil {
			t.Fatal(err)
		}
		if got := opened.Doubts(); (len(got) > 0) != doubt {
			t.Errorf("%d channels: %q", channels, got)
		}
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	}
}
