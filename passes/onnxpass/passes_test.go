package onnxpass_test

import (
	"testing"

	"github.com/nnopt/nnopt/passes/onnxpass"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/rewrite/rewritetest"
)

// named returns rules by name.
func named(t testing.TB, names ...string) (list []rewrite.NodeRewriter) {
	t.Helper()
	for _, name := range names {
		for _, l := range onnxpass.Rules() {
			if rewrite.Outline(l.Rule).Name == name {
				list = append(list, l.Rule)
			}
		}
	}
	if len(list) != len(names) {
		t.Fatalf("not all rules exist: %v", names)
	}
	return list
}

// TestInferTypes has a shape that is known only when an If has gone.
func TestInferTypes(t *testing.T) {
	const text = "x: float[2,3]; z: float[4]; d = float[] 1; e = float[] 2; c = Less(d, e); y = If(c, x, z); w = Relu(y); v = Neg(w); s = Shape(v); s"
	q := &rewrite.Equilibrium{Name: "test", Rules: named(t, "constant_folding", "if_with_const_cond", "shape_folding")}
	rewritetest.Reaches(t, q, parseGraph(t, text), "[Shape(Neg(Relu(x)))]")
	q.Cleanup = []rewrite.Member{{Name: "infer_types", Rewriter: onnxpass.InferTypes()}}
	g := parseGraph(t, text)
	rewritetest.Reaches(t, q, g, "[[2,3]]")
	sameValues(t, parseGraph(t, text), g)
}

// TestMergeEqualSizes merges sizes that are computed in different ways, unless the first of them is
// computed only in a branch of an If.
func TestMergeEqualSizes(t *testing.T) {
	text := "x: float[n,m]; y = Transpose(x); s = Shape(x); t = Shape{start=1}(y); u = Shape{end=1}(x); v = Concat{axis=0}(t, u); w = Concat{axis=0}(s, t, u, v); w"
	g := parseGraph(t, text)
	rewritetest.Reaches(t, onnxpass.MergeEqualSizes(), g, "[Concat{axis=0}(Shape(x), *1 -> Shape{start=1}(Transpose(x)), *1, Concat{axis=0}(*1, *1))]")
	sameValues(t, parseGraph(t, text), g)
	rewritetest.Settled(t, onnxpass.MergeEqualSizes(), parseGraph(t,
		"x: float[n,3]; c: bool[]; k = int64[2] [1,2]; y = Relu(x); s = Shape(y); a = If(c, s, k); b = Shape(x); a, b"))
}
