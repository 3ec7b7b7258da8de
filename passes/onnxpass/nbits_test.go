package onnxpass_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/passes/onnxpass"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/rewrite/rewritetest"
)

// withWeights parses a graph, and makes a constant of its input w.
func withWeights(t *testing.T, text string, weight func(i int) float32) *fgraph.FunctionGraph {
	t.Helper()
	g := parseGraph(t, text)
	w := g.Inputs()[1]
	dims, _ := ir.TypeOf(w).Numbers()
	data := make([]byte, 4*dims[0]*dims[1])
	for i := range len(data) / 4 {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(weight(i)))
	}
	x, err := onnx.NewTensor("w", onnx.Float, dims, data)
	if err == nil {
		err = g.ReplaceAll([]fgraph.Replacement{{Old: w, New: ir.Constant(ir.NewValue(x, ""), "w")}}, fgraph.Reason{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestMatMulNBits: weights that codes have exactly give the same products, also where the last block of a column is not full,
// and columns are rows of the constant.
func TestMatMulNBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 8))
	whole := make([]float32, 70*70)
	for i := range whole {
		whole[i] = float32(rng.IntN(16) - 8)
	}
	// One weight of each block, along both axes, is the least one, so its scale is 1.
	for n := range 70 {
		for _, k := range []int{0, 32, 64} {
			whole[n*70+k], whole[k*70+n] = -8, -8
		}
	}
	for _, text := range []string{
		"x: float[n,70]; w: float[70,70]; y = MatMul(x, w); y",
		"x: float[2,n,70]; w: float[70,70]; y = MatMul(x, w); z = MatMul(y, w); z",
		"x: float[n,70]; w: float[70,70]; c: float[70]; y = Gemm{transB=1}(x, w, c); y",
		"x: float[n,70]; w: float[70,70]; y = Gemm(x, w); y",
	} {
		g, before := withWeights(t, text, func(i int) float32 { return whole[i] }), withWeights(t, text, func(i int) float32 { return whole[i] })
		rewritetest.Run(t, onnxpass.MatMulNBits(), g)
		if strings.Count(g.String(), "com.microsoft.MatMulNBits{K=70, N=70, bits=4, block_size=32}") != g.NumApplies() {
			t.Errorf("%s becomes %v", text, g)
		}
		sameValues(t, before, g)
	}
}

// TestMatMulNBitsStays: what codes would change too much, and what they would not make smaller, stays.
func TestMatMulNBitsStays(t *testing.T) {
	const product = "x: float[n,64]; w: float[64,64]; y = MatMul(x, w); y"
	rng := rand.New(rand.NewPCG(4, 8))
	normal := make([]float32, 64*64)
	for i := range normal {
		normal[i] = float32(rng.NormFloat64())
	}
	with := func(settings ...string) rewrite.GraphRewriter {
		p := onnxpass.MatMulNBits().(rewrite.Configurable)
		for _, s := range settings {
			name, value, _ := strings.Cut(s, "=")
			var err error
			if p, err = p.Configured(name, value); err != nil {
				t.Fatal(err)
			}
		}
		return p.(rewrite.GraphRewriter)
	}
	odd := func(x float64) func(int) float32 {
		return func(i int) float32 {
			if i == 100 {
				return float32(x)
			}
			return normal[i]
		}
	}
	usual := func(i int) float32 { return normal[i] }
	for _, c := range []struct {
		text   string
		weight func(int) float32
		pass   rewrite.GraphRewriter
		fires  bool
	}{
		{product, usual, with(), true},
		{product, usual, with("error=0.05"), false},
		{product, usual, with("bits=8", "error=0.01"), true},
		{product, odd(math.NaN()), with(), false},
		{product, odd(math.Inf(-1)), with(), false},
		{product, odd(math.SmallestNonzeroFloat32), with(), true},
		{product, func(int) float32 { return 0 }, with("error=0"), true},
		{"x: float[n,31]; w: float[31,64]; y = MatMul(x, w); y", usual, with(), false},
		{"x: float[64]; w: float[64,64]; y = MatMul(x, w); y", usual, with(), false},
		{"x: float[n,64]; w: float[64,64]; i: int64[2]; y = MatMul(x, w); z = Gather(w, i); y, z", usual, with(), false},
		{"x: float[n,64]; w: float[64,64]; y = MatMul(x, w); z = Gemm{transB=1}(y, w); z", usual, with(), false},
		{"x: float[n,64]; w: float[64,64]; y = Gemm{alpha=0.5}(x, w); y", usual, with(), false},
		{"x: float[n,64]; w: float[64,64]; c: float[n,64]; y = Gemm(x, w, c); y", usual, with(), false},
	} {
		g := withWeights(t, c.text, c.weight)
		rewritetest.Run(t, c.pass, g)
		if fires := strings.Contains(g.String(), "MatMulNBits"); fires != c.fires {
			t.Errorf("%s fires: %t, %v", c.text, fires, g)
		}
	}
	for _, s := range []string{"bits=3", "error=-1", "error=NaN", "error=x"} {
		name, value, _ := strings.Cut(s, "=")
		if _, err := onnxpass.MatMulNBits().(rewrite.Configurable).Configured(name, value); err == nil {
			t.Errorf("%s is no error", s)
		}
	}
}
