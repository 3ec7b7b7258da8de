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

// termCases are graphs of x, [2, 5, 6], and v, [2, 1, 3], with the ops that multiply_rows_once and
// order_product_terms leave, without DimShuffles.
var termCases = []struct {
	name  string
	build func(r *rand.Rand, x, v variable) variable
	want  string
	first string // the op of the first term of the sum
}{
	{"columns with equal rows", func(r *rand.Rand, x, v variable) variable {
		all := tensor.Alloc(v, tensor.Int(2), tensor.Int(5), tensor.Int(3))
		return tensor.Add(tensor.Matmul(tensor.Join(-1, x, all, tensor.Exp(x)), float32s(r, 15, 4)), float32s(r, 4))
	}, "Matmul; exp; Join{2}; Matmul; add", "Matmul"},
	{"columns alone", func(r *rand.Rand, x, v variable) variable {
		return tensor.Matmul(tensor.Alloc(v, tensor.Int(2), tensor.Int(5), tensor.Int(3)), float32s(r, 3, 4))
	}, "Alloc; Matmul", ""},
	{"columns that differ in rows", func(r *rand.Rand, x, v variable) variable {
		return tensor.Matmul(tensor.Join(-1, x, tensor.Exp(x)), float32s(r, 12, 4))
	}, "exp; Join{2}; Matmul", ""},
	{"columns that others read", func(r *rand.Rand, x, v variable) variable {
		joined := tensor.Join(-1, x, tensor.Alloc(v, tensor.Int(2), tensor.Int(5), tensor.Int(3)))
		return tensor.Dot(tensor.Reshape(tensor.Matmul(joined, float32s(r, 9, 4)), tensor.Int(4), tensor.Int(10)), tensor.Reshape(joined, tensor.Int(10), tensor.Int(9)))
	}, "Alloc; Join{2}; Matmul; Reshape{2}; Reshape{2}; dot", ""},
	{"a product behind a residual and a bias", func(r *rand.Rand, x, v variable) variable {
		y := tensor.Maximum(tensor.Matmul(x, float32s(r, 6, 6)), tensor.Number(0, x))
		return tensor.Add(float32s(r, 1, 1, 6), tensor.Mul(tensor.Number(0.5, x), x), tensor.Mul(y, float32s(r, 1, 1, 6)))
	}, "mul; Matmul; maximum; mul; add", "mul"},
	{"a product that comes first", func(r *rand.Rand, x, v variable) variable {
		return tensor.Add(tensor.Matmul(x, float32s(r, 6, 6)), float32s(r, 1, 1, 6), x)
	}, "Matmul; add", "Matmul"},
	{"a product that others read", func(r *rand.Rand, x, v variable) variable {
		y := tensor.Matmul(x, float32s(r, 6, 6))
		return tensor.Add(float32s(r, 1, 1, 6), x, y, tensor.Matmul(y, float32s(r, 6, 6)))
	}, "Matmul; Matmul; add", "Matmul"},
}

// TestProductTerms: the passes that put products first change the graphs that they should, and results
// by roundings only.
func TestProductTerms(t *testing.T) {
	for _, c := range termCases {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			x := fgraph.NewInput(tensor.NewType(array.Float32, 2, 5, 6), "x")
			v := fgraph.NewInput(tensor.NewType(array.Float32, 2, 1, 3), "v")
			out := c.build(r, x, v)
			plain, err := exec.NewFunction(t.Context(), []variable{x, v}, []variable{out}, exec.FunctionOptions{})
			if err != nil {
				t.Fatal(err)
			}
			g, err := tensor.NewGraph([]variable{x, v}, []variable{out})
			if err != nil {
				t.Fatal(err)
			}
			rewritetest.Run(t, rewrite.NewSequence("terms", tensorpass.Pass("multiply_rows_once"), tensorpass.Pass("local_add_mul_fusion"), tensorpass.Pass("order_product_terms")), g)
			if got := opsOf(g); got != c.want {
				t.Errorf("%s left, want %s", got, c.want)
			}
			if a := g.Outputs()[0].Owner(); c.first != "" && a.Inputs()[0].Owner().Op().String() != c.first {
				t.Errorf("%v does not begin with %s", a, c.first)
			}
			ordered, err := exec.CompileGraph(g)
			if err != nil {
				t.Fatal(err)
			}
			args := []*array.Array{tensor.ConstantOf(float32s(r, 2, 5, 6)), tensor.ConstantOf(float32s(r, 2, 1, 3))}
			want, err := plain.Call(t.Context(), args...)
			if err != nil {
				t.Fatal(err)
			}
			got, err := ordered.Call(t.Context(), args...)
			if err != nil {
				t.Fatal(err)
			}
			if !near(got[0], want[0]) {
				t.Errorf("%v, not %v", got[0], want[0])
			}
		})
	}
}

// near reports whether two arrays have one shape, and elements that differ by a few roundings.
func near(a, b *array.Array) bool {
	if !array.SameShape(a, b) {
		return false
	}
	for i := range a.Len() {
		if x, y := a.Float(i), b.Float(i); math.Abs(x-y) > 1e-5*(1+math.Abs(y)) {
			return false
		}
	}
	return true
}

// TestMergeOrders: sums and products of the same terms in another order are one with merge_orders, which -reassoc
// leaves out, since the sum of three floats depends on their order.
func TestMergeOrders(t *testing.T) {
	turns(t, unfused,
		turn{"[x + y + z, z + y + x]", "*1 -> add(z, y, x), *1"},
		turn{"[x*y*z, y*x*z]", "*1 -> mul(x, y, z), *1"},
		turn{"[x + y + z, z + y + w]", "add(x, y, z), add(z, y, w)"},
	)
	turns(t, unfused+" -reassoc",
		turn{"[x + y + z, z + y + x]", "add(x, y, z), add(z, y, x)"},
		turn{"[x + y, y + x]", "*1 -> add(x, y), *1"},
	)
}
