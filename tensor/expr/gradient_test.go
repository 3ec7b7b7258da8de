package expr_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
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

// gradVars are declarations of the variables of the expressions below: with sizes that are known
// when the function runs, with sizes in the types, and with dimensions that broadcast. Some
// expressions are wrong for the last ones.
var gradVars = []string{
	"x y z: vector; X Y Z: matrix; s a b: scalar; t u: tensor3; r: row; c: col; i: int64 vector; p: bool vector; B: bool matrix",
	"x y z: float64[3]; X Y Z: float64[3, 3]; s a b: scalar; t u: float64[3, 3, 3]; r: float64[1, 3]; c: float64[3, 1]; i: int64[3]; p: bool[3]; B: bool[3, 3]",
	"x: float64[1]; y z: vector; X: row; Y Z: matrix; s a b: scalar; t: float64[1, ?, ?]; u: tensor3; r: row; c: col; i: int64 vector; p: bool vector; B: bool matrix",
	"x z: vector; y: float64[1]; X Z: col; Y: row; s a b: scalar; t: float64[?, 1, ?]; u: float64[?, ?, 1]; r: row; c: col; i: int64 vector; p: bool[1]; B: bool matrix",
	"x y z: float64[1]; X Y Z: float64[1, 1]; s a b: scalar; t u: float64[1, 1, 1]; r: float64[1, 3]; c: float64[3, 1]; i: int64[1]; p: bool[1]; B: bool[1, 1]",
	"x y z: vector; X Y: float64[2, 3]; Z: float64[3, 2]; s a b: scalar; t: float64[2, 1, 3]; u: float64[1, 3, 2]; r: row; c: col; i: int64[2]; p: bool vector; B: bool[2, 3]",
}

