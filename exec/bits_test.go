package exec_test

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/kernel/kerneltest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

var update = flag.Bool("update", false, "rewrite the checksums in testdata")

// bitCases are expressions of X (7×33), Y (33×20), x (33), y (20), z (7) and s.
var bitCases = []string{
	"X + x*s - x/(s + 9)", "X*X*x + X", "sqrt(abs(X))", "X**2.5", "abs(X)**x", "exp(X)", "exp2(X)", "expm1(X)", "log(abs(X) + 0.1)", "log2(abs(X) + 0.1)", "log10(abs(X) + 0.1)", "log1p(abs(X))",
	"sigmoid(X)", "softplus(X)", "tanh(X)", "sinh(X)", "cosh(X)", "sin(X)", "cos(X)", "sin(X*1e9)", "tan(X)", "arcsin(X/8)", "arccos(X/8)", "arctan(X)", "arctan2(X, x)",
	"arcsinh(X)", "arccosh(abs(X) + 1)", "arctanh(X/9)", "erf(X)", "erfc(X)", "floor(X)", "round(X)", "X % 0.7", "X // 0.7", "cast(X*1e18, int64)*3",
	"sum(X)", "sum(X, axis=0)", "sum(X, axis=1)", "sum(X.T, axis=0)", "mean(X, axis=1)", "prod(X/3, axis=0)", "max(X, axis=0)", "logsumexp(X, axis=1)", "argmax(X, axis=1)",
	"dot(X, Y)", "dot(Y.T, X.T)", "dot(X.T, X)", "dot(X[:, ::2], Y[1:18])", "dot(X, x)", "dot(x, Y)", "dot(z, X)", "dot(x, x)", "outer(x, y)",
	"softmax(X)", "log_softmax(X)", "grad(sum(softmax(dot(X, Y))**2), X)", "grad(sum(tanh(dot(X, Y) + y)**2), Y)", "grad(sum(log(1 + exp(dot(X, x)))), x)",
	"grad(sum(erf(X)*sin(x)), X)", "grad(sum(sqrt(sum(X**2, axis=1))), X)", "grad(sum(x**s), s)", "grad(logsumexp(X*s), X)",
	"gamma(X)", "gammaln(X)", "psi(X)", "polygamma(2, X)", "erfinv(X/9)", "erfcinv(abs(X)/9)", "log1mexp(-abs(X))", "cbrt(X)", "erfcx(X)", "hypot(X, x)", "xlogy(X, abs(x))", "xlog1py(X, abs(x))", "sinc(X)",
	"cumsum(X, axis=0)", "cumprod(X, axis=1)", "sort(X, axis=0)", "argsort(X, axis=1)", "argmin(X, axis=0)", "var(X, axis=0, ddof=1)", "matmul(X*reshape(z, 7, 1, 1), Y)",
	"matmul(X*reshape(z, 7, 1, 1), Y*reshape(z, 7, 1, 1))", "einsum('ij,jk,ik->k', X, Y, dot(X, Y))", "grad(sum(gammaln(X)*psi(X)), X)",
	"Gemm(dot(X, Y), s, X, Y, 0.5)", "1.5*dot(X, Y) + 0.5*outer(z, y)", "z*0.3 + s*dot(X, x)", "outer(z, y)*s + dot(X, Y)",
	"conv(X[None], reshape(Y[:28], 16, 7, 5), pads=2)", "conv(X[None], reshape(Y[:28], 16, 7, 5), strides=3)", "conv(reshape(X[:6], 1, 1, 11, 18), reshape(Y[:9], 20, 1, 3, 3), pads=1)",
	"conv(X[None], reshape(Y[:7, :3], 7, 1, 3), groups=7, pads=1)", "conv_transpose(X[None], reshape(Y[:28], 7, 16, 5), strides=2)",
	"grad(sum(conv(X[None], reshape(Y[:28], 16, 7, 5), pads=2)**2), Y)", "grad(sum(conv(X[None], reshape(Y[:7, :3], 7, 1, 3), groups=7, strides=2)**2), X)",
	"max_pool(X[None], 3)", "average_pool(X[None], 5, pads=2, strides=2)", "lp_pool(X[None], 3)", "grad(sum(average_pool(X[None], 3, pads=1)**2), X)", "resize(X, sizes=[9, 50], mode='linear')",
}

