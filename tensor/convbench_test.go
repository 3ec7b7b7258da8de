package tensor_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// BenchmarkConv measures layers of networks for images, and the product of matrices that has as many
// multiplications.
func BenchmarkConv(b *testing.B) {
	for _, c := range []struct {
		name                                          string
		in, out, size, window, stride, groups, before int
	}{
		{"64x56x56to64_3x3", 64, 64, 56, 3, 1, 1, 1},
		{"3x224x224to64_7x7_stride2", 3, 64, 224, 7, 2, 1, 3},
		{"256x14x14to256_3x3", 256, 256, 14, 3, 1, 1, 1},
		{"512x7x7to512_3x3", 512, 512, 7, 3, 1, 1, 1},
		{"256x56x56to64_1x1", 256, 64, 56, 1, 1, 1, 0},
		{"96x112x112_3x3_depthwise", 96, 96, 112, 3, 1, 96, 1},
		{"96x112x112_3x3_depthwise_stride2", 96, 96, 112, 3, 2, 96, 1},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		x := randomArray(r, array.Float32, 1, c.in, c.size, c.size)
		w := randomArray(r, array.Float32, c.out, c.in/c.groups, c.window, c.window)
		pads := []int{c.before, c.before}
		slide := tensor.Slide{Strides: []int{c.stride, c.stride}, Before: pads, After: pads}
		conv := func(in []*fgraph.Variable) *fgraph.Variable { return tensor.Conv(in[0], in[1], nil, slide, c.groups) }
		b.Run(c.name, func(b *testing.B) { measure(b, conv, x, w) })
		if c.groups > 1 {
			continue
		}
		out := (c.size+2*c.before-c.window)/c.stride + 1
		k := c.in * c.window * c.window
		w, p := randomArray(r, array.Float32, c.out, k), randomArray(r, array.Float32, k, out*out)
		b.Run(fmt.Sprintf("product_%dx%dx%d", c.out, k, out*out), func(b *testing.B) {
			measure(b, func(in []*fgraph.Variable) *fgraph.Variable { return tensor.Dot(in[0], in[1]) }, w, p)
		})
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, stride := range []int{1, 2} {
		x, w := randomArray(r, array.Float32, 1, 64, 56, 56), randomArray(r, array.Float32, 64, 64, 3, 3)
		slide := tensor.Slide{Strides: []int{stride, stride}, Before: []int{1, 1}, After: []int{1, 1}}
		b.Run(fmt.Sprintf("transposed_64x56x56to64_3x3_stride%d", stride), func(b *testing.B) {
			measure(b, func(in []*fgraph.Variable) *fgraph.Variable {
				return tensor.ConvTranspose(in[0], in[1], nil, slide, nil, 1)
			}, x, w)
		})
		y := randomArray(r, array.Float32, 1, 64, (55/stride)+1, (55/stride)+1)
		b.Run(fmt.Sprintf("weights_64x56x56to64_3x3_stride%d", stride), func(b *testing.B) {
			measure(b, func(in []*fgraph.Variable) *fgraph.Variable {
				op := tensor.ConvWeightsOp{Window: array.Window{Dims: 2}, Groups: 1}
				for d := range 2 {
					op.Window.Stride[d], op.Window.Dilation[d], op.Window.Before[d], op.Window.After[d] = stride, 1, 1, 1
				}
				return tensor.MustApply(op, in[0], in[1], tensor.Int(3), tensor.Int(3))
			}, x, y)
		})
	}
	x := randomArray(r, array.Float32, 1, 64, 112, 112)
	slide := tensor.Slide{Strides: []int{2, 2}, Before: []int{1, 1}, After: []int{1, 1}}
	b.Run("max_pool_64x112x112_3x3_stride2", func(b *testing.B) {
		measure(b, func(in []*fgraph.Variable) *fgraph.Variable { return tensor.MaxPool(in[0], []int{3, 3}, slide, false) }, x)
	})
}

func measure(b *testing.B, f func(in []*fgraph.Variable) *fgraph.Variable, args ...*array.Array) {
	in := make([]*fgraph.Variable, len(args))
	for i, a := range args {
		in[i] = fgraph.NewInput(tensor.NewType(a.DType(), a.Shape()...), fmt.Sprint("i", i))
	}
	g, err := exec.NewFunction(b.Context(), in, []*fgraph.Variable{f(in)}, exec.FunctionOptions{})
	if err != nil {
		b.Fatal(err)
	}
	runner := g.NewRunner()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := runner.Run(b.Context(), args...); err != nil {
			b.Fatal(err)
		}
	}
}