// gradients are expressions whose gradients are compared with finite differences. Together with the
// element-wise operations they contain all ops and functions, except those of withoutGradient.
var gradients = strings.Split(strings.TrimSpace(`
switch(B, X, r)
switch(B, s, X)
where(B, X, r)
ifelse(s > 0, X, Y)
ifelse(s < 0, [X, s], [X*Y, s**2])[1]
cast(cast(X, float32), float64)
astype(X, 'float64')
X.T
transpose(t, 1, 0, 2)
x.dimshuffle('x', 0, 'x')
r.dimshuffle(1)
InplaceDimShuffle{1,0}(X)
sum(t, axis=1)
sum(t)
sum(X, axis=0, keepdims=True)
prod(X, axis=0)
prod(x)
max(X, axis=1)
min(X)
min(X, axis=0)
amax(t, axis=(0, 2))
amin(t, axis=1)
ptp(X, axis=1)
logsumexp(X, axis=0)
logsumexp(x)
mean(X, axis=0)
var(X, axis=1)
var(Y, ddof=0.5)
std(join(0, X, 2*X + 1), axis=0)
std(join(1, t, t**2 + 1), axis=(0, 1), ddof=0.5)
dot(X, Y)
dot(x, Y)
dot(X, y)
dot(x, y)
dot(s, Y)
dot(t, Y)
dot(X, u)
dot(t, u)
dot(t, y)
outer(x, y)
inner(x, y)
inner(X, Y)
inner(t, Y)
vdot(X, Z.T)
X @ Z
matmul(t, u)
matmul(t, Y)
matmul(X, u)
matmul(t, y)
matmul(x, u)
matmul(t, u.dimshuffle('x', 0, 1, 2))
matmul(t.dimshuffle(0, 'x', 1, 2), u)
matmul(t, r.dimshuffle('x', 1, 0))
Matmul(t, u)
batched_dot(t, u)
batched_dot(X, u)
batched_dot(t, Y)
batched_dot(X, Y)
subtract(X, r)
multiply(c, X)
true_divide(X, Y)
floor_divide(X, Y)
remainder(X, Y)
tensordot(X, Y)
tensordot(X, Z, 1)
tensordot(t, u, axes=([0, 2], [0, 1]))
tensordot(t, u, axes=([1, 0], [0, 1]))
tensordot(x, y, axes=0)
tensordot(t, t, axes=3)
einsum('ij,jk->ik', X, Z)
einsum('ij,ij,jk->ik', X, Y, Z)
einsum('bij,bjk->bik', t, u)
einsum('bij,bjk->ik', t, u)
einsum('bij,bj->i', t, Y)
einsum('...ij,...jk', t, u)
einsum('ij,kj->ki', X, r)
einsum('ii->i', Y)
einsum('iij->j', u)
einsum('i,j,k->kji', x, y, z)
einsum('ij->', X)
Dot22(X, Y)
Dot22Scalar(X, Y, s)
Gemm(Z, s, X, Y, b)
Gemv(z, s, X, y, b)
BlasGemv(z, s, X, y, b)
Ger(Z, s, x, y)
BlasGer(Z, s, x, y)
alloc(x, 2, 3)
Alloc(s, 2, 3)
alloc(c, 4, 3, 2)
zeros(3) + x
ones(2, 3)*s
fill(X, x)
second(X, s)
fill(x, X)
stack([s, b, s])
stack([x, y], axis=1)
MakeVector{float64}(s, b, s)
reshape(Y, Y.size)
reshape(X, 1, X.size)
reshape(r, 3)
flatten(X)
flatten(t, 2)
ravel(X)
join(0, X, Y, X)
join(1, X, Y)
concatenate([X, Y], axis=0)
x[1:3]
x[::-1]
X[1]
X[0]
X[0:2, 1]
X[None, ::2]
X[:, -1]
inc_subtensor(x[1:3], y[0:2])
inc_subtensor(x[1:3], s)
inc_subtensor(X[1], s)
inc_subtensor(X[0:1], r)
set_subtensor(x[1:3], y[0:2])
set_subtensor(X[0], x)
set_subtensor(X[0:2], s)
x[i]
X[i, i]
x[[0, 0]]
inc_subtensor(X[i], Y[i])
inc_subtensor(x[[0, 0]], y[[0, 0]])
set_subtensor(x[[2, 0]], y[[0, 1]])
inc_subtensor(X[i, i], x[i])
set_subtensor(X[[0, 1], [1, 0]], y[0:2])
softmax(X)
softmax(X, axis=0)
log_softmax(X)
softmax(x)
softmax(t)
SoftmaxGrad(X, softmax(Y))
LogSoftmaxGrad(X, log_softmax(Y))
SoftmaxWithBias(X, x)
SoftmaxWithBias(X, y)
categorical_crossentropy(softmax(X), i)
categorical_crossentropy(softmax(Y), i)
CrossentropyCategorical1HotGrad(x, softmax(X), i)
CrossentropySoftmax1HotWithBiasDx(x, softmax(X), i)
CrossentropySoftmaxArgmax1HotWithBias(X, x, i)
CrossentropySoftmaxArgmax1HotWithBias(X, x, i)::1
cumsum(x)
cumsum(X)
cumsum(X, axis=0)
cumsum(t, axis=-1)
cumprod(x)
cumprod(X, axis=1)
cumprod(t, axis=0)
cumprod(x*[1.0, 0.0, 2.0])
cumprod(X*[1.0, 0.0, 0.0], axis=1)
sort(x)
sort(X)
sort(X, axis=0)
sort(t, axis=1)
sort(X, axis=None)
take_along_axis(X, argsort(Y, axis=1), axis=1)
take_along_axis(X, argsort(Y, axis=0), axis=0)
specify_shape(X, 3, 3)
specify_shape(x[0:1], 1)
Assert{small}(X, lt(s, 10.0))
x*x.shape[0]
zeros_like(x) + y
ones_like(x)*y
identity(x)
tensor_copy(X)
conj(X)
conjugate(X)
clip(X, -0.35, 0.45)
relu(X)
grad(sum(exp(X*s)), X)
grad(sum(sort(X)**3), X)
grad(sum(cumprod(X, 0)**2), X)
grad(sum(matmul(t, u)**2), t)
grad(sum(gammaln(X)), X)
grad(max(log_softmax(X)[0]), X)
(x*y + sin(x))/(1 + exp(z))
gammaln(-0.3 - 0.4*abs(X))
gamma(-0.3 - 0.4*abs(X))
psi(-0.3 - 0.4*abs(X))
digamma(abs(X) + 0.5)
loggamma(abs(X) + 0.5)
polygamma(2, abs(X) + 0.5)
polygamma(1, -0.3 - 0.4*abs(X))
tri_gamma(abs(X) + 0.5)
trigamma(abs(X) + 0.5)
xlogy(X, abs(Y))
xlogy(0*x, y + 2)
xlog1py(X, Y)
xlogx(abs(X))
logit(abs(X))
log_sigmoid(X)
log_expit(X)
expit(X)
elu(X)
elu(X, s)
selu(X)
softsign(X)
silu(X)
swish(X)
hard_sigmoid(X)
binary_crossentropy(sigmoid(X), sigmoid(r))
sigmoid_binary_crossentropy(X, r)
betaln(abs(X) + 0.5, abs(Y) + 0.5)
factorial(abs(X))
poch(abs(X) + 0.5, abs(r))
nan_to_num(X)
sinc(X)
erfinv(X)
erfcinv(X + 1)
log1mexp(-abs(X))
hypot(X, r)
copysign(X, Y)
cbrt(X)
erfcx(X)
logaddexp(X, Y)
degrees(X)
radians(X)
absolute(X)
abs_(X)
sqrt_(abs(X))
square(X)
reciprocal(X)
negative(X)
divide(X, Y)
power(abs(X), Y)
sign(X)
rint(X)
fix(X)
`), "\n")

