package tensorpass_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/rewrite/rewritetest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// codes returns a constant of random int8s or uint8s.
func codes(r *rand.Rand, dtype array.DType, shape ...int) variable {
	a := array.New(dtype, shape...)
	for i := range a.Len() {
		a.SetFloat(i, float64(r.IntN(128)))
	}
	return tensor.Constant(a)
}

// dequantize returns (v - zero)·scale.
func dequantize(v, zero, scale variable) variable {
	x := tensor.Cast(v, array.Float32)
	if zero != nil {
		x = tensor.Sub(x, tensor.Cast(zero, array.Float32))
	}
	return tensor.Mul(x, scale)
}

// scales returns a constant of positive numbers.
func scales(r *rand.Rand, shape ...int) variable {
	a := array.New(array.Float32, shape...)
	for i := range a.Len() {
		a.SetFloat(i, 0.001+r.Float64()/100)
	}
	return tensor.Constant(a)
}

// TestDequantizedProducts: products of integers that are dequantized first multiply the integers, with the
// same results but for rounding, and others stay.
func TestDequantizedProducts(t *testing.T) {
	checkDequantized(t, "integer_products", 1e-6, []dequantizedCase{
		{"a product of matrices", array.Uint8, []int{5, 70}, func(r *rand.Rand, x variable) variable {
			return tensor.Dot(dequantize(x, codes(r, array.Uint8), scales(r)), dequantize(codes(r, array.Int8, 70, 20), codes(r, array.Int8), scales(r, 20)))
		}, true},
		{"a product of tensors without zeros", array.Int8, []int{2, 5, 70}, func(r *rand.Rand, x variable) variable {
			return tensor.Matmul(dequantize(x, nil, scales(r)), dequantize(codes(r, array.Int8, 70, 20), nil, scales(r)))
		}, true},
		{"transposed weights", array.Uint8, []int{5, 70}, func(r *rand.Rand, x variable) variable {
			w := dequantize(codes(r, array.Uint8, 20, 70), codes(r, array.Uint8, 20, 1), scales(r, 20, 1))
			return tensor.Dot(dequantize(x, codes(r, array.Uint8), scales(r)), tensor.Transpose(w))
		}, true},
		{"weights that are no constant", array.Uint8, []int{40, 40}, func(r *rand.Rand, x variable) variable {
			return tensor.Dot(dequantize(x, codes(r, array.Uint8), scales(r)), dequantize(x, codes(r, array.Uint8), scales(r)))
		}, true},
		{"a convolution", array.Uint8, []int{2, 9, 8, 7}, func(r *rand.Rand, x variable) variable {
			w := dequantize(codes(r, array.Int8, 12, 9, 3, 2), codes(r, array.Int8, 12, 1, 1, 1), scales(r, 12, 1, 1, 1))
			return tensor.Conv(dequantize(x, codes(r, array.Uint8), scales(r)), w, scales(r, 12), tensor.Slide{Before: []int{1, 2}, After: []int{0, 1}, Strides: []int{2, 1}}, 1)
		}, true},
		{"a convolution in groups", array.Uint8, []int{2, 8, 8, 7}, func(r *rand.Rand, x variable) variable {
			return tensor.Conv(dequantize(x, codes(r, array.Uint8), scales(r)), dequantize(codes(r, array.Int8, 12, 4, 3, 2), nil, scales(r)), nil, tensor.Slide{}, 2)
		}, false},
		{"a scale for each row", array.Uint8, []int{5, 70}, func(r *rand.Rand, x variable) variable {
			return tensor.Dot(dequantize(x, nil, scales(r, 5, 1)), dequantize(codes(r, array.Int8, 70, 20), nil, scales(r)))
		}, false},
		{"a scale for each term", array.Uint8, []int{5, 70}, func(r *rand.Rand, x variable) variable {
			return tensor.Dot(dequantize(x, nil, scales(r)), dequantize(codes(r, array.Int8, 70, 20), nil, scales(r, 70, 1)))
		}, false},
		{"weights that are floats", array.Uint8, []int{5, 70}, func(r *rand.Rand, x variable) variable {
			return tensor.Dot(dequantize(x, nil, scales(r)), scales(r, 70, 20))
		}, false},
		{"larger integers", array.Int16, []int{5, 70}, func(r *rand.Rand, x variable) variable {
			return tensor.Dot(dequantize(x, nil, scales(r)), dequantize(codes(r, array.Int8, 70, 20), nil, scales(r)))
		}, false},
		{"a zero that is no integer", array.Uint8, []int{5, 70}, func(r *rand.Rand, x variable) variable {
			y := tensor.Cast(x, array.Float32)
			y = tensor.Mul(tensor.Sub(y, tensor.Number(0.5, y)), scales(r))
			return tensor.Dot(y, dequantize(codes(r, array.Int8, 70, 20), nil, scales(r)))
		}, false},
	})
}

