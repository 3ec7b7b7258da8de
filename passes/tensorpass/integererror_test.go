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

// limited runs products_to_int8 and limit_integer_error with a limit.
func limited(t *testing.T, g *fgraph.FunctionGraph, limit string) {
	t.Helper()
	pass, err := tensorpass.Pass("limit_integer_error").(rewrite.Configurable).Configured("error", limit)
	if err != nil {
		t.Fatal(err)
	}
	rewritetest.Run(t, rewrite.NewSequence("limited", tensorpass.Pass("products_to_int8"), pass.(rewrite.GraphRewriter)), g)
}

// deep is a chain of products and functions that are not linear, of x.
func deep(r *rand.Rand, x variable) variable {
	for range 5 {
		x = tensor.Tanh(tensor.Mul(tensor.Number(0.4, x), tensor.Matmul(x, float32s(r, 64, 64))))
	}
	return x
}

// measured returns the error of a graph for a normal input, relative to the norm without the mean of each
// row.
func measured(t *testing.T, g *fgraph.FunctionGraph, x, out variable, arg *array.Array) float64 {
	t.Helper()
	plain, err := exec.NewFunction(t.Context(), []variable{x}, []variable{out}, exec.FunctionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := exec.CompileGraph(g)
	if err != nil {
		t.Fatal(err)
	}
	want, err := plain.Call(t.Context(), arg)
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Call(t.Context(), arg)
	if err != nil {
		t.Fatal(err)
	}
	diff, norm := 0.0, 0.0
	cols := want[0].Dim(want[0].NDim() - 1)
	for at := 0; at < want[0].Len(); at += cols {
		d, w := make([]float64, cols), make([]float64, cols)
		for j := range cols {
			w[j] = want[0].Float(at + j)
			d[j] = got[0].Float(at+j) - w[j]
		}
		diff, norm = diff+variation(d), norm+variation(w)
	}
	return math.Sqrt(diff / norm)
}

func variation(v []float64) float64 {
	mean, sum := 0.0, 0.0
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		sum += (x - mean) * (x - mean)
	}
	return sum
}

// normals returns normal numbers.
func normals(r *rand.Rand, shape ...int) *array.Array {
	a := array.New(array.Float32, shape...)
	for i := range a.Len() {
		a.SetFloat(i, r.NormFloat64())
	}
	return a
}

// TestLimitIntegerError: with smaller limits products get 16 bits, and then float32s, and on other
// random inputs the error is about what the limit says.
func TestLimitIntegerError(t *testing.T) {
	for _, c := range []struct {
		limit string
		most  float64
		want  string // the precisions, in order
	}{
		{"0", 1, "int8 int8 int8 int8 int8"},
		{"0.5", 0.5, "int8 int8 int8 int8 int8"},
		{"0.01", 0.01, "some"},
		{"0.002", 0.002, "some"},
		{"1e-5", 1e-5, "float32 float32 float32 float32 float32"},
	} {
		t.Run(c.limit, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			x := fgraph.NewInput(tensor.NewType(array.Float32, 2, 20, 64), "x")
			out := deep(r, x)
			g, err := tensor.NewGraph([]variable{x}, []variable{out})
			if err != nil {
				t.Fatal(err)
			}
			limited(t, g, c.limit)
			var list []string
			for a := range g.Ordered() {
				switch op := a.Op().(type) {
				case tensor.IntegersOp:
					list = append(list, op.Precision().String())
				case tensor.MatmulOp:
					list = append(list, "float32")
				}
			}
			got := strings.Join(list, " ")
			if c.want == "some" {
				if !slices.Contains(list, "int16") || strings.Count(got, "float32") > 1 {
					t.Errorf("precisions are %s", got)
				}
			} else if got != c.want {
				t.Errorf("precisions are %s, want %s", got, c.want)
			}
			if e := measured(t, g, x, out, normals(r, 2, 20, 64)); e > 1.2*c.most {
				t.Errorf("the error is %v, with %s", e, got)
			}
		})
	}
}

// TestLimitWithIndexes: a table that an input indexes is read within its bounds, and a softmax is compared
// by its argument.
func TestLimitWithIndexes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	ids := fgraph.NewInput(tensor.NewType(array.Int64, 12), "ids")
	x := tensor.Take(float32s(r, 50, 64), ids)
	logits := deep(r, tensor.Reshape(x, tensor.Int(1), tensor.Int(12), tensor.Int(64)))
	logits = tensor.Mul(tensor.Number(100, logits), logits)
	g, err := tensor.NewGraph([]variable{ids}, []variable{tensor.Softmax(tensor.Reshape(logits, tensor.Int(12), tensor.Int(64)))})
	if err != nil {
		t.Fatal(err)
	}
	limited(t, g, "0.001")
	if got := g.String(); !strings.Contains(got, "int16") {
		t.Errorf("no product has more bits: %s", got)
	}
}

// TestNoTrial: what can't be computed on random inputs stays as it is.
func TestNoTrial(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, x := range map[string]variable{
		"a size that is not known":   fgraph.NewInput(tensor.NewType(array.Float32, 1, 4, tensor.Unknown), "x"),
		"an input that is too large": fgraph.NewInput(tensor.NewType(array.Float32, 1<<24, 4, 64), "z"),
		"something that fails":       fgraph.NewInput(tensor.NewType(array.Float32, 1, 4, 64), "y"),
	} {
		out := deep(r, x)
		if name == "something that fails" {
			out = tensor.Assert(out, "no", tensor.Map(array.Gt, tensor.Sum(x), tensor.Number(1e9, tensor.Sum(x))))
		}
		g, err := tensor.NewGraph([]variable{x}, []variable{out})
		if err != nil {
			t.Fatal(err)
		}
		limited(t, g, "1e-9")
		if got := strings.Count(g.String(), "int8"); got != 5 {
			t.Errorf("%s: %d of 5 products have 8 bits: %v", name, got, g)
		}
	}
}

// TestErrorSetting: the limit is a number of at least 0.
func TestErrorSetting(t *testing.T) {
	p := tensorpass.Pass("limit_integer_error").(rewrite.Configurable)
	for _, value := range []string{"-1", "much", "NaN", "Inf"} {
		if _, err := p.Configured("error", value); err == nil {
			t.Errorf("%s is a limit", value)
		}
	}
	if s := p.Settings(); len(s) != 1 || s[0].Value != "0.08" || s[0].Default != "0.08" {
		t.Errorf("settings: %v", s)
	}
}
