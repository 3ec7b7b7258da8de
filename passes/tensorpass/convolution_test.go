package tensorpass_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/rewrite/rewritetest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

type variable = *fgraph.Variable

// float32s returns a constant of random float32s.
func float32s(r *rand.Rand, shape ...int) variable {
	a := array.New(array.Float32, shape...)
	for i := range a.Len() {
		a.SetFloat(i, 2*r.Float64()-1)
	}
	return tensor.Constant(a)
}

// integers are constants.
func integers(sizes ...int) (list []variable) {
	for _, n := range sizes {
		list = append(list, tensor.Int(n))
	}
	return list
}

func reshaped(x variable, sizes ...int) variable { return tensor.Reshape(x, integers(sizes...)...) }

// productCases are graphs of one input, [2, 6, 9, 7] or [2, 5, 6], with the ops that channels_last,
// composite_elemwise_fusion and fuse_product_epilogue leave, without DimShuffles.
var productCases = []struct {
	name  string
	build func(r *rand.Rand, x variable) variable
	want  string
}{
	{"convolutions with what lies between them", func(r *rand.Rand, x variable) variable {
		relu := func(x variable) variable { return tensor.Maximum(x, tensor.Number(0, x)) }
		y := relu(tensor.Conv(x, float32s(r, 4, 6, 3, 3), float32s(r, 4), tensor.Slide{Before: []int{1, 1}, After: []int{1, 1}}, 1))
		z := tensor.Add(tensor.Conv(y, float32s(r, 4, 4, 1, 1), nil, tensor.Slide{}, 1), tensor.Mul(y, float32s(r, 1, 4, 1, 1)))
		z = tensor.MaxPool(z, []int{3, 3}, tensor.Slide{Before: []int{1, 1}, After: []int{1, 1}}, false)
		z = tensor.AveragePool(z, []int{2, 2}, tensor.Slide{Before: []int{1, 1}, Strides: []int{2, 1}, After: []int{1, 0}}, false, false)
		joined := tensor.Join(1, z, relu(tensor.Conv(z, float32s(r, 4, 1, 3, 3), nil, tensor.Slide{Before: []int{1, 1}, After: []int{1, 1}}, 4)))
		return tensor.Sum(joined, 2, 3)
	}, "Epilogue ConvLast{2}{pads=1,1,1,1}; Epilogue ConvLast{2}; MaxPoolLast{3,3}{pads=1,1,1,1}; AveragePoolLast{2,2}{strides=2,1}{pads=1,1,1,0}; Epilogue ConvLast{2}{pads=1,1,1,1}{groups=4}; Join{3}; sum{axis=1,2}"},
	{"convolutions of integers with what lies between them", func(r *rand.Rand, x variable) variable {
		codes := func(x variable) variable {
			return tensor.Cast(tensor.Map(array.Round, tensor.Mul(tensor.Number(50, x), x)), array.Int8)
		}
		zero := tensor.Cast(tensor.Int(0), array.Int8)
		weights := func(shape ...int) variable {
			w := array.New(array.Int8, shape...)
			for i := range w.Len() {
				w.SetInt(i, r.Int64N(256)-128)
			}
			return tensor.Constant(w)
		}
		y := tensor.Cast(tensor.ConvInteger(codes(x), weights(4, 6, 3, 3), zero, zero, tensor.Slide{Before: []int{1, 1}, After: []int{1, 1}}), array.Float32)
		y = tensor.Mul(tensor.Sub(y, tensor.ReduceOver(array.Min, y, 0, 1, 2, 3)), float32s(r, 1, 4, 1, 1))
		z := tensor.Cast(tensor.ConvInteger(codes(y), weights(4, 4, 1, 1), zero, zero, tensor.Slide{}), array.Float32)
		return tensor.Join(1, y, z)
	}, "Composite; cast{int8}; ConvLastInteger{2}{pads=1,1,1,1}; cast{float32}; min{axis=0,1,2,3}; Composite; ConvLastInteger{2}; cast{float32}; Join{3}"},
	{"windows side by side, and positions that are repeated", func(r *rand.Rand, x variable) variable {
		y := tensor.ConvTranspose(x, float32s(r, 6, 4, 2, 3), float32s(r, 4), tensor.Slide{Strides: []int{2, 3}}, nil, 1)
		z := tensor.Repeat(tensor.Repeat(tensor.Conv(x, float32s(r, 4, 6, 1, 1), nil, tensor.Slide{}, 1), tensor.Int(2), 2), tensor.Int(3), 3)
		return tensor.Sum(tensor.Mul(y, z), 2, 3)
	}, "ConvLast{2}; Alloc; Reshape{4}; Alloc; Reshape{4}; Matmul; Reshape{6}; Reshape{4}; Composite; sum{axis=1,2}"},
	{"windows side by side of one channel", func(r *rand.Rand, x variable) variable {
		y := tensor.ConvTranspose(x, float32s(r, 6, 1, 2, 3), float32s(r, 1), tensor.Slide{Strides: []int{2, 3}}, nil, 1)
		return tensor.Sum(tensor.Conv(y, float32s(r, 4, 1, 3, 3), nil, tensor.Slide{}, 1), 2, 3)
	}, "Reshape{3}; Matmul; Reshape{6}; Reshape{4}; add; ConvLast{2}; sum{axis=1,2}"},
	{"a sum of channels", func(r *rand.Rand, x variable) variable {
		y := tensor.Conv(x, float32s(r, 1, 6, 1, 1), nil, tensor.Slide{}, 1)
		return tensor.Sum(tensor.Conv(y, float32s(r, 4, 1, 3, 3), nil, tensor.Slide{}, 1), 2, 3)
	}, "Conv{2}; ConvLast{2}; sum{axis=1,2}"},
	{"channels that two others are made of", func(r *rand.Rand, x variable) variable {
		y := tensor.Conv(x, float32s(r, 8, 6, 1, 1), nil, tensor.Slide{}, 1)
		return tensor.Sum(tensor.Conv(y, float32s(r, 16, 1, 3, 3), nil, tensor.Slide{Before: []int{1, 1}, After: []int{1, 1}}, 8), 2, 3)
	}, "ConvLast{2}; Alloc; Reshape{4}; ConvLast{2}{pads=1,1,1,1}{groups=16}; sum{axis=1,2}"},
	{"an image that is resized", func(r *rand.Rand, x variable) variable {
		y := tensor.ResizeBy(tensor.Conv(x, float32s(r, 4, 6, 1, 1), nil, tensor.Slide{}, 1), tensor.ResizeOptions{Linear: true}, 1, 1, 2, 1.5)
		return tensor.Sum(tensor.Conv(y, float32s(r, 4, 4, 1, 1), nil, tensor.Slide{}, 1), 2, 3)
	}, "ConvLast{2}; ResizePlaces{half_pixel}; Interpolate{axis=2}; ResizePlaces{half_pixel}; Interpolate{axis=1}; ConvLast{2}; sum{axis=1,2}"},
	{"positions of a product that are repeated", func(r *rand.Rand, x variable) variable {
		y := tensor.Mul(tensor.ExpandDims(tensor.Conv(x, float32s(r, 4, 6, 1, 1), nil, tensor.Slide{}, 1), 3), tensor.ExpandDims(float32s(r, 2, 4, 1, 1), 3))
		z := reshaped(tensor.Alloc(y, integers(2, 4, 9, 2, 7)...), 2, 4, 18, 7)
		return tensor.Sum(z, 2, 3)
	}, "Epilogue ConvLast{2}; Alloc; Reshape{4}; sum{axis=1,2}"},
	{"positions that are repeated, with the dimension of the next repetition", func(r *rand.Rand, x variable) variable {
		y := tensor.ExpandDims(tensor.Conv(x, float32s(r, 4, 6, 1, 1), nil, tensor.Slide{}, 1), 4)
		z := reshaped(tensor.Alloc(y, integers(2, 4, 9, 7, 2)...), 2, 4, 9, 1, 14)
		return tensor.Sum(reshaped(tensor.Alloc(z, integers(2, 4, 9, 3, 14)...), 2, 4, 27, 14), 2, 3)
	}, "ConvLast{2}; Alloc; Reshape{5}; Alloc; Reshape{4}; sum{axis=1,2}"},
	{"positions that are repeated, with a dimension before the channels", func(r *rand.Rand, x variable) variable {
		y := tensor.ExpandDims(tensor.Conv(x, float32s(r, 4, 6, 1, 1), nil, tensor.Slide{}, 1), 4)
		return tensor.Sum(reshaped(tensor.Alloc(y, integers(2, 4, 9, 7, 2)...), 2, 1, 4, 9, 14), 3, 4)
	}, "ConvLast{2}; Alloc; Reshape{5}; sum{axis=3,4}"},
	{"convolutions of joined channels, also pooled", func(r *rand.Rand, x variable) variable {
		conv := func(x variable, in int) variable {
			return tensor.Conv(x, float32s(r, 4, in, 1, 1), float32s(r, 4), tensor.Slide{}, 1)
		}
		y := conv(tensor.Join(1, conv(x, 6), conv(x, 6)), 8)
		z := conv(tensor.MaxPool(tensor.Join(1, y, conv(y, 4)), []int{2, 2}, tensor.Slide{Strides: []int{2, 2}}, false), 8)
		return tensor.Sum(z, 2, 3)
	}, "Epilogue ConvLast{2}; Epilogue ConvLast{2}; Epilogue SpliceMatmul{2}; Epilogue ConvLast{2}; MaxPoolLast{2,2}{strides=2,2}; MaxPoolLast{2,2}{strides=2,2}; Epilogue SpliceMatmul{2}; sum{axis=1,2}"},
	{"joined channels that two read", func(r *rand.Rand, x variable) variable {
		joined := tensor.Join(1, tensor.Conv(x, float32s(r, 4, 6, 1, 1), nil, tensor.Slide{}, 1), tensor.Conv(x, float32s(r, 4, 6, 1, 1), nil, tensor.Slide{}, 1))
		return tensor.Sum(tensor.Add(joined, tensor.Conv(joined, float32s(r, 8, 8, 1, 1), nil, tensor.Slide{}, 1)), 2, 3)
	}, "ConvLast{2}; ConvLast{2}; Join{3}; Epilogue ConvLast{2}; sum{axis=1,2}"},
	{"windows that overlap", func(r *rand.Rand, x variable) variable {
		return tensor.ConvTranspose(x, float32s(r, 6, 4, 3, 3), nil, tensor.Slide{Strides: []int{2, 2}}, nil, 1)
	}, "ConvTranspose{2}{strides=2,2}"},
	{"a convolution whose weights are no constant", func(r *rand.Rand, x variable) variable {
		return tensor.Conv(x, tensor.Exp(float32s(r, 4, 6, 3, 3)), nil, tensor.Slide{}, 1)
	}, "exp; Conv{2}"},
	{"groups that are narrow", func(r *rand.Rand, x variable) variable {
		return tensor.Conv(x, float32s(r, 6, 2, 3, 3), nil, tensor.Slide{}, 3)
	}, "Conv{2}{groups=3}"},
	{"what is reduced to channels and positions", func(r *rand.Rand, x variable) variable {
		return tensor.ReduceOver(array.Max, tensor.Conv(x, float32s(r, 4, 6, 1, 1), nil, tensor.Slide{}, 1), 2)
	}, "ConvLast{2}; max{axis=2}"},
	{"parts of channels and of positions", func(r *rand.Rand, x variable) variable {
		y := tensor.Conv(x, float32s(r, 8, 6, 1, 1), nil, tensor.Slide{}, 1)
		to := func(last int) tensor.Index { return tensor.SliceOf(nil, tensor.Int(last), 1) }
		part := tensor.Subtensor(y, tensor.Everything(), to(4), tensor.SliceOf(tensor.Int(8), nil, -2))
		other := tensor.Subtensor(y, tensor.Everything(), tensor.SliceOf(tensor.Int(4), nil, 1), to(5))
		return tensor.Sum(tensor.Conv(tensor.Mul(part, other), float32s(r, 4, 4, 1, 1), nil, tensor.Slide{}, 1), 2, 3)
	}, "ConvLast{2}; Subtensor{:,:5,:,4:}; Subtensor{:,8::-2,:,:4}; mul; ConvLast{2}; sum{axis=1,2}"},
	{"a part without channels", func(r *rand.Rand, x variable) variable {
		y := tensor.Conv(x, float32s(r, 8, 6, 1, 1), nil, tensor.Slide{}, 1)
		return tensor.Exp(tensor.Subtensor(y, tensor.Everything(), tensor.At(tensor.Int(2))))
	}, "ConvLast{2}; Subtensor{:,2}; exp"},
	{"two products that are added, the first with a bias", func(r *rand.Rand, x variable) variable {
		y := tensor.Conv(x, float32s(r, 4, 6, 1, 1), float32s(r, 4), tensor.Slide{}, 1)
		z := tensor.Conv(x, float32s(r, 4, 6, 3, 3), nil, tensor.Slide{Before: []int{1, 1}, After: []int{1, 1}}, 1)
		sum := tensor.Add(y, z)
		return tensor.Sum(tensor.Maximum(sum, tensor.Number(0, sum)), 2, 3)
	}, "ConvLast{2}{pads=1,1,1,1}; Epilogue ConvLast{2}; sum{axis=1,2}"},
	{"two products that are added, the second with a bias", func(r *rand.Rand, x variable) variable {
		y := tensor.Conv(x, float32s(r, 4, 6, 1, 1), nil, tensor.Slide{}, 1)
		z := tensor.Conv(x, float32s(r, 4, 6, 3, 3), float32s(r, 4), tensor.Slide{Before: []int{1, 1}, After: []int{1, 1}}, 1)
		sum := tensor.Add(z, y)
		return tensor.Sum(tensor.Maximum(sum, tensor.Number(0, sum)), 2, 3)
	}, "ConvLast{2}; Epilogue ConvLast{2}{pads=1,1,1,1}; sum{axis=1,2}"},
	{"a product with a bias", func(r *rand.Rand, x variable) variable {
		return tensor.Tanh(tensor.Add(tensor.Matmul(x, float32s(r, 6, 3)), float32s(r, 3)))
	}, "Epilogue Matmul"},
	{"a product of joined tensors", func(r *rand.Rand, x variable) variable {
		part := tensor.Subtensor(x, tensor.Everything(), tensor.SliceOf(tensor.Int(1), tensor.Int(4), 1))
		other := tensor.Subtensor(x, tensor.Everything(), tensor.SliceOf(tensor.Int(0), tensor.Int(5), 2))
		return tensor.Add(tensor.Matmul(tensor.Join(-1, part, other), float32s(r, 12, 3)), float32s(r, 3))
	}, "Subtensor{:,1:4}; Subtensor{:,0:5:2}; Epilogue SpliceMatmul{2}"},
	{"a product of tensors that are joined in another dimension", func(r *rand.Rand, x variable) variable {
		return tensor.Matmul(tensor.Join(1, x, x), float32s(r, 6, 3))
	}, "Join{1}; Matmul"},
	{"a product that two read", func(r *rand.Rand, x variable) variable {
		y := tensor.Matmul(x, float32s(r, 6, 3))
		return tensor.Dot(tensor.Reshape(tensor.Exp(y), tensor.Int(10), tensor.Int(3)), tensor.Reshape(tensor.Softmax(tensor.Reshape(y, tensor.Int(3), tensor.Int(10))), tensor.Int(3), tensor.Int(10)))
	}, "Matmul; exp; Reshape{2}; Reshape{2}; Softmax; Reshape{2}; dot"},
	{"a product that is broadcast", func(r *rand.Rand, x variable) variable {
		return tensor.Add(tensor.ExpandDims(tensor.Sum(tensor.Matmul(x, float32s(r, 6, 3)), 0), 0), float32s(r, 4, 5, 3))
	}, "Matmul; sum{axis=0}; add"},
	{"a product with no constant", func(r *rand.Rand, x variable) variable {
		return tensor.Exp(tensor.Matmul(x, tensor.DimShuffle(x, 0, 2, 1)))
	}, "Matmul; exp"},
}

