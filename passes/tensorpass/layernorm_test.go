package tensorpass_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/rewrite/rewritetest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestLayerNorm: standardized rows are one op with the bits of all steps, for rows of any length, and what
// looks similar stays.
func TestLayerNorm(t *testing.T) {
	number := func(c float64, v variable) variable { return tensor.Number(c, v) }
	// The size is known, and has been folded.
	mean := func(x variable, axis int) variable {
		return tensor.TrueDiv(tensor.ExpandDims(tensor.Sum(x, axis), axis), number(float64(tensor.TypeOf(x).Dim(axis)), x))
	}
	standard := func(x variable, axis int) (d, r variable) {
		d = tensor.Sub(x, mean(x, axis))
		return d, tensor.Map(array.Inv, tensor.Sqrt(tensor.Add(mean(tensor.Sqr(d), axis), number(1e-3, x))))
	}
	const fused = "LayerNorm{%d,0.001}"
	for _, c := range []struct {
		name  string
		build func(x, g, b variable) []variable
		want  string // with the number of columns
	}{
		{"gain and bias", func(x, g, b variable) []variable {
			d, r := standard(x, 2)
			return []variable{tensor.Add(tensor.Mul(tensor.Mul(d, r), g), b)}
		}, fused},
		{"the bias first, a flat product", func(x, g, b variable) []variable {
			d, r := standard(x, 2)
			return []variable{tensor.Add(b, tensor.Mul(r, d, g))}
		}, fused},
		{"nothing follows", func(x, g, b variable) []variable {
			d, r := standard(x, 2)
			return []variable{tensor.Mul(d, r)}
		}, fused},
		{"a gain and more", func(x, g, b variable) []variable {
			d, r := standard(x, 2)
			return []variable{tensor.Add(tensor.Mul(d, r, g, x), b)}
		}, fused + "; mul; add"},
		{"more terms", func(x, g, b variable) []variable {
			d, r := standard(x, 2)
			return []variable{tensor.Add(tensor.Mul(d, r, g), b, x)}
		}, fused + "; add"},
		{"a term that is no row", func(x, g, b variable) []variable {
			d, r := standard(x, 2)
			return []variable{tensor.Add(tensor.Mul(d, r, g), x)}
		}, fused + "; add"},

		{"columns", func(x, g, b variable) []variable {
			d, r := standard(x, 1)
			return []variable{tensor.Mul(d, r)}
		}, ""},
		{"the difference is needed", func(x, g, b variable) []variable {
			d, r := standard(x, 2)
			return []variable{tensor.Mul(d, r), d}
		}, ""},
		{"another mean", func(x, g, b variable) []variable {
			d := tensor.Sub(x, mean(tensor.Mul(x, g), 2))
			r := tensor.Map(array.Inv, tensor.Sqrt(tensor.Add(mean(tensor.Sqr(d), 2), number(1e-3, x))))
			return []variable{tensor.Mul(d, r)}
		}, ""},
		{"another divisor", func(x, g, b variable) []variable {
			d := tensor.Sub(x, mean(x, 2))
			v := tensor.TrueDiv(tensor.ExpandDims(tensor.Sum(tensor.Sqr(d), 2), 2), number(4.5, x))
			return []variable{tensor.Mul(d, tensor.Map(array.Inv, tensor.Sqrt(tensor.Add(v, number(1e-3, x)))))}
		}, ""},
		{"no square", func(x, g, b variable) []variable {
			d := tensor.Sub(x, mean(x, 2))
			return []variable{tensor.Mul(d, tensor.Map(array.Inv, tensor.Sqrt(tensor.Add(mean(tensor.Abs(d), 2), number(1e-3, x)))))}
		}, ""},
	} {
		for _, shape := range [][]int{{2, 2, 1}, {2, 3, 5}, {1, 4, 16}, {3, 3, 23}, {2, 5, 40}} {
			t.Run(fmt.Sprint(c.name, shape), func(t *testing.T) {
				r := rand.New(rand.NewPCG(7, 8))
				n := shape[2]
				inputs := []variable{
					fgraph.NewInput(tensor.NewType(array.Float32, shape...), "x"),
					fgraph.NewInput(tensor.NewType(array.Float32, 1, 1, n), "g"), fgraph.NewInput(tensor.NewType(array.Float32, 1, 1, n), "b"),
				}
				args := []*array.Array{tensor.ConstantOf(float32s(r, shape...)), tensor.ConstantOf(float32s(r, 1, 1, n)), tensor.ConstantOf(float32s(r, 1, 1, n))}
				outputs := c.build(inputs[0], inputs[1], inputs[2])
				g, err := tensor.NewGraph(inputs, outputs)
				if err != nil {
					t.Fatal(err)
				}
				before := opsOf(g)
				rewritetest.Run(t, rewrite.NewSequence("norms", tensorpass.Pass("add_mul_fusion"), tensorpass.Pass("layer_norm")), g)
				want := before
				if c.want != "" {
					want = fmt.Sprintf(c.want, n)
				}
				if got := opsOf(g); got != want {
					t.Errorf("%s left, want %s", got, want)
				}
				sameBits(t, inputs, outputs, g, args)
			})
		}
	}
}
