package tensorpass_test

import (
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

// TestAttention: a softmax between two products is one op with the bits of all, whatever is done to the
// scores and however heads are counted; and what is needed elsewhere is left.
func TestAttention(t *testing.T) {
	type in struct{ q, k, v, mask variable } // [2, 4, 5, 8], [2, 4, 7, 8], [2, 4, 7, 6], [2, 1, 5, 7]
	scores := func(x in) variable { return tensor.Matmul(x.q, tensor.DimShuffle(x.k, 0, 1, 3, 2)) }
	number := func(c float64, v variable) variable { return tensor.Number(c, v) }
	few := func(v variable) variable { // two heads of four
		return tensor.Subtensor(v, tensor.Everything(), tensor.SliceOf(tensor.Int(0), tensor.Int(2), 1))
	}
	repeated := func(v variable) variable { return tensor.Repeat(few(v), tensor.Int(2), 1) }
	flat := func(v variable, sizes ...int) variable {
		list := make([]variable, len(sizes))
		for i, n := range sizes {
			list[i] = tensor.Int(n)
		}
		return tensor.Reshape(v, list...)
	}
	const alone = "Attention"
	for _, c := range []struct {
		name  string
		build func(x in) []variable
		want  string
	}{
		{"nothing but the softmax", func(x in) []variable { return []variable{tensor.Matmul(tensor.Softmax(scores(x)), x.v)} }, alone},
		{"a factor and a mask", func(x in) []variable {
			s := scores(x)
			return []variable{tensor.Matmul(tensor.Softmax(tensor.Add(tensor.Mul(s, number(0.25, s)), x.mask)), x.v)}
		}, "Attention{add(mul(i0, 0.25), i1)}"},
		{"a divisor, a bound and a mask of bools", func(x in) []variable {
			s := scores(x)
			s = tensor.Mul(number(3, s), tensor.Tanh(tensor.TrueDiv(s, number(3, s))))
			s = tensor.Switch(tensor.Map(array.Gt, x.mask, number(0, x.mask)), s, number(-1e9, s))
			return []variable{tensor.Matmul(tensor.Softmax(s), x.v)}
		}, "gt; Attention{switch(i1, mul(3.0, tanh(true_div(i0, 3.0))), -1000000000.0)}"},
		{"the scale on the queries, heads joined", func(x in) []variable {
			y := tensor.Matmul(tensor.Softmax(tensor.Matmul(tensor.Mul(x.q, number(0.5, x.q)), tensor.DimShuffle(x.k, 0, 1, 3, 2))), x.v)
			return []variable{flat(tensor.DimShuffle(y, 0, 2, 1, 3), 2, 5, 24)}
		}, "mul; Attention{turned}; Reshape{3}"},
		{"rows of a matrix", func(x in) []variable {
			s := flat(tensor.Add(scores(x), x.mask), 40, 7)
			return []variable{tensor.Matmul(flat(tensor.Softmax(s), 2, 4, 5, 7), x.v)}
		}, "Attention{add(i0, i1)}"},
		{"a mask of half floats", func(x in) []variable {
			half := tensor.Subtensor(tensor.Cast(x.q, array.Float16), tensor.Everything(), tensor.Everything(), tensor.Everything(), tensor.SliceOf(tensor.Int(0), tensor.Int(7), 1))
			return []variable{tensor.Matmul(tensor.Softmax(tensor.Add(scores(x), tensor.Cast(half, array.Float32))), x.v)}
		}, "cast{float16}; Subtensor{:,:,:,0:7}; Attention{add(i0, cast{float32}(i1))}"},
		{"grouped heads", func(x in) []variable {
			x.k, x.v = repeated(x.k), repeated(x.v)
			return []variable{tensor.Matmul(tensor.Softmax(scores(x)), x.v)}
		}, "Subtensor{:,0:2}; Subtensor{:,0:2}; Attention"},
		{"two matrices", func(x in) []variable {
			m := func(v variable) variable {
				return tensor.Subtensor(v, tensor.At(tensor.Int(0)), tensor.At(tensor.Int(1)))
			}
			return []variable{tensor.Dot(tensor.Softmax(tensor.Dot(m(x.q), tensor.DimShuffle(m(x.k), 1, 0))), m(x.v))}
		}, "Subtensor{0,1}; Subtensor{0,1}; Subtensor{0,1}; Attention"},

		{"the weights are needed", func(x in) []variable {
			w := tensor.Softmax(scores(x))
			return []variable{tensor.Matmul(w, x.v), w}
		}, "Matmul; Softmax; Matmul"},
		{"the scores are needed", func(x in) []variable {
			s := scores(x)
			return []variable{tensor.Matmul(tensor.Softmax(tensor.Add(s, x.mask)), x.v), s}
		}, "Matmul; add; Softmax; Matmul"},
		{"a logarithm", func(x in) []variable { return []variable{tensor.Matmul(tensor.LogSoftmax(scores(x)), x.v)} }, "Matmul; LogSoftmax; Matmul"},
		{"other rows", func(x in) []variable {
			w := flat(tensor.Softmax(flat(scores(x), 2, 4, 7, 5)), 2, 4, 5, 7)
			return []variable{tensor.Matmul(w, x.v)}
		}, "Matmul; Reshape{4}; Softmax; Reshape{4}; Matmul"},
		{"turned weights", func(x in) []variable {
			w := tensor.DimShuffle(tensor.Softmax(scores(x)), 0, 1, 3, 2)
			return []variable{tensor.Matmul(w, tensor.Matmul(tensor.DimShuffle(w, 0, 1, 3, 2), x.v))}
		}, "Matmul; Softmax; Matmul; Matmul"},
		{"no product", func(x in) []variable { return []variable{tensor.Matmul(tensor.Softmax(x.mask), x.v)} }, "Softmax; Matmul"},
		{"queries that are broadcast", func(x in) []variable {
			x.q = tensor.Subtensor(x.q, tensor.SliceOf(tensor.Int(0), tensor.Int(1), 1))
			return []variable{tensor.Matmul(tensor.Softmax(scores(x)), x.v)}
		}, "Subtensor{0:1}; Matmul; Softmax; Matmul"},
		{"float64s", func(x in) []variable {
			return []variable{tensor.Matmul(tensor.Softmax(tensor.Cast(scores(x), array.Float64)), x.v)}
		}, "Matmul; cast{float64}; Softmax; Matmul"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, 6))
			shapes := [][]int{{2, 4, 5, 8}, {2, 4, 7, 8}, {2, 4, 7, 6}, {2, 1, 5, 7}}
			var inputs []variable
			var args []*array.Array
			for i, s := range shapes {
				inputs = append(inputs, fgraph.NewInput(tensor.NewType(array.Float32, s...), string("qkvm"[i])))
				args = append(args, tensor.ConstantOf(float32s(r, s...)))
			}
			outputs := c.build(in{inputs[0], inputs[1], inputs[2], inputs[3]})
			g, err := tensor.NewGraph(inputs, outputs)
			if err != nil {
				t.Fatal(err)
			}
			rewritetest.Run(t, rewrite.NewSequence("attention", tensorpass.Pass("composite_elemwise_fusion"), tensorpass.Pass("attention")), g)
			if got := opsOf(g); got != c.want {
				t.Errorf("%s left, want %s", got, c.want)
			}
			sameBits(t, inputs, outputs, g, args)
		})
	}
}

// sameBits fails the test unless an optimized graph computes the bits of the outputs that it was made of.
func sameBits(t *testing.T, inputs, outputs []variable, g *fgraph.FunctionGraph, args []*array.Array) {
	t.Helper()
	plain, err := exec.NewFunction(t.Context(), inputs, outputs, exec.FunctionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := exec.CompileGraph(g)
	if err != nil {
		t.Fatal(err)
	}
	want, err := plain.Call(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Call(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if !array.Equal(got[i], want[i]) {
			t.Errorf("output %d: %v, not %v", i, got[i], want[i])
		}
	}
}