// TestProducts: the passes of products change the graphs that they should, and no bit.
func TestProducts(t *testing.T) {
	for _, c := range productCases {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			shape := []int{2, 6, 9, 7}
			if strings.Contains(c.want, "Matmul") && !strings.Contains(c.want, "ConvLast") {
				shape = []int{2, 5, 6}
			}
			x := fgraph.NewInput(tensor.NewType(array.Float32, shape...), "x")
			out := c.build(r, x)
			plain, err := exec.NewFunction(t.Context(), []variable{x}, []variable{out}, exec.FunctionOptions{})
			if err != nil {
				t.Fatal(err)
			}
			g, err := tensor.NewGraph([]variable{x}, []variable{out})
			if err != nil {
				t.Fatal(err)
			}
			rewritetest.Run(t, rewrite.NewSequence("products", tensorpass.Pass("channels_last"), tensorpass.Pass("composite_elemwise_fusion"), tensorpass.Pass("splice_products"), tensorpass.Pass("fuse_product_epilogue")), g)
			if got := opsOf(g); got != c.want {
				t.Errorf("%s left, want %s", got, c.want)
			}
			for a := range g.Applies() {
				op := a.Op()
				if e, ok := op.(*tensor.EpilogueOp); ok {
					op = e.Base()
				}
				// Parts of a factor are prepared only if its rows are contiguous.
				if s, ok := op.(tensor.SpliceMatmulOp); ok && !tensor.ConstantOf(a.Inputs()[s.N]).Contiguous() {
					t.Errorf("the factor of %v is not in row-major order", a)
				}
			}
			fused, err := exec.CompileGraph(g)
			if err != nil {
				t.Fatal(err)
			}
			arg := tensor.ConstantOf(float32s(r, shape...))
			want, err := plain.Call(t.Context(), arg)
			if err != nil {
				t.Fatal(err)
			}
			// Twice: what is prepared at the first call serves for all.
			for range 2 {
				got, err := fused.Call(t.Context(), arg)
				if err != nil {
					t.Fatal(err)
				}
				if !array.Equal(got[0], want[0]) {
					t.Errorf("%v, not %v", got[0], want[0])
				}
			}
		})
	}
}