// TestFloatSums: sums of integers that are only cast to float32s are float32s, with the same bits, and others
// stay.
func TestFloatSums(t *testing.T) {
	product := func(r *rand.Rand, x variable, n int) variable {
		k := tensor.TypeOf(x).Dim(tensor.TypeOf(x).NDim() - 1)
		return tensor.MatmulInteger(x, codes(r, array.Uint8, k, n), codes(r, array.Uint8), codes(r, array.Uint8))
	}
	checkDequantized(t, "float_sums", 0, []dequantizedCase{
		{"a product", array.Uint8, []int{2, 5, 70}, func(r *rand.Rand, x variable) variable {
			return tensor.Mul(tensor.Cast(product(r, x, 20), array.Float32), scales(r))
		}, true},
		{"a product of many terms", array.Uint8, []int{5, 7000}, func(r *rand.Rand, x variable) variable {
			return tensor.Cast(product(r, x, 20), array.Float32)
		}, true},
		{"a convolution", array.Uint8, []int{2, 9, 8}, func(r *rand.Rand, x variable) variable {
			x = tensor.DimShuffle(x, 0, 2, 1)
			w := codes(r, array.Int8, 3, 9, 12)
			op := tensor.ConvLastIntegerOp{Window: array.Window{Dims: 1, Size: [3]int{3}, Stride: [3]int{1, 1, 1}, Dilation: [3]int{1, 1, 1}}}
			return tensor.Cast(tensor.MustApply(op, x, w, codes(r, array.Uint8), codes(r, array.Int8)), array.Float32)
		}, true},
		{"sums that have another use", array.Uint8, []int{5, 70}, func(r *rand.Rand, x variable) variable {
			sums := product(r, x, 20)
			return tensor.Add(tensor.Cast(sums, array.Float32), tensor.Cast(tensor.Maximum(sums, tensor.Number(7, sums)), array.Float32))
		}, false},
		{"a cast to float64s", array.Uint8, []int{5, 70}, func(r *rand.Rand, x variable) variable {
			return tensor.Cast(product(r, x, 20), array.Float64)
		}, false},
	})
}

// TestEpiloguesOfIntegers: products of integers complete their sums, with the same bits.
func TestEpiloguesOfIntegers(t *testing.T) {
	product := func(r *rand.Rand, x variable, float bool) variable {
		return tensor.MustApply(tensor.MatmulIntegerOp{Float: float}, x, codes(r, array.Uint8, 70, 20), codes(r, array.Uint8), codes(r, array.Uint8))
	}
	checkDequantized(t, "fuse_product_epilogue", 0, []dequantizedCase{
		{"a scale", array.Uint8, []int{5, 70}, func(r *rand.Rand, x variable) variable {
			return tensor.Mul(product(r, x, true), tensor.PadLeft(scales(r), 2))
		}, true},
		{"a scale for each column", array.Uint8, []int{5, 70}, func(r *rand.Rand, x variable) variable {
			return tensor.Mul(product(r, x, true), scales(r, 1, 20))
		}, true},
		{"int32s", array.Uint8, []int{5, 70}, func(r *rand.Rand, x variable) variable {
			sums := product(r, x, false)
			return tensor.Maximum(sums, tensor.Number(7, sums))
		}, false},
		{"weights that are no constant", array.Uint8, []int{70, 70}, func(r *rand.Rand, x variable) variable {
			sums := tensor.MustApply(tensor.MatmulIntegerOp{Float: true}, x, x, codes(r, array.Uint8), codes(r, array.Uint8))
			return tensor.Mul(sums, tensor.PadLeft(scales(r), 2))
		}, false},
	})
}