// withoutGradient says why functions and ops have no case above.
var withoutGradient = map[string]string{
	"LayerNorm": "what a pass makes, of float32s", "SpliceMatmul": "what a pass makes, of float32s", "Winograd": "what a pass makes, of float32s",
	"Unique": "which elements are equal decides how many there are", "unique": "which elements are equal decides how many there are",
	"join_dims": "a reshape", "split_dims": "a reshape",
	"equal": "a bool", "not_equal": "a bool", "less": "a bool", "less_equal": "a bool", "greater": "a bool", "greater_equal": "a bool", "isclose": "a bool", "allclose": "a bool",
	"logical_and": "a bool", "logical_or": "a bool", "logical_xor": "a bool", "logical_not": "a bool", "count_nonzero": "an integer",
	"bitwise_and": "of integers", "bitwise_or": "of integers", "bitwise_xor": "of integers", "bitwise_not": "of integers",
	"eq": "a bool", "neq": "a bool", "lt": "a bool", "le": "a bool", "gt": "a bool", "ge": "a bool", "isnan": "a bool", "isinf": "a bool", "isfinite": "a bool", "isposinf": "a bool", "isneginf": "a bool",
	"and": "of integers", "or": "of integers", "xor": "of integers", "invert": "of integers", "and_": "of integers", "or_": "of integers", "all": "a bool", "any": "a bool",
	"argmax": "an integer", "argmin": "an integer", "argsort": "an integer", "ARange": "of integers", "arange": "of integers", "Shape": "an integer", "shape": "an integer", "Shape_i": "an integer",
	"nonzero": "of integers", "ix_": "of integers", "flatnonzero": "of integers", "AllocEmpty": "has no values", "SparseDot": "a sparse matrix has no transpose", "sdot": "a sparse matrix has no transpose", "Usmm": "a sparse matrix has no transpose",
	"MaxPoolPlaces": "of integers", "MatmulInteger": "of integers", "BlockMatmul": "of codes", "ConvLastInteger": "of integers", "max_pool_places": "of integers", "ResizePlaces": "sizes have no gradient",
	"polygamma": "the order is an integer; see gradients", "second": "see gradients", "switch": "see gradients", "IfElse": "see gradients", "cast": "see gradients",
}

// elementwiseGradients returns an expression for each element-wise operation, and for each way in
// which its arguments broadcast.
func elementwiseGradients() (exprs []string) {
	for op := range array.NumOpcodes {
		x := domain(op, "X")
		_, result, ok := op.Types(slices.Repeat([]array.DType{array.Float64}, max(1, op.NumArgs()))...)
		switch {
		case !ok || result != array.Float64 || withoutGradient[op.String()] != "":
		case op.NumArgs() == 1:
			exprs = append(exprs, fmt.Sprintf("%v(%s)", op, x))
		case op.NumArgs() == -1:
			exprs = append(exprs, fmt.Sprintf("%v(X, r, c)", op), fmt.Sprintf("%v(X, X, s)", op))
		case op == array.Xlogy:
			exprs = append(exprs, "xlogy(X, abs(r))", "xlogy(c, abs(X))")
		default:
			exprs = append(exprs, fmt.Sprintf("%v(%s, Y)", op, x), fmt.Sprintf("%v(%s, r)", op, x), fmt.Sprintf("%v(%s, X)", op, domain(op, "c")))
		}
	}
	return exprs
}

