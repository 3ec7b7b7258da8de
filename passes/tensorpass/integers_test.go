package tensorpass_test

import (
	"math"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// TestIntegersWrap: integers wrap around in products and sums of integers, and nowhere else. Rules keep
// this at the ends of the range and where integers meet floats, and the same for float32s among
// float64s.
func TestIntegersWrap(t *testing.T) {
	testInteger(t, "int64", 16, map[string]*array.Array{
		"i": array.Of([]int64{4000000000, 3037000500, math.MinInt64, 2}, 4),
		"j": array.Of([]int64{4000000000, -4000000001, math.MinInt64, 0}, 4),
		"k": array.Of([]int64{math.MinInt64, 4611686018427387905, math.MaxInt64, 0}, 4),
		"l": array.Of([]int64{math.MaxInt64, math.MaxInt64, -1, math.MinInt64}, 4),
		"p": array.Of([]bool{true, true, false, false}, 4),
		"q": array.Of([]bool{true, false, true, false}, 4),
		"x": array.Of([]float64{1, -2.5, 1e10, 0.1}, 4),
		"y": array.Of([]float64{3, 0.5, -7, 1e-3}, 4),
		"f": array.Of([]float32{16777216, -0.1, 3e38, 0.5}, 4),
		"g": array.Of([]float32{1, 0.3, 3e38, 0.5}, 4),
		"I": array.Of([]int64{math.MaxInt64, math.MaxInt64, math.MinInt64, math.MinInt64}, 2, 2),
		"F": array.Of([]float32{16777216, 1, 3e38, 3e38}, 2, 2),
		"X": array.Of([]float64{1, 2, 3, 4}, 2, 2),
		"s": array.Scalar(0.5),
	})
}

// TestSmallIntegersWrap is TestIntegersWrap for smaller types, which wrap around sooner: also next to
// larger ones, and where they become floats.
func TestSmallIntegersWrap(t *testing.T) {
	for dtype, columns := range map[string][4][]int64{
		"int8":  {{100, 12, -128, 2}, {100, -101, -128, 0}, {-128, 65, 127, 0}, {127, 127, -1, -128}},
		"uint8": {{100, 16, 255, 2}, {200, 101, 128, 0}, {128, 65, 255, 0}, {127, 255, 1, 254}},
		"int32": {{100000, 46341, math.MinInt32, 2}, {100000, -100001, math.MinInt32, 0}, {math.MinInt32, 1<<30 + 1, math.MaxInt32, 0}, {math.MaxInt32, math.MaxInt32, -1, math.MinInt32}},
	} {
		d, _ := array.ParseDType(dtype)
		vector := func(k int) *array.Array { return array.Of(columns[k], 4).Cast(d) }
		testInteger(t, dtype, 48, map[string]*array.Array{
			"i": vector(0), "j": vector(1), "k": vector(2), "l": vector(3),
			"p": array.Of([]bool{true, true, false, false}, 4),
			"q": array.Of([]bool{true, false, true, false}, 4),
			"x": array.Of([]float64{1, -2.5, 1e10, 0.1}, 4),
			"y": array.Of([]float64{3, 0.5, -7, 1e-3}, 4),
			"f": array.Of([]float32{16777216, -0.1, 3e38, 0.5}, 4),
			"g": array.Of([]float32{1, 0.3, 3e38, 0.5}, 4),
			"I": array.Of([]int64{columns[3][0], columns[3][0], 1, 2}, 2, 2).Cast(d),
			"F": array.Of([]float32{16777216, 1, 3e38, 3e38}, 2, 2),
			"X": array.Of([]float64{1, 2, 3, 4}, 2, 2),
			"s": array.Scalar(0.5),
		})
	}
}

// testInteger compares expressions of integers of a type, i, j, k, l and I, with what they are
// without rules: every one of a few pairs of expression and query, or all with -long.
func testInteger(t *testing.T, dtype string, few int, args map[string]*array.Array) {
	t.Helper()
	vars := strings.ReplaceAll("i j k l: int64 vector; p q: bool vector; x y: vector; f g: float32 vector; I: int64 matrix; F: float32 matrix; X: matrix; s: scalar", "int64", dtype)
	for i, text := range integerTexts {
		for k, query := range []string{"+fast_run", "+fast_run -fusion -inplace", "+fast_run -canonicalize", "+fast_compile"} {
			if !longtest.Enabled() && (i+k)%few != 0 || dtype != "int64" && moreExact[text] {
				continue
			}
			s := expr.NewScope()
			if err := s.Declare(vars); err != nil {
				t.Fatal(err)
			}
			out, err := s.Parse(text)
			if err != nil {
				t.Errorf("%s: %v", text, err)
				break
			}
			var in []*array.Array
			for _, v := range s.Inputs() {
				in = append(in, args[v.Name()])
			}
			plain, err := exec.NewFunction(t.Context(), s.Inputs(), out, exec.FunctionOptions{})
			if err != nil {
				t.Fatal(err)
			}
			f, err := exec.NewFunction(t.Context(), s.Inputs(), out, exec.FunctionOptions{Optimizer: passtest.Optimizer(t, query)})
			if err != nil {
				t.Fatal(err)
			}
			want, err := plain.Call(t.Context(), in...)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			got, err := f.Call(t.Context(), in...)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if !closeTo(got[0], want[0]) {
				t.Errorf("%s: %s, %s: %v is %v, want %v", dtype, text, query, f, got[0], want[0])
			}
		}
	}
}

// moreExact are expressions in which typed digits of small arguments cancel, and those of rules do
// not.
var moreExact = map[string]bool{"1 - sigmoid(k)": true, "log(sigmoid(k))": true, "log(1 - sigmoid(k))": true}

// integerTexts are expressions whose integers wrap around, or must not.
var integerTexts = []string{
	"i**2.0", "sum(i**2.0)", "i**-1", "i**-2", "i**0.5", "i**-0.5", "i**3.0", "i**2", "i**j", "i**2.0*i**3.0", "i*i**2.0", "f**[2.0, 2.0, 2.0, 2.0]", "f**[-2.0, -2.0, -2.0, -2.0]",
	"abs(i)*abs(j)", "abs(i*j)", "abs(k)/abs(i)", "abs(k/i)", "abs(k*x)", "abs(k)*abs(x)*2", "abs(abs(k))", "k/abs(k + 1)", "l/abs(l)",
	"1.0*i*j", "i*1.0*j", "i*j*1.0", "x*i*j/x", "x*i*k/x/y", "x + i + j - x", "x - i + k - x - y + y", "0.0 + i + k", "add(0.0, i, k)", "mul(1.0, i, k)",
	"x*f*g/x", "x + f + g - x", "mul(f, g, [1.0, 1.0, 1.0, 1.0])", "add(f, g, [0.0, 0.0, 0.0, 0.0])", "true_div([1.0, 1.0, 1.0, 1.0], f)",
	"-k", "-(-k)", "-(k*i)", "x*-k", "-k*-l", "-i*-x", "x - -k", "x + -k", "-k + x - y", "mul(-1.0, k)", "mul(-1, k)", "-((-k)/x)", "-(0/k)",
	"x*(i*k + x)", "(i*k + x)*y*x", "(i*k/x + y)*x", "i*k - i*l", "i*(k + l) - i*k", "k - k", "(k + l) - k", "2*k*3 - k*6", "k + 9007199254740993 + x",
	"exp(k)*exp(l)", "exp(i)/exp(i)", "exp(k - k)*exp(l)", "1/(1 + exp(k))", "1/(1 + exp(-k))", "log(1 + l)", "log(1 - k)", "log(1 + x*i*j/x)", "sigmoid(k)*exp(-k)",
	"1 - sigmoid(k)", "log(sigmoid(k))", "log(1 - sigmoid(k))", "i*k/(1 + exp(x))", "exp(x)*i*k/(1 + exp(x))",
	"switch(p, i, x)*switch(p, k, y)", "switch(p, i, x) + switch(p, k, y)", "switch(p, k, x) < switch(p, k + 1, y)", "i*switch(p, 0.0, k)", "switch(p, 0.0, k)//i", "switch(p, 0.0, i)/k",
	"sum(k/2.0)", "sum(2.0*k)", "sum(-k)", "sum(s*k)", "sum(I/x[:2], axis=0)", "sum(I*s, axis=0)", "sum(F*s, axis=0)", "sum(F/x[:2], axis=0)", "sum(I*X[0][:, None], axis=1)", "sum(p*i)", "sum(-p)", "sum(s*p)",
	"-max(-k)", "-min(-k)", "-max(-p)", "argmax([9007199254740992, 9007199254740993])", "max(k)", "min(k)", "prod(I, axis=0)", "sum(sum(I, axis=0))", "sum(stack([i, k]), axis=0)", "sum([i[0], k[0]])",
	"k//l", "k//i", "k % l", "k//1", "k//-1", "k % -1", "0//k", "j//j", "k/k", "i//j*j + i % j", "k & -1", "k | 0", "k ^ k", "p & 1", "p*k", "p + k - k", "p - q", "p + q", "p*q", "p*p", "p + p", "-p", "abs(p)", "p**2", "p**0", "p**1",
	"maximum(k, l)", "minimum(k, l*1.0)", "k < k + 1", "k == k + 1", "k*1.0 == (k + 1)*1.0", "cast(cast(k, 'float64'), 'int64')", "cast(cast(k, 'bool'), 'int64')", "cast(x*1e300, 'int64')",
	"4611686018427387905*k", "4611686018427387905 - -4611686018427387905*log(k*k)", "switch(k, 4611686018427387905, 4611686018427387904) + 0*k", "alloc(4611686018427387905, 2) + I[0]", "sum(alloc(4611686018427387905, 3))",
	"k % 1", "(k % l) % l", "(l % j) % j", "sgn(k)*abs(k)", "x*sgn(l)*abs(l)", "mul(x, sgn(l), abs(l))", "mul(sgn(l), x, l)", "sgn(k)*k", "abs(-k)", "sqr(-k)", "cos(-k)", "cosh(-p)", "-sin(-k)", "-sgn(-k)", "2**j", "2.0**p", "2**x", "(-k)/(-l)", "(-f)/(-x)", "inv(k)*l", "x/inv(k)", "inv(k/l)", "k/-1",
	"0 & k", "k | -1", "k ^ -1", "p ^ -1", "p & -1", "p | 1", "p & (p | k)", "k | (k & p)", "k & ~k", "k | ~k", "p ^ ~p", "~(k < l)", "~(k >= i)", "~(x < k)", "~p & ~q", "p == True", "p != 1.0", "-k < -l", "-f < -x",
	"maximum(k, l) + minimum(k, l)", "maximum(k, x)*minimum(k, x)*l", "maximum(p, q) + minimum(p, q)", "maximum(-k, -l)", "minimum(k, maximum(k, x))", "maximum(i, maximum(i, j))", "floor(l)", "round(cast(k, 'float64'))", "floor(ceil(f))", "isnan(k)", "isinf(l*1.0)",
	"switch(~p, k, x)", "switch(p, switch(p, k, x), l)", "switch(p, i, switch(p, f, k))", "switch(p, 1, 0)*k", "switch(p, k, l) == switch(p, l, l)", "switch(p, i, k)*switch(p, k, l)*switch(p, x, j)", "abs(mul(x, f, -2.0))", "abs(x)*abs(f)*2", "arccosh(cosh(p))", "log2(exp2(p))",
	"dot(X, x[:2]) - dot(X, y[:2]) + p[:2] + p[:2]", "dot(X, x[:2]) - dot(X, y[:2]) - i[:2]", "dot(X, X) - dot(X, X.T) + I + I + I", "dot(X, X) - I", "dot(I, I)", "dot(i, j)", "sum(dot(I, I))",
	"round(k)", "sgn(k)", "sqr(k)", "sqrt(sqr(i))", "floor(k)", "mean(k)", "mean(I, axis=0)", "var(i)",
}

// TestIntegerValues: the values are those of NumPy, or of the language.
func TestIntegerValues(t *testing.T) {
	for text, want := range map[string]string{
		"i**2.0": "[1.6e+19, 9.0]", "sum(i**2.0)": "1.6e+19", "i**-2": "[6.25e-20, 0.1111111111111111]", "i*i": "[-2446744073709551616, 9]", "abs(i)*abs(i)": "[-2446744073709551616, 9]", "1.0*i*i": "[1.6e+19, 9.0]",
		"mean([4611686018427387904, 4611686018427387904, 4611686018427387904])": "4611686018427387904.0", "mean(i == 3)": "0.5", "argmax([9007199254740992, 9007199254740993])": "1", "[True, False] + [True, False]": "[True, False]",
	} {
		for _, query := range []string{"none", "+fast_run"} {
			s := expr.NewScope()
			if err := s.Declare("i: int64 vector"); err != nil {
				t.Fatal(err)
			}
			f, err := exec.NewFunction(t.Context(), s.Inputs(), []*fgraph.Variable{s.MustParse(text)}, exec.FunctionOptions{Optimizer: passtest.Optimizer(t, query)})
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.Call(t.Context(), array.Of([]int64{4000000000, 3}, 2))
			if err != nil || got[0].String() != want && !closeTo(got[0], parsed(t, want)) {
				t.Errorf("%s, %s: %v, %v, want %s", text, query, got, err, want)
			}
		}
	}
}

// parsed returns the value of a text.
func parsed(t *testing.T, text string) *array.Array {
	return tensor.ConstantOf(expr.NewScope().MustParse(text))
}

// closeTo reports whether two arrays are the same, up to a few last digits of floats, also where
// they are small. Where the first one has a NaN the second one may have a number.
func closeTo(got, want *array.Array) bool {
	if got.DType() != want.DType() || !array.SameShape(got, want) {
		return false
	}
	tol := 1e-13
	switch got.DType() {
	case array.Float32:
		tol = 1e-6
	case array.Float16: // functions of integers of 8 bits
		tol = 1e-3
	}
	for i := range got.Len() {
		a, b := got.Float(i), want.Float(i)
		switch {
		case got.DType() == array.Int64 && got.Int(i) != want.Int(i):
			return false
		case b != b, a == b:
		case !(math.Abs(a-b) <= tol*max(math.Abs(a), math.Abs(b))):
			return false
		}
	}
	return true
}
