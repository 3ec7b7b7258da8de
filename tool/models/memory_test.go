package models

import (
	"math"
	"testing"

	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/passes/onnxpass"
)

// TestLargest: a model whose values would not fit into memory is told before it runs.
func TestLargest(t *testing.T) {
	for text, want := range map[string]int64{
		"x: float[n,3]; y: float[4,5]; a = Add(x, x); b = Concat{axis=0}(y, y); a, b":                                      160,
		"x: float[2]; s = int64[2] [1000000000,1]; y = Expand(x, s); y":                                                    8e9,
		"x: float[2]; s = int64[3] [1000000000000,1000000000000,1]; t = int64[1] [4]; y = Expand(x, s); z = Relu(x); y, z": math.MaxInt64 / 8,
	} {
		g, err := onnxpass.ParseGraph(text, ir.Standard())
		if err != nil {
			t.Fatal(err)
		}
		if n := largest(g); n != want {
			t.Errorf("%s: %d bytes, not %d", text, n, want)
		}
	}
}