// TestSameBits: functions of tensors, optimized or not, have the bits of the checksums in testdata
// on every processor.
func TestSameBits(t *testing.T) {
	if !kernel.HasDGemm() {
		t.Skip("products are gonum's, whose bits are others")
	}
	var c kerneltest.Checksums
	for _, dtype := range []array.DType{array.Float64, array.Float32} {
		r := rand.New(rand.NewPCG(1, 2))
		var in []*array.Array
		for _, shape := range [][]int{{7, 33}, {33, 20}, {33}, {20}, {7}, {}} {
			a := array.New(dtype, shape...)
			for i, v := range kerneltest.Numbers(r, a.Len()) {
				a.SetFloat(i, float64(v))
			}
			in = append(in, a)
		}
		for _, text := range bitCases {
			s := expr.NewScope()
			if err := s.Declare("X Y: " + dtype.String() + " matrix; x y z: " + dtype.String() + " vector; s: " + dtype.String() + " scalar"); err != nil {
				t.Fatal(err)
			}
			for _, query := range []string{"", "+fast_run"} {
				out, err := s.Parse(text)
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				var opts exec.FunctionOptions
				if query != "" {
					opts.Optimizer = fastRun(t)
				}
				f, err := exec.NewFunction(t.Context(), s.Inputs(), out, opts)
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				values, err := f.Call(t.Context(), in...)
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				for _, v := range values {
					c.Float64s(dtype.String()+query+":"+strings.ReplaceAll(text, " ", ""), v.Floats()...)
				}
			}
		}
	}
	preparedBits(t, &c)
	c.Golden(t, "testdata/bits.txt", "functions of tensors", *update)
}

// preparedBits computes products and convolutions of float32s with constant factors, which passes
// make others of.
func preparedBits(t *testing.T, c *kerneltest.Checksums) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	numbers := func(shape ...int) *fgraph.Variable {
		a := array.New(array.Float32, shape...)
		for i, v := range kerneltest.Numbers(r, a.Len()) {
			a.SetFloat(i, float64(v))
		}
		return tensor.Constant(a)
	}
	relu := func(x *fgraph.Variable) *fgraph.Variable { return tensor.Maximum(x, tensor.Number(0, x)) }
	one := tensor.Slide{Before: []int{1, 1}, After: []int{1, 1}}
	x := fgraph.NewInput(tensor.NewType(array.Float32, 1, 21, 13, 11), "x")
	y := relu(tensor.Conv(x, numbers(40, 21, 3, 3), numbers(40), one, 1))
	z := tensor.Mul(tensor.Conv(y, numbers(40, 1, 3, 3), numbers(40), one, 40), numbers(1, 40, 1, 1))
	z = relu(tensor.Add(tensor.Conv(z, numbers(40, 40, 1, 1), numbers(40), tensor.Slide{}, 1), y))
	rows := tensor.Reshape(z, tensor.Int(1), tensor.Int(40), tensor.Int(143))
	product := tensor.Matmul(tensor.Join(-1, rows, tensor.Exp(rows)), numbers(286, 70))
	arg := tensor.ConstantOf(numbers(1, 21, 13, 11))
	for name, v := range map[string]*fgraph.Variable{
		"conv": y, "residual": z, "max_pool": tensor.MaxPool(z, []int{3, 3}, one, false), "average_pool": tensor.AveragePool(z, []int{3, 3}, one, false, false),
		"splice": tensor.Sigmoid(tensor.Add(product, numbers(70))),
	} {
		for _, query := range []string{"", "+fast_run"} {
			var opts exec.FunctionOptions
			if query != "" {
				opts.Optimizer = fastRun(t)
			}
			f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x}, []*fgraph.Variable{v}, opts)
			if err != nil {
				t.Fatal(err)
			}
			values, err := f.Call(t.Context(), arg)
			if err != nil {
				t.Fatal(err)
			}
			c.Float64s("prepared"+query+":"+name, values[0].Floats()...)
		}
	}
}

// TestSameBitsEverySet is TestSameBits with every set of kernels.
func TestSameBitsEverySet(t *testing.T) { kerneltest.EachSet(t, "TestSameBits") }