// TestWeightCodes: what reads large weights that are dequantized reads their codes, with the same bits.
func TestWeightCodes(t *testing.T) {
	take := func(r *rand.Rand, w variable) variable {
		return tensor.Take(w, tensor.Constant(array.Of([]int64{3, 0, 899, 3}, 4)))
	}
	checkDequantized(t, "weight_codes", 0, []dequantizedCase{
		{"a row", array.Float32, []int{1, 96}, func(r *rand.Rand, x variable) variable {
			return tensor.Dot(x, dequantize(codes(r, array.Uint8, 96, 900), codes(r, array.Uint8), scales(r)))
		}, true},
		{"rows, and scales of columns", array.Float32, []int{2, 7, 90}, func(r *rand.Rand, x variable) variable {
			return tensor.Matmul(x, dequantize(codes(r, array.Int8, 90, 900), codes(r, array.Int8, 900), scales(r, 900)))
		}, true},
		{"transposed weights without zeros", array.Float32, []int{5, 90}, func(r *rand.Rand, x variable) variable {
			return tensor.Dot(x, tensor.Transpose(dequantize(codes(r, array.Int8, 900, 90), nil, scales(r, 900, 1))))
		}, true},
		{"rows that are taken", array.Float32, []int{4, 90}, func(r *rand.Rand, x variable) variable {
			return tensor.Add(x, take(r, dequantize(codes(r, array.Uint8, 900, 90), codes(r, array.Uint8), scales(r))))
		}, true},
		{"rows with scales that are taken", array.Float32, []int{4, 90}, func(r *rand.Rand, x variable) variable {
			return tensor.Add(x, take(r, dequantize(codes(r, array.Int8, 900, 90), codes(r, array.Int8, 900, 1), scales(r, 900, 1))))
		}, true},
		{"small weights", array.Float32, []int{1, 40}, func(r *rand.Rand, x variable) variable {
			return tensor.Dot(x, dequantize(codes(r, array.Uint8, 40, 90), nil, scales(r)))
		}, false},
		{"few columns", array.Float32, []int{1, 9000}, func(r *rand.Rand, x variable) variable {
			return tensor.Dot(x, dequantize(codes(r, array.Uint8, 9000, 10), nil, scales(r)))
		}, false},
		{"a scale for each term", array.Float32, []int{1, 90}, func(r *rand.Rand, x variable) variable {
			return tensor.Dot(x, dequantize(codes(r, array.Uint8, 90, 900), nil, scales(r, 90, 1)))
		}, false},
		{"weights that are no constant", array.Uint8, []int{300, 300}, func(r *rand.Rand, x variable) variable {
			return tensor.Dot(scales(r, 1, 300), dequantize(x, nil, scales(r)))
		}, false},
	})
}

// A dequantizedCase is a graph of an input, on which a pass fires or not.
type dequantizedCase struct {
	name  string
	dtype array.DType
	shape []int
	build func(r *rand.Rand, x variable) variable
	fires bool
}

// checkDequantized checks where a pass fires, and that results differ by a tolerance at most, times the norm.
func checkDequantized(t *testing.T, pass string, tolerance float64, cases []dequantizedCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			x := fgraph.NewInput(tensor.NewType(c.dtype, c.shape...), "x")
			out := c.build(r, x)
			plain, err := exec.NewFunction(t.Context(), []variable{x}, []variable{out}, exec.FunctionOptions{})
			if err != nil {
				t.Fatal(err)
			}
			g, err := tensor.NewGraph([]variable{x}, []variable{out})
			if err != nil {
				t.Fatal(err)
			}
			before := g.String()
			rewritetest.Run(t, tensorpass.Pass(pass), g)
			if fired := g.String() != before; fired != c.fires {
				t.Fatalf("%s became %s", before, g)
			}
			f, err := exec.CompileGraph(g)
			if err != nil {
				t.Fatal(err)
			}
			arg := tensor.ConstantOf(codes(r, c.dtype, c.shape...))
			want, err := plain.Call(t.Context(), arg)
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.Call(t.Context(), arg)
			if err != nil {
				t.Fatal(err)
			}
			norm := 0.0
			for i := range want[0].Len() {
				norm = max(norm, math.Abs(want[0].Float(i)))
			}
			for i := range want[0].Len() {
				if d := math.Abs(got[0].Float(i) - want[0].Float(i)); d > tolerance*norm {
					t.Fatalf("element %d is %v, want %v", i, got[0].Float(i), want[0].Float(i))
				}
			}
		})
	}
}
