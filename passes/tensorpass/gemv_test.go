package tensorpass_test

import (
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/rewrite/rewritetest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestPreparedRows: products of float32s with a constant factor stay products of matrices, which prepare it once
// and take what is added as an epilogue. Others become products with vectors, or add in place.
func TestPreparedRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	turned := tensor.DimShuffle(float32s(r, 3, 6), 1, 0)
	wide := fgraph.NewInput(tensor.NewType(array.Float32, 6, 3), "w")
	for _, c := range []struct {
		name string
		rows int
		w, b variable
		want string
	}{
		{"a row", 1, float32s(r, 6, 3), float32s(r, 1, 3), "Epilogue Dot22"},
		{"a factor that is transposed", 1, turned, float32s(r, 1, 3), "Epilogue Dot22"},
		{"rows to which others are added", 4, turned, nil, "exp; Epilogue Dot22"},
		{"float64s", 1, tensor.Constant(array.Full(array.Float64, 2, 6, 3)), tensor.Constant(array.Full(array.Float64, 1, 1, 3)), "AllocEmpty{float64}; Gemv; add"},
		{"a factor that is not known", 1, wide, float32s(r, 1, 3), "AllocEmpty{float32}; Gemv; add"},
		{"rows and a factor that is not known", 4, wide, nil, "exp; Gemm"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dtype := tensor.TypeOf(c.w).DType()
			x := fgraph.NewInput(tensor.NewType(dtype, c.rows, 6), "x")
			y := fgraph.NewInput(tensor.NewType(dtype, c.rows, 3), "y")
			b := c.b
			if b == nil {
				b = tensor.Exp(y)
			}
			in, out := []variable{x, y, wide}, []variable{tensor.Add(tensor.Dot(x, c.w), b)}
			plain, err := exec.NewFunction(t.Context(), in, out, exec.FunctionOptions{})
			if err != nil {
				t.Fatal(err)
			}
			g, err := tensor.NewGraph(in, out)
			if err != nil {
				t.Fatal(err)
			}
			var list []rewrite.GraphRewriter
			for _, name := range []string{"local_dot_to_dot22", "gemm_optimizer", "local_gemm_to_gemv", "fuse_product_epilogue"} {
				list = append(list, passNamed(name))
			}
			rewritetest.Run(t, rewrite.NewSequence("products", list...), g)
			if got := opsOf(g); got != c.want {
				t.Errorf("%s left, want %s", got, c.want)
			}
			f, err := exec.CompileGraph(g)
			if err != nil {
				t.Fatal(err)
			}
			args := []*array.Array{tensor.ConstantOf(float32s(r, c.rows, 6)).Cast(dtype), tensor.ConstantOf(float32s(r, c.rows, 3)).Cast(dtype), tensor.ConstantOf(float32s(r, 6, 3))}
			want, err := plain.Call(t.Context(), args...)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				got, err := f.Call(t.Context(), args...)
				if err != nil {
					t.Fatal(err)
				}
				if !(array.MaxRelDiff(got[0], want[0]) <= 1e-6) {
					t.Errorf("%v, not %v", got[0], want[0])
				}
			}
		})
	}
}
