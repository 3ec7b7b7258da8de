package main

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/onnx"
)

// tiny writes an encoder whose vectors of tokens are rows of a table. Its axes are animals, programs and bread.
func tiny(t *testing.T) string {
	table := []float32{9, 9, 9 /* [PAD], which must not count */, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		1, 0, 0, 0, 0, 0, 0.8, 0, 0.6, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1}
	value := func(name string, elem onnx.DataType, dims ...string) *onnx.ValueInfo {
		s := new(onnx.Shape)
		for _, d := range dims {
			s.Dims = append(s.Dims, &onnx.Dim{Param: d})
		}
		return &onnx.ValueInfo{Name: name, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: elem, Shape: s}}}
	}
	m := &onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: 17}}, Graph: &onnx.Graph{
		Name:         "encoder",
		Inputs:       []*onnx.ValueInfo{value("input_ids", onnx.Int64, "batch", "tokens"), value("attention_mask", onnx.Int64, "batch", "tokens"), value("token_type_ids", onnx.Int64, "batch", "tokens")},
		Outputs:      []*onnx.ValueInfo{value("last_hidden_state", onnx.Float, "batch", "tokens", "size")},
		Initializers: []*onnx.Tensor{{Name: "table", DataType: onnx.Float, Dims: []int64{11, 3}, Floats: table}},
		Nodes:        []*onnx.Node{{Op: "Gather", Inputs: []string{"table", "input_ids"}, Outputs: []string{"last_hidden_state"}}},
	}}
	name := filepath.Join(t.TempDir(), "model.onnx")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.Write(f), f.Close()); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestSearch: words, their pieces, capitals and accents are found, padding changes nothing, and equal ones keep their
// order.
func TestSearch(t *testing.T) {
	for _, batch := range []int{1, 2, 16} {
		e, err := newEncoder(tiny(t), "testdata/tokenizer.json", batch, 256)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		lines := "Undo commit\n\ncats\ndog\nbake bread\nbread bread bread bread bread\n"
		if err := search(t.Context(), &out, strings.NewReader(lines), e, []string{"undo", "Cát", "dog"}, 2); err != nil {
			t.Fatal(err)
		}
		want := "undo\n  1.000  Undo commit\n  0.000  cats\nCát\n  1.000  cats\n  0.800  dog\ndog\n  1.000  dog\n  0.800  cats\n"
		if out.String() != want {
			t.Errorf("batches of %d: got\n%swant\n%s", batch, &out, want)
		}
	}
}

// TestTokens: the tokenizer gives the tokens that BERT's gives, and its file's padding and truncation are not used.
func TestTokens(t *testing.T) {
	e, err := newEncoder(tiny(t), "testdata/tokenizer.json", 16, 5)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]int{"cats": {2, 4, 5, 3}, "": {2, 3}, "catsdog CATS!": {2, 1, 4, 5, 3}, "dog dog dog dog dog": {2, 6, 6, 6, 3}} {
		if got, err := e.words.EncodeSingle(text, true); err != nil || !slices.Equal(got.Ids, want) {
			t.Errorf("%q: %v, %v, want %v", text, got.Ids, err, want)
		}
	}
	v, err := e.encode(t.Context(), []string{"dog cat"})
	if err != nil || math.Abs(float64(v[0].Data[0])-0.9486833) > 1e-6 {
		t.Errorf("%v, %v", v, err)
	}
}