// domain moves an argument into the domain in which an operation is smooth.
func domain(op array.Opcode, x string) string {
	switch op {
	case array.Log, array.Log2, array.Log10, array.Sqrt, array.Pow:
		return "abs(" + x + ")"
	case array.Arccosh:
		return "(abs(" + x + ") + 1.5)"
	case array.Gamma, array.GammaLn, array.Psi:
		return "(abs(" + x + ") + 0.5)"
	case array.Erfcinv:
		return "(" + x + " + 1)"
	case array.Log1mexp:
		return "(-abs(" + x + "))"
	}
	return x
}

// TestGradients compares the gradients of all ops with finite differences.
func TestGradients(t *testing.T) {
	checked := 0
	for i, text := range slices.Concat(elementwiseGradients(), gradients, structureGradients, windowGradients) {
		if !longtest.Enabled() && i%10 != 0 {
			continue
		}
		t.Run(text, func(t *testing.T) {
			for k, vars := range gradVars {
				if checkGradient(t, text, vars, k > 1) {
					checked++
				}
			}
		})
	}
	if least := longtest.Of(100, 1000); checked < least {
		t.Errorf("only %d expressions fit the types of their variables, want at least %d", checked, least)
	}
}

// TestGradientsAtEdges: where the derivative of a factor is infinite, a gradient is its limit, and not 0·∞.
func TestGradientsAtEdges(t *testing.T) {
	optimizer := passtest.Optimizer(t, "+fast_run")
	for _, c := range []struct{ text, want string }{
		{"grad(sum([3, 5, 7]*s**arange(3)), s)", "5.0"},
		{"grad(sum(x**y), x)", "[0.0, 1.0, 0.0, inf, -inf]"},
		{"grad(sum(x**y), y)", "[0.0, 0.0, 0.0, 0.0, -inf]"},
		{"grad(sum(grad(sum(x[:3]**y[:3]), x)), x)", "[0.0, 0.0, 2.0, 0.0, 0.0]"},
		{"grad(grad(s**1, s), s)", "0.0"},
		{"grad(grad(s**2, s), s)", "2.0"},
		{"grad(grad(grad(s**2, s), s), s)", "0.0"},
		{"grad(grad(grad(grad(s**2, s), s), s), s)", "0.0"},
		{"grad(grad(grad(s**3, s), s), s)", "6.0"},
		{"grad(log1mexp(s), s)", "-inf"},
		{"grad(log1mexp(-s), s)", "inf"},
		{"grad(grad(log1mexp(s), s), s)", "-inf"},
		{"grad(hypot(s, x[0]), s)", "0.0"},
		{"grad(hypot(x[0], s), s)", "0.0"},
	} {
		sc := expr.NewScope()
		if err := sc.Declare("s: scalar; x y: vector"); err != nil {
			t.Fatal(err)
		}
		out, err := sc.Parse(c.text)
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		for _, opt := range []exec.Optimizer{nil, optimizer} {
			f, err := exec.NewFunction(t.Context(), sc.Inputs(), out, exec.FunctionOptions{Optimizer: opt})
			if err != nil {
				t.Fatalf("%s: %v", c.text, err)
			}
			got, err := f.Call(t.Context(), array.Scalar(0.0), array.New(array.Float64, 5), array.Of([]float64{0, 1, 2, 0.5, -1}, 5))
			if err != nil || got[0].String() != c.want {
				t.Errorf("%s, optimized: %v: %v, %v, want %s", c.text, opt != nil, got, err, c.want)
			}
		}
	}
}

// TestGradientsOfAll checks that every function and every op of the language has a case, or a reason
// for having none.
func TestGradientsOfAll(t *testing.T) {
	seen := make(map[string]bool)
	for _, text := range slices.Concat(elementwiseGradients(), gradients, structureGradients, windowGradients) {
		s := expr.NewScope()
		if err := s.Declare(gradVars[0]); err != nil {
			t.Fatal(err)
		}
		out, err := s.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for _, name := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" .,=-+*/()[]:@'", r) }) {
			name, _, _ = strings.Cut(name, "{")
			seen[name] = true
		}
		for a := range ancestors(out) {
			name, _, _ := strings.Cut(a.Op().String(), "{")
			seen[name] = true
		}
	}
	names := make(map[string]bool)
	for _, name := range languageNames() {
		name, _, _ = strings.Cut(name, "{")
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !seen[name] && withoutGradient[name] == "" {
			t.Errorf("%s has no case in gradients, and no reason in withoutGradient", name)
		}
	}
	for name := range withoutGradient {
		if !names[name] {
			t.Errorf("there is no %s", name)
		}
	}
}

