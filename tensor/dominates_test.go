package tensor_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestBounds computes random terms of variables between bounds: no number is outside of what is known of it. Bounds are
// ends of the values that are drawn, so results meet them.
func TestBounds(t *testing.T) {
	unary := []array.Opcode{array.Neg, array.Abs, array.Sqr, array.Sqrt, array.Exp, array.Log, array.Sgn, array.Tanh, array.Sigmoid, array.Erf, array.Sin}
	binary := []array.Opcode{array.Add, array.Sub, array.Mul, array.TrueDiv, array.Maximum, array.Minimum}
	ends := []float64{math.Inf(-1), -70, -3, -1, -0.1, 0, 0.3, 1, 2, 80, math.Inf(1)}
	rng := rand.New(rand.NewPCG(1, 1))
	for _, d := range []array.DType{array.Float64, array.Float32, array.Float16} {
		for range 3000 {
			known := make(map[*fgraph.Variable][2]float64)
			number := array.New(d, 1)
			number.SetFloat(0, 1.5)
			terms := []*fgraph.Variable{tensor.Constant(number)}
			values := []*array.Array{number}
			for _, name := range []string{"x", "y"} {
				a := array.New(d, 16)
				from := rng.IntN(len(ends) - 1)
				to := from + rng.IntN(len(ends)-from)
				least, most := math.Inf(1), math.Inf(-1)
				for k := range a.Len() {
					x, y := max(ends[from], -1e4), min(ends[to], 1e4)
					a.SetFloat(k, x+float64(rng.Float64()*(y-x)))
					if k < 2 {
						a.SetFloat(k, ends[[]int{from, to}[k]])
					}
					least, most = min(least, a.Float(k)), max(most, a.Float(k))
				}
				v := fgraph.NewInput(tensor.VectorType(d), name)
				terms, values, known[v] = append(terms, v), append(values, a), [2]float64{least, most}
			}
			for range 4 {
				op := unary[rng.IntN(len(unary))]
				args := []int{rng.IntN(len(terms))}
				if rng.IntN(2) == 0 {
					op, args = binary[rng.IntN(len(binary))], append(args, rng.IntN(len(terms)))
				}
				var in, numbers []*fgraph.Variable
				for _, i := range args {
					in, numbers = append(in, terms[i]), append(numbers, tensor.Constant(values[i]))
				}
				out, err := tensor.Fold(t.Context(), tensor.Map(op, numbers...).Owner())
				if err != nil {
					t.Fatal(err)
				}
				terms, values = append(terms, tensor.Map(op, in...)), append(values, out[0])
			}
			v := terms[len(terms)-1]
			var bounds func(v *fgraph.Variable) (least, most float64)
			bounds = func(v *fgraph.Variable) (least, most float64) {
				if k, ok := known[v]; ok {
					return k[0], k[1]
				}
				return tensor.Bounds(v, bounds)
			}
			least, most := bounds(v)
			out := values[len(values)-1]
			for k := range out.Len() {
				if x := out.Float(k); x < least || x > most {
					t.Errorf("%s is %v, not from %v to %v, with %v", fgraph.Sprint(0, v), x, least, most, known)
				}
			}
		}
	}
}
