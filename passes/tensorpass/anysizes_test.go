package tensorpass_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// TestAnySizesBits: a function of unknown sizes has the bits of one for the sizes, where a size is a number, an
// exponent or decides something, where a slice happens to have one element, and where there is one or none at all.
func TestAnySizesBits(t *testing.T) {
	const vars = "x y: float64[a]; X: float64[a, b]; Y: float64[b, a]; F: float32[a, b]; f: float32[b]"
	opt := passtest.Optimizer(t, "+fast_run")
	compile := func(text string, a, b string) *exec.Function {
		scope := expr.NewScope()
		if err := scope.Declare(strings.NewReplacer("[a", "["+a, ", a", ", "+a, "[b", "["+b, ", b", ", "+b).Replace(vars)); err != nil {
			t.Fatal(err)
		}
		out, err := scope.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		f, err := exec.NewFunction(t.Context(), scope.Inputs(), out, exec.FunctionOptions{Optimizer: opt})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	same := func(text string, all [][2]int) {
		f := compile(text, "?", "?")
		for _, sizes := range all {
			if strings.Contains(text, "Y[1:2, :]") && min(sizes[0], sizes[1]) < 2 {
				continue // of one row and none, one is broadcast only where the sizes are known
			}
			own := compile(text, strconv.Itoa(sizes[0]), strconv.Itoa(sizes[1]))
			var args []*array.Array
			for k, v := range own.Graph().Inputs() {
				args = append(args, spread(v, k))
			}
			got, err := f.Call(t.Context(), args...)
			if err != nil {
				t.Errorf("%s, %v: %v", text, sizes, err)
				continue
			}
			want, err := own.Call(t.Context(), args...)
			if err != nil {
				t.Fatal(err)
			}
			if !array.Equal(got[0], want[0]) {
				t.Errorf("%s, %v: %v\n%v\nand for these sizes %v\n%v", text, sizes, got[0], f, want[0], own)
			}
		}
	}
	small := [][2]int{{1, 4}, {4, 1}, {1, 1}, {0, 3}, {3, 0}}
	large := [][2]int{{3, 5}, {7, 4}, {3, 3}, {2, 4}, {4, 2}, {2, 2}}
	// Of several elements: sizes that happen to be equal, slices that happen to select all or one, and sizes that are 0.
	for _, text := range []string{
		"reshape(X - mean(X, axis=0, keepdims=True), [X.shape[1], X.shape[0]]) + Y", "sum(reshape(mean(X, axis=0), [Y.shape[0]]))",
		"mean(reshape(dot(X, Y), [X.shape[0], X.shape[0]])[:, :2], axis=1)", "reshape(x.shape[0]/x, [y.shape[0]])/7",
		"dot(X, Y)[X.shape[0]//2:]", "(dot(X, Y)*0.5 + 1)[X.shape[0]:1:-1]", "set_subtensor((x*3)[3::-1], 0)*x", "min(join(0, x, y)*join(0, x, y)*join(0, x, y).shape[0])",
		"dot(X, set_subtensor(Y[:, 0][:-3:-1], 1)*7)", "sqrt(y.shape[0])/Y.shape[1]", "(0.5*X)**(X[:X.shape[0]//2].shape[0]*Y.shape[0])",
		"sum((X/X)[:X.shape[0]//2, X.shape[1]//2::2] - 1, axis=1, keepdims=True)//sqr(x)", "1/mean(x - x)", "sgn(tril(3/X))", "mean(y[y.shape[0]//2:1:-1]*0)",
		"sum(alloc(y[0], x[1:2:-1].shape[0]))", "mean(arange(x.shape[0]))",
	} {
		same(text, large)
	}
	for _, text := range []string{
		"sqr(sqrt(x.shape[0]))", "log(sqrt(x.shape[0]))*x", "x**x.shape[0]", "X**(X.shape[0]*X.shape[1])", "x.shape[0]**x",
		"x*(x.shape[0] > 3)", "sum(switch(X.shape[1] > 3, 0.1, x))/x.shape[0]", "log1p(x) + (x.shape[0] - 3)", "x*(x.shape[0] - 3)",
		"X/arange(X.shape[1])", "x*prod(arange(x.shape[0]))", "sqrt(x.shape[0])**7", "x*sum(arange(x.shape[0])/7)/x.shape[0]",
		"dot(X[-3:-2], Y)", "dot(F[:2:2], f)", "dot(Y[:, 1:2].T, X.T)", "dot(X, Y[:, :1])", "X[:1] + dot(Y[1:2, :], X)",
		"sum(X[:2:2], axis=0)", "mean(F[:2:2], axis=0)",
		"x - mean(x)", "x/sum(x)", "F - mean(F, axis=1, keepdims=True)", "X/mean(X, axis=0)", "dot(X.T, X)", "dot(x, X)", "dot(X, Y)*0.5 + 1",
		"outer(x, y)", "logsumexp(X, axis=0)", "dot(F, F.T)*3", "mean(0*X + 1)", "-2*dot(x, y) + dot(x, y)",
	} {
		same(text, slices.Concat(large, small))
	}
}

// spread returns a value of a variable, with many digits and zeros of both signs.
func spread(v *fgraph.Variable, seed int) *array.Array {
	a := array.New(tensor.TypeOf(v).DType(), tensor.TypeOf(v).Shape()...)
	for i := range a.Len() {
		a.SetFloat(i, float64((i*7+seed*3+4)%11-5)/7)
	}
	for i := 0; i < a.Len(); i += 3 {
		a.SetFloat(i, math.Copysign(0, a.Float(i)))
	}
	return a
}
