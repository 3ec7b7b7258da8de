package tensorpass_test

import (
	"math"
	"math/rand/v2"
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

// normalized returns a matrix whose products with normal rows are about normal.
func normalized(r *rand.Rand, rows, cols int) variable {
	a := normals(r, rows, cols)
	for i := range a.Len() {
		a.SetFloat(i, a.Float(i)/math.Sqrt(float64(rows)))
	}
	return tensor.Constant(a)
}

// A cell is a network of one step with a state, or none.
type cell struct {
	name    string
	inputs  [][]int // shapes: x, then states
	build   func(r *rand.Rand, in []variable) (out variable, states []variable)
	smaller bool // whether products need more bits than 8 for it
}

// reservoir forgets its state so slowly that errors of many calls add up.
func reservoir(r *rand.Rand, in []variable) (variable, []variable) {
	x, h := in[0], in[1]
	h = tensor.Mul(tensor.Number(1.5, h), tensor.Dot(h, normalized(r, 96, 96)))
	h = tensor.Tanh(tensor.Add(h, tensor.Dot(x, normalized(r, 64, 96))))
	return tensor.Dot(h, normalized(r, 96, 16)), []variable{h}
}

var cells = []cell{
	{"a chain", [][]int{{4, 64}}, func(r *rand.Rand, in []variable) (variable, []variable) {
		x := in[0]
		for range 3 {
			x = tensor.Tanh(tensor.Dot(x, normalized(r, 64, 64)))
		}
		return x, nil
	}, false},
	{"a small probability", [][]int{{1, 64}}, func(r *rand.Rand, in []variable) (variable, []variable) {
		x := tensor.Tanh(tensor.Dot(in[0], normalized(r, 64, 64)))
		x = tensor.Tanh(tensor.Dot(x, normalized(r, 64, 64)))
		x = tensor.Mul(tensor.Number(4, x), tensor.Dot(x, normalized(r, 64, 1)))
		return tensor.Sigmoid(tensor.Sub(x, tensor.Number(6, x))), nil
	}, true},
	{"a state", [][]int{{1, 64}, {1, 96}}, reservoir, true},
}

// TestErrorOfOtherInputs: on inputs of kinds that the trial does not have, and after many calls that hand on
// their state, errors are at most what the limit says.
func TestErrorOfOtherInputs(t *testing.T) {
	const limit = 0.08
	for _, c := range cells {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 4))
			var in []variable
			for i, shape := range c.inputs {
				in = append(in, fgraph.NewInput(tensor.NewType(array.Float32, shape...), string(rune('x'+i))))
			}
			out, states := c.build(r, in)
			outs := append([]variable{out}, states...)
			exact, err := exec.NewFunction(t.Context(), in, outs, exec.FunctionOptions{})
			if err != nil {
				t.Fatal(err)
			}
			f, text := integersOf(t, in, outs)
			if c.smaller != strings.Contains(text, "int16") {
				t.Errorf("products with 16 bits: %t, and should be %t: %s", !c.smaller, c.smaller, text)
			}
			want, got := call(t, exact, zeros(c.inputs)...), call(t, f, zeros(c.inputs)...)
			for step := range 300 {
				x := array.New(array.Float32, c.inputs[0]...)
				gain := math.Exp(r.NormFloat64())
				for i := range x.Len() {
					x.SetFloat(i, gain*(2*r.Float64()-0.7))
				}
				want, got = call(t, exact, append([]*array.Array{x}, want[1:]...)...), call(t, f, append([]*array.Array{x}, got[1:]...)...)
				for i := range want {
					diff, norm := 0.0, 0.0
					for k := range want[i].Len() {
						d, w := got[i].Float(k)-want[i].Float(k), want[i].Float(k)
						diff, norm = diff+d*d, norm+w*w
					}
					if e := math.Sqrt(diff / norm); e > limit {
						t.Fatalf("call %d: output %d is off by %.3f of its norm", step, i, e)
					}
				}
			}
		})
	}
}

// TestCarriedError: products of a network that hands on a state have more bits than those of the same one
// that does not.
func TestCarriedError(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	in := []variable{
		fgraph.NewInput(tensor.NewType(array.Float32, 1, 64), "x"),
		fgraph.NewInput(tensor.NewType(array.Float32, 1, 96), "h"),
	}
	out, states := reservoir(r, in)
	_, without := integersOf(t, in, []variable{out})
	_, with := integersOf(t, in, append([]variable{out}, states...))
	if a, b := strings.Count(without, "int8"), strings.Count(with, "int8"); a <= b {
		t.Errorf("%d products have 8 bits, and %d if a state is handed on", a, b)
	}
}

// integersOf returns what computes outputs with integers, and its graph as text.
func integersOf(t *testing.T, in, outs []variable) (*exec.Function, string) {
	t.Helper()
	g, err := tensor.NewGraph(in, outs)
	if err != nil {
		t.Fatal(err)
	}
	var list []rewrite.GraphRewriter
	for _, name := range []string{"local_dot_to_dot22", "products_to_int8", "limit_integer_error"} {
		list = append(list, tensorpass.Pass(name))
	}
	rewritetest.Run(t, rewrite.NewSequence("integers", list...), g)
	f, err := exec.CompileGraph(g)
	if err != nil {
		t.Fatal(err)
	}
	return f, g.String()
}

func zeros(shapes [][]int) (list []*array.Array) {
	for _, shape := range shapes {
		list = append(list, array.New(array.Float32, shape...))
	}
	return list
}

// call returns copies of the outputs.
func call(t *testing.T, f *exec.Function, in ...*array.Array) (list []*array.Array) {
	t.Helper()
	out, err := f.Call(t.Context(), in...)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range out {
		list = append(list, a.Clone())
	}
	return list
}
