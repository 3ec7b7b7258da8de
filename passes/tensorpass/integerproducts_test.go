package tensorpass_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/rewrite/rewritetest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// integerCases are graphs of one input, with the ops that the passes for integers leave.
var integerCases = []struct {
	name  string
	shape []int
	build func(r *rand.Rand, x variable) variable
	int8  string
	both  string // after products_to_int16 as well
}{
	{"a product with an epilogue", []int{2, 5, 48}, func(r *rand.Rand, x variable) variable {
		return tensor.Tanh(tensor.Add(tensor.Matmul(x, float32s(r, 48, 32)), float32s(r, 32)))
	}, "Epilogue Integers{int8}{Matmul}", "Epilogue Integers{int8}{Matmul}"},
	{"a narrow product", []int{2, 5, 48}, func(r *rand.Rand, x variable) variable { return tensor.Matmul(x, float32s(r, 48, 24)) }, "Integers{int8}{Matmul}", "Integers{int16}{Matmul}"},
	{"a product of matrices", []int{5, 48}, func(r *rand.Rand, x variable) variable { return tensor.Dot(x, float32s(r, 48, 32)) }, "Integers{int8}{Dot22}", "Integers{int8}{Dot22}"},
	{"a product of matrices that is added to something", []int{5, 48}, func(r *rand.Rand, x variable) variable {
		return tensor.Add(tensor.Dot(x, float32s(r, 48, 32)), float32s(r, 5, 32))
	}, "Epilogue Integers{int8}{Dot22}", "Epilogue Integers{int8}{Dot22}"},
	{"a product with a row", []int{1, 48}, func(r *rand.Rand, x variable) variable {
		return tensor.Add(tensor.Dot(x, float32s(r, 48, 32)), float32s(r, 1, 32))
	}, "Epilogue Integers{int8}{Dot22}", "Epilogue Integers{int8}{Dot22}"},
	{"a product of a vector", []int{48}, func(r *rand.Rand, x variable) variable { return tensor.Dot(x, float32s(r, 48, 32)) }, "Integers{int8}{Dot22}", "Integers{int8}{Dot22}"},
	{"convolutions", []int{2, 6, 9, 8}, func(r *rand.Rand, x variable) variable {
		y := tensor.Conv(x, float32s(r, 40, 6, 3, 3), float32s(r, 40), tensor.Slide{Before: []int{1, 1}, After: []int{1, 1}}, 1)
		y = tensor.Maximum(y, tensor.Number(0, y))
		return tensor.Sum(tensor.Conv(y, float32s(r, 32, 40, 1, 1), nil, tensor.Slide{Strides: []int{2, 2}}, 1), 2, 3)
	}, "Epilogue Integers{int8}{ConvLast}{2}{pads=1,1,1,1}; Integers{int8}{ConvLast}{2}{strides=2,2}; sum{axis=1,2}",
		"Epilogue Integers{int8}{ConvLast}{2}{pads=1,1,1,1}; Integers{int8}{ConvLast}{2}{strides=2,2}; sum{axis=1,2}"},
	{"a convolution in groups", []int{2, 32, 9, 7}, func(r *rand.Rand, x variable) variable {
		return tensor.Sum(tensor.Conv(x, float32s(r, 32, 16, 3, 3), nil, tensor.Slide{}, 2), 2, 3)
	}, "ConvLast{2}{groups=2}; sum{axis=1,2}", "ConvLast{2}{groups=2}; sum{axis=1,2}"},
	{"few terms", []int{2, 5, 31}, func(r *rand.Rand, x variable) variable { return tensor.Matmul(x, float32s(r, 31, 32)) }, "Matmul", "Matmul"},
	{"few columns", []int{2, 5, 48}, func(r *rand.Rand, x variable) variable { return tensor.Matmul(x, float32s(r, 48, 15)) }, "Matmul", "Matmul"},
	{"weights that are no constant", []int{2, 32, 32}, func(r *rand.Rand, x variable) variable { return tensor.Matmul(x, x) }, "Matmul", "Matmul"},
	{"several matrices", []int{2, 5, 32}, func(r *rand.Rand, x variable) variable { return tensor.Matmul(x, float32s(r, 2, 32, 32)) }, "Matmul", "Matmul"},
	{"a multiple of a product", []int{5, 48}, func(r *rand.Rand, x variable) variable {
		y := tensor.Dot(x, float32s(r, 48, 32))
		return tensor.Add(tensor.Mul(tensor.Number(2, y), y), float32s(r, 5, 32))
	}, "Dot22Scalar; add", "Dot22Scalar; add"},
	{"weights that can't be rounded", []int{2, 5, 48}, func(r *rand.Rand, x variable) variable {
		w := array.New(array.Float32, 48, 32)
		w.SetFloat(3, math.Inf(1))
		return tensor.Matmul(x, tensor.Constant(w))
	}, "Matmul", "Matmul"},
	{"float64s", []int{2, 5, 48}, func(r *rand.Rand, x variable) variable {
		return tensor.Matmul(tensor.Cast(x, array.Float64), tensor.Constant(tensor.ConstantOf(float32s(r, 48, 32)).Cast(array.Float64)))
	}, "cast{float64}; Matmul", "cast{float64}; Matmul"},
}

// TestIntegerProducts: products with constant weights become products of integers, with results that
// differ by what rounding lets expect, and others stay.
func TestIntegerProducts(t *testing.T) {
	for _, c := range integerCases {
		for _, passes := range [][]string{{"products_to_int8"}, {"products_to_int8", "products_to_int16"}} {
			t.Run(c.name, func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, 2))
				x := fgraph.NewInput(tensor.NewType(array.Float32, c.shape...), "x")
				out := c.build(r, x)
				plain, err := exec.NewFunction(t.Context(), []variable{x}, []variable{out}, exec.FunctionOptions{})
				if err != nil {
					t.Fatal(err)
				}
				g, err := tensor.NewGraph([]variable{x}, []variable{out})
				if err != nil {
					t.Fatal(err)
				}
				list := []rewrite.GraphRewriter{passNamed("BlasOpt"), tensorpass.Pass("channels_last"), tensorpass.Pass("composite_elemwise_fusion")}
				for _, name := range append(passes, "fuse_product_epilogue") {
					list = append(list, tensorpass.Pass(name))
				}
				rewritetest.Run(t, rewrite.NewSequence("products", list...), g)
				want := c.int8
				if len(passes) > 1 {
					want = c.both
				}
				if got := opsOf(g); got != want {
					t.Errorf("%s left, want %s", got, want)
				}
				f, err := exec.CompileGraph(g)
				if err != nil {
					t.Fatal(err)
				}
				arg := tensor.ConstantOf(float32s(r, c.shape...))
				exact, err := plain.Call(t.Context(), arg)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					got, err := f.Call(t.Context(), arg)
					if err != nil {
						t.Fatal(err)
					}
					if c.name == "weights that can't be rounded" {
						return // infinities
					}
					sum, norm := 0.0, 0.0
					for i := range exact[0].Len() {
						d := got[0].Float(i) - exact[0].Float(i)
						sum, norm = sum+d*d, norm+exact[0].Float(i)*exact[0].Float(i)
					}
					if e := math.Sqrt(sum / norm); e > 0.02 {
						t.Errorf("the error is %v of the norm", e)
					}
				}
			})
		}
	}
}
