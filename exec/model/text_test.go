package model_test

import (
	"slices"
	"testing"

	"github.com/nnopt/nnopt/exec/model"
	"github.com/nnopt/nnopt/onnx"
)

// TestStrings: strings are elements like others, but for batches.
func TestStrings(t *testing.T) {
	m := opened(t, made([]*onnx.ValueInfo{value("s", onnx.String, "n", 2)}, []*onnx.ValueInfo{{Name: "t"}}, node("Identity", "s", "t")), model.Options{})
	out, err := m.Run(t.Context(), model.Inputs{"s": [][]string{{"a", "b"}, {"c", ""}}})
	if err != nil || !slices.Equal(out["t"].Strings(), []string{"a", "b", "c", ""}) || m.Inputs()[0].String() != "string[n,2]" {
		t.Errorf("%v, %v, %v", out, err, m.Inputs())
	}
	if _, err := model.Slice[float32](out["t"]); err == nil {
		t.Error("strings are floats")
	}
	if _, err := m.NewBatcher(model.BatcherOptions{}); err == nil {
		t.Error("a batch of strings")
	}
}
