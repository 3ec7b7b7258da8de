package models

import (
	"math"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/passes/onnxpass"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
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

// TestSpent: of a function of a verb that runs a model, nothing but what was packed has the weights of a convolution.
func TestSpent(t *testing.T) {
	g, err := onnxpass.ParseGraph("x: float[1,16,4,4]; w = float[32,16,1,1] [2"+strings.Repeat(",2", 511)+"]; y = Conv(x, w); y", ir.Standard())
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.Export(g)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]*array.Array{"x": array.Full(array.Float32, 1, 1, 16, 4, 4)}
	f, err := lowered(t.Context(), m, session.Options{Optimizer: passtest.ForModels(t, "fast_run")}, in)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if out, err := f.Call(t.Context(), in); err != nil || out[f.Outputs()[0].Name].Float(0) != 32 {
			t.Fatal(out, err)
		}
	}
	n := 0
	for v := range f.Graph().Variables() {
		if a := tensor.ConstantOf(v); a != nil && a.Len() == 16*32 {
			if n++; a.String() != array.Unmade(array.Float32, 1).String() {
				t.Errorf("%v is there", v)
			}
		}
	}
	if n != 1 {
		t.Errorf("%d constants", n)
	}
}