// ancestors returns the applies that variables are computed by.
func ancestors(todo []*fgraph.Variable) map[*fgraph.Apply]bool {
	found := make(map[*fgraph.Apply]bool)
	for todo = slices.Clone(todo); len(todo) > 0; {
		a := todo[len(todo)-1].Owner()
		todo = todo[:len(todo)-1]
		if a != nil && !found[a] {
			found[a] = true
			todo = append(todo, a.Inputs()...)
		}
	}
	return found
}

// argument returns a value whose elements are all different, and not near 0 or 1: their absolute
// values are between 0.1 and 0.9.
func argument(typ tensor.Type, salt int) *array.Array {
	shape := typ.Shape()
	for d, n := range shape {
		if n == tensor.Unknown {
			shape[d] = 3
		}
	}
	a := array.New(typ.DType(), shape...)
	for k := range a.Len() {
		v := 0.1 + float64(0.8*math.Mod(float64(k*7+salt)*0.381966, 1))
		if (k+salt)%3 == 0 {
			v = -v
		}
		if typ.DType() == array.Int64 {
			v = float64((k + salt) % a.Len())
		}
		if typ.DType() == array.Bool {
			v = float64((k + salt) % 2)
		}
		a.SetFloat(k, v)
	}
	return a
}

// checkGradient compares the gradients of a weighted sum of an expression with central differences.
// It reports false if the expression does not fit the types or sizes of the variables, which is an
// error unless lenient is set.
func checkGradient(t *testing.T, text, vars string, lenient bool) bool {
	t.Helper()
	s := expr.NewScope()
	if err := s.Declare(vars); err != nil {
		t.Fatal(err)
	}
	y, err := s.Parse(text)
	if err != nil {
		if !lenient {
			t.Fatal(err)
		}
		return false
	}
	// Different weights expose elements that are mixed up.
	cost := tensor.Sum(tensor.Mul(y[0], tensor.Sin(tensor.Add(tensor.Float(0.3), tensor.Mul(tensor.Float(2), y[0])))))
	var wrt []*fgraph.Variable
	for _, v := range tensor.InputsOf(y...) {
		if tensor.TypeOf(v).DType() == array.Float64 {
			wrt = append(wrt, v)
		}
	}
	args := make([]*array.Array, len(s.Inputs()))
	for k, v := range s.Inputs() {
		args[k] = argument(tensor.TypeOf(v), k)
	}
	f, err := exec.NewFunction(t.Context(), s.Inputs(), []*fgraph.Variable{cost}, exec.FunctionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Call(t.Context(), args...); err != nil && lenient {
		return false
	}
	grads, err := tensor.GradOptions{Zeros: true}.Grad(cost, wrt...) // a condition has no gradient
	if err != nil {
		t.Fatalf("%s: %v", vars, err)
	}
	df, err := exec.NewFunction(t.Context(), s.Inputs(), grads, exec.FunctionOptions{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	got, err := df.Call(t.Context(), args...)
	if err != nil {
		t.Fatalf("%s: %v", vars, err)
	}
	for n, v := range wrt {
		k := slices.Index(s.Inputs(), v)
		if !array.SameShape(got[n], args[k]) {
			t.Fatalf("%s: gradient with respect to %v has shape %v", vars, v, got[n].Shape())
		}
		compareDifferences(t, text, vars, f, args, k, got[n])
	}
	return true
}

// compareDifferences compares a gradient with respect to argument k with central differences.
func compareDifferences(t *testing.T, text, vars string, f *exec.Function, args []*array.Array, k int, got *array.Array) {
	t.Helper()
	step, tol := 1e-5, 1e-6
	if strings.Contains(text, "float32") {
		step, tol = 1e-2, 1e-3
	}
	at := func(e int, v float64) float64 {
		old := args[k].Float(e)
		args[k].SetFloat(e, v)
		defer args[k].SetFloat(e, old)
		out, err := f.Call(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		return out[0].Float(0)
	}
	for e := range args[k].Len() {
		x := args[k].Float(e)
		want := (at(e, x+step) - at(e, x-step)) / (2 * step)
		if d := math.Abs(got.Float(e) - want); !(d <= tol*max(1, math.Abs(want))) {
			t.Fatalf("%s: with respect to element %d of input %d: %v, finite differences say %v", vars, e, k, got.Float(e), want)
		}
	}
}