// opsOf lists the ops of a graph, without views. Of programs it leaves out the text.
func opsOf(g *fgraph.FunctionGraph) string {
	var list []string
	for a := range g.Ordered() {
		switch op := a.Op().(type) {
		case tensor.DimShuffleOp:
		case *tensor.EpilogueOp:
			list = append(list, "Epilogue "+op.Base().String())
		case *tensor.CompositeOp:
			list = append(list, "Composite")
		default:
			list = append(list, op.String())
		}
	}
	return strings.Join(slices.Clone(list), "; ")
}

// TestWinograd: convolutions of many channels at many positions are computed by tiles, with nearly the
// same results, and others stay.
func TestWinograd(t *testing.T) {
	one := tensor.Slide{Before: []int{1, 1}, After: []int{1, 1}}
	for _, c := range []struct {
		name                  string
		in, out, size, window int
		slide                 tensor.Slide
		groups                int
		want                  string
	}{
		{"many positions", 64, 96, 40, 3, one, 1, "Epilogue Winograd{4}{pads=1,1,1,1}"},
		{"fewer positions and more channels", 256, 256, 14, 3, one, 1, "Epilogue Winograd{2}{pads=1,1,1,1}"},
		{"many weights for their positions", 256, 256, 7, 3, one, 1, "Epilogue ConvLast{2}{pads=1,1,1,1}"},
		{"a position", 160, 160, 1, 3, one, 1, "Epilogue ConvLast{2}{pads=1,1,1,1}"},
		{"few channels", 3, 48, 40, 3, one, 1, "Epilogue ConvLast{2}{pads=1,1,1,1}"},
		{"another window", 32, 48, 40, 5, one, 1, "Epilogue ConvLast{2}{pads=1,1,1,1}"},
		{"strides", 32, 48, 40, 3, tensor.Slide{Strides: []int{2, 2}}, 1, "Epilogue ConvLast{2}{strides=2,2}"},
		{"dilation", 32, 48, 40, 3, tensor.Slide{Dilations: []int{1, 2}}, 1, "Epilogue Winograd{4}{dilations=1,2}"},
		{"few tiles of a phase", 32, 48, 20, 3, tensor.Slide{Dilations: []int{9, 9}}, 1, "Epilogue ConvLast{2}{dilations=9,9}"},
		{"groups", 32, 48, 40, 3, one, 2, "Epilogue ConvLast{2}{pads=1,1,1,1}{groups=2}"},
		{"large pads", 32, 48, 40, 3, tensor.Slide{Before: []int{3, 0}, After: []int{0, 0}}, 1, "Epilogue ConvLast{2}{pads=3,0,0,0}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			x := fgraph.NewInput(tensor.NewType(array.Float32, 1, c.in, c.size, c.size), "x")
			out := tensor.Exp(tensor.Conv(x, float32s(r, c.out, c.in/c.groups, c.window, c.window), float32s(r, c.out), c.slide, c.groups))
			out = tensor.Maximum(tensor.Log(out), tensor.Number(0, out))
			plain, err := exec.NewFunction(t.Context(), []variable{x}, []variable{out}, exec.FunctionOptions{})
			if err != nil {
				t.Fatal(err)
			}
			g, err := tensor.NewGraph([]variable{x}, []variable{out})
			if err != nil {
				t.Fatal(err)
			}
			passes := []rewrite.GraphRewriter{}
			for _, name := range []string{"channels_last", "winograd", "composite_elemwise_fusion", "fuse_product_epilogue"} {
				passes = append(passes, tensorpass.Pass(name))
			}
			rewritetest.Run(t, rewrite.NewSequence("products", passes...), g)
			if got := opsOf(g); got != c.want {
				t.Errorf("%s left, want %s", got, c.want)
			}
			f, err := exec.CompileGraph(g)
			if err != nil {
				t.Fatal(err)
			}
			arg := tensor.ConstantOf(float32s(r, 1, c.in, c.size, c.size))
			want, err := plain.Call(t.Context(), arg)
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.Call(t.Context(), arg)
			if err != nil {
				t.Fatal(err)
			}
			sum, norm := 0.0, 0.0
			for i := range want[0].Len() {
				d := got[0].Float(i) - want[0].Float(i)
				sum, norm = sum+d*d, norm+want[0].Float(i)*want[0].Float(i)
			}
			if sum > 1e-10*norm {
				t.Errorf("the error is %v of the norm", math.Sqrt(sum/norm))
			}
		})
	}
}
