package models

import (
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/passes/onnxpass"
)

// TestHalfFloatsMove: half floats that are multiplied in another order differ by as much as rounding of each product
// allows, and those that something else is computed of by more.
func TestHalfFloatsMove(t *testing.T) {
	for elem, by := range map[string]string{"float16": "1e-03", "bfloat16": "8e-03"} {
		bits := strings.NewReplacer("$", elem, "0.3", "13517", "0.7", "14746", "0.25", "13312", "items", "[15488,15616]")
		if elem == "bfloat16" {
			bits = strings.NewReplacer("$", elem, "0.3", "16026", "0.7", "16179", "0.25", "16000", "items", "[16288,16320]")
		}
		// Without an input that could move, constants do.
		for in, what := range map[string]string{"x: $[64]": "inputs move", "i: int64[64]; t = $[2] items; x = Gather(t, i)": "constants move"} {
			graph := func(text string) *fgraph.FunctionGraph {
				g, err := onnxpass.ParseGraph(bits.Replace(in+"; k = $[] 0.3; l = $[] 0.7; m = $[] 0.25; "+text), ir.Standard())
				if err != nil {
					t.Fatal(err)
				}
				return g
			}
			w := world{options: Options{}.lowering("", nil)}
			g := graph("a = Mul(x, k); y = Mul(a, l); y")
			inputs, _, err := draw(g, 1, [2]int{1, 4}, nil)
			if err != nil {
				t.Fatal(err)
			}
			evaluate := func(g *fgraph.FunctionGraph) []any {
				out, err := w.Evaluate(t.Context(), g, inputs)
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			right, other, wrong := evaluate(g), evaluate(graph("a = Mul(x, l); y = Mul(a, k); y")), evaluate(graph("y = Mul(x, m); y"))
			if w.Differ(other, right) == "" {
				t.Errorf("%s: products in another order are the same, which tests nothing", elem)
			}
			differ, accepted, err := w.Judge(g, inputs, right)(t.Context(), other)
			if err != nil || differ != "" || !strings.Contains(accepted, what) || !strings.Contains(accepted, " by "+by+" (largest of ") {
				t.Errorf("%s: %q, %q, %v", elem, differ, accepted, err)
			}
			if differ, accepted, err := w.Judge(g, inputs, right)(t.Context(), wrong); err != nil || differ == "" {
				t.Errorf("%s: %q, %v of what is wrong", elem, accepted, err)
			}
		}
	}
}
