package onnxpass_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/passes/onnxpass"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/rewrite/rewritetest"
)

// maxGrowth is by how many bytes constants may grow.
const maxGrowth = 60_000

// weights returns the text of a matrix.
func weights(rows, columns int) string {
	var list []string
	for i := range rows * columns {
		list = append(list, fmt.Sprint(i%7-3))
	}
	return fmt.Sprintf("float[%d,%d] [%s]", rows, columns, strings.Join(list, ","))
}

// TestConstantsStaySmall: whatever rules make of constants, all of them together take at most 64 kB more than
// before, and what only one node reads is computed however large it is.
func TestConstantsStaySmall(t *testing.T) {
	doubled := "w = " + weights(100, 100)
	var names []string
	for i := range 40 {
		doubled += fmt.Sprintf("; w%d = Concat{axis=0}(%s, %[2]s)", i, append(names, "w")[max(0, i-1)*min(i, 1)])
		names = append(names, fmt.Sprintf("w%d", i))
	}
	filled := "s = int64[1] [3000]"
	for i := range 20 {
		filled += fmt.Sprintf("; c%d = float[1] [%[1]d]; e%[1]d = Expand(c%[1]d, s)", i)
	}
	tests := []struct {
		name, graph, outputs string
		nodes                int // that are left
	}{
		{"one reader", "x: float[n,200]; w = " + weights(200, 300) + "; t = Transpose(w); u = Transpose(t); y = MatMul(x, u)", "y", 1},
		{"tied embedding", "i: int64[n]; x: float[n,300]; w = " + weights(200, 300) + "; e = Gather(w, i); t = Transpose(w); y = MatMul(x, t)", "e, y", 3},
		{"small and tied", "i: int64[n]; x: float[n,30]; w = " + weights(20, 30) + "; e = Gather(w, i); t = Transpose(w); y = MatMul(x, t)", "e, y", 2},
		{"two products", "x: float[n,200]; y: float[n,200]; w = " + weights(200, 300) + "; p = MatMul(x, w); a = Neg(p); b = MatMul(y, w)", "a, b", 3},
		{"one of four", "x: float[n,100]; y: float[n,100]; z: float[n,100]; v: float[n,100]; w = " + weights(100, 140) +
			"; p = MatMul(x, w); a = Neg(p); q = MatMul(y, w); b = Neg(q); r = MatMul(z, w); c = Neg(r); s = MatMul(v, w); d = Neg(s)", "a, b, c, d", 4},
		{"filled", filled, "e0, e1, e2, e3, e4, e5, e6, e7, e8, e9, e10, e11, e12, e13, e14, e15, e16, e17, e18, e19", 15},
		{"factor of rows", "x: float[n,200]; s = " + weights(1, 200) + "; w = " + weights(200, 300) + "; m = Mul(x, s); y = MatMul(m, w)", "y", 1},
		{"factor and large weights", "x: float[n,520]; s = " + weights(1, 520) + "; w = " + weights(520, 520) + "; m = Mul(x, s); y = MatMul(m, w)", "y", 2},
		{"moved transpose", "x: float[300,200]; w = " + weights(200, 300) + "; t = Transpose(x); s = Add(t, w); y = Transpose(s); z = Neg(w)", "y, z", 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := parseGraph(t, tt.graph+"; "+tt.outputs)
			before := storedBytes(g)
			simplify(t, g)
			if grown := storedBytes(g) - before; grown > maxGrowth {
				t.Errorf("constants take %d bytes more", grown)
			}
			if n := g.NumApplies(); n != tt.nodes {
				t.Errorf("%d nodes are left, not %d: %v", n, tt.nodes, g)
			}
		})
	}
	t.Run("doubled", func(t *testing.T) {
		g := parseGraph(t, doubled+"; w39")
		simplify(t, g)
		if n := storedBytes(g); n > 40_000+maxGrowth {
			t.Errorf("constants take %d bytes", n)
		}
	})
}

// simplify applies all rules, and merges.
func simplify(t *testing.T, g *fgraph.FunctionGraph) {
	q := &rewrite.Equilibrium{Name: "test", Cleanup: []rewrite.Member{{Name: "merge", Rewriter: new(rewrite.Merge)}}}
	for _, l := range onnxpass.Rules() {
		q.Rules = append(q.Rules, l.Rule)
	}
	rewritetest.Run(t, q, g)
}

// storedBytes returns the bytes of the constants of a graph without small ones, each of which takes the place of a node.
func storedBytes(g *fgraph.FunctionGraph) (n int) {
	for v := range g.Variables() {
		if x := ir.ValueOf(v); x != nil {
			raw, _ := x.Bytes()
			n += max(0, len(raw)-16)
		}
	}
	return n
}
