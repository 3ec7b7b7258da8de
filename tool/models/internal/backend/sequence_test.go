package backend_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tool/models/internal/backend"
)

// TestSequence: items of a sequence are compared one by one, and there must not be more of them.
func TestSequence(t *testing.T) {
	sequence := func(values ...float32) []byte {
		var data []byte
		for _, v := range values {
			var b bytes.Buffer
			if err := floats(t, "", v).Write(&b); err != nil {
				t.Fatal(err)
			}
			data = protowire.AppendBytes(protowire.AppendTag(data, 3, protowire.BytesType), b.Bytes())
		}
		return data
	}
	dir := write(t, &onnx.Node{Op: "Identity", Inputs: []string{"x"}, Outputs: []string{"y"}}, onnx.Float, map[string]*onnx.Tensor{"output_0.pb": floats(t, "y", 1)})
	m, err := onnx.ReadFile(filepath.Join(dir, "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	list := &onnx.Type{Sequence: &onnx.ElementType{Elem: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float}}}}
	m.Graph.Inputs[0].Type, m.Graph.Outputs[0].Type = list, list
	if err := m.WriteFile(t.Context(), filepath.Join(dir, "model.onnx")); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]byte{
		"":                               sequence(1, 2),
		"output y[1]: differs: there sh": sequence(1),
		"output y[1]: differs: el":       sequence(1, 3),
		"output y[2]: ":                  sequence(1, 2, 3),
		"not a case of ONNX":             {0x1a, 0x7f},
	} {
		for name, data := range map[string][]byte{"input_0.pb": sequence(1, 2), "output_0.pb": want} {
			if err := os.WriteFile(filepath.Join(dir, "test_data_set_0", name), data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if r := run(t, dir); r.OK != (text == "") || !strings.Contains(r.Error, text) {
			t.Errorf("%q: %+v", text, r)
		} else if strings.Contains(text, "differs") && !errors.Is(r.Err, backend.ErrDiffers) {
			t.Errorf("%v", r.Err)
		}
	}
}
