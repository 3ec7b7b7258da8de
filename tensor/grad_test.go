package tensor_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// gradVars are the variables of the expressions below. Their absolute values are between 0.1 and
// 0.9; see argument.
const gradVars = "x y z: vector; X Y Z: matrix; s a b: scalar; t: tensor3; r: row; c: col; i: int64 vector; p: bool vector; B: bool matrix"

// TestGradients compares the gradients of all ops with finite differences. Element-wise operations
// come from their table; every other op occurs in an expression.
func TestGradients(t *testing.T) {
	var exprs []string
	for op := range array.NumOpcodes {
		switch op.NumArgs() {
		case 1:
			if op != array.Cast && op != array.Invert && op != array.IsNan && op != array.IsInf {
				exprs = append(exprs, fmt.Sprintf("%v(%s)", op, domain(op, "X")))
			}
		case -1:
			exprs = append(exprs, fmt.Sprintf("%v(X, r, c)", op), fmt.Sprintf("%v(X, X, s)", op))
		case 2:
			if _, result, ok := op.Types(array.Float64, array.Float64); ok && result == array.Float64 {
				exprs = append(exprs, fmt.Sprintf("%v(%s, Y)", op, domain(op, "X")), fmt.Sprintf("%v(%s, r)", op, domain(op, "X")), fmt.Sprintf("%v(%s, X)", op, domain(op, "c")))
			}
		}
	}
	exprs = append(exprs,
		"switch(B, X, r)", "switch(B, s, X)", "cast(cast(X, float32), float64)", "X.T", "x.dimshuffle('x', 0, 'x')", "r.dimshuffle(1)",
		"sum(t, axis=1)", "sum(t)", "prod(X, axis=0)", "prod(x)", "max(X, axis=1)", "min(X)", "logsumexp(X, axis=0)", "logsumexp(x)", "mean(X, axis=0)",
		"dot(X, Y)", "dot(x, Y)", "dot(X, y)", "dot(x, y)", "outer(x, y)",
		"Dot22(X, Y)", "Dot22Scalar(X, Y, s)", "Gemm(Z, s, X, Y, b)", "Gemv(z, s, X, y, b)", "BlasGemv(z, s, X, y, b)", "Ger(Z, s, x, y)", "BlasGer(Z, s, x, y)",
		"alloc(x, 2, 3)", "alloc(s, 2, 3)", "alloc(c, 4, 3, 2)", "fill(X, x)", "stack([s, b, s])", "reshape(X, 1, 9)", "flatten(X)", "join(0, X, Y, X)", "join(1, X, Y)",
		"x[1:3]", "x[::-1]", "X[1]", "X[0:2, 1]", "X[None, ::2]", "inc_subtensor(x[1:3], y[0:2])", "inc_subtensor(X[1], s)", "set_subtensor(x[1:3], y[0:2])", "set_subtensor(X[0], x)",
		"x[i]", "X[i, i]", "inc_subtensor(X[i], Y[i])", "set_subtensor(x[[2, 0]], y[[0, 1]])",
		"softmax(X)", "log_softmax(X)", "softmax(x)", "SoftmaxGrad(X, softmax(Y))", "LogSoftmaxGrad(X, log_softmax(Y))", "SoftmaxWithBias(X, x)",
		"categorical_crossentropy(softmax(X), i)", "CrossentropySoftmaxArgmax1HotWithBias(X, x, i)", "CrossentropySoftmaxArgmax1HotWithBias(X, x, i)::1",
		"specify_shape(X, 3, 3)", "Assert{small}(X, lt(s, 10.0))", "x*x.shape[0]", "zeros_like(x) + y", "identity(x)", "(x*y + sin(x))/(1 + exp(z))",
	)
	for _, text := range exprs {
		t.Run(text, func(t *testing.T) { checkGradient(t, text) })
	}
}

// domain moves an argument into the domain in which an operation is smooth.
func domain(op array.Opcode, x string) string {
	switch op {
	case array.Log, array.Log2, array.Log10, array.Sqrt, array.Pow:
		return "abs(" + x + ")"
	case array.Arccosh:
		return "(abs(" + x + ") + 1.5)"
	}
	return x
}

// argument returns a value whose elements are all different, and not near 0 or 1.
func argument(typ tensor.Type, salt int) *array.Array {
	shape := typ.Shape()
	for d, n := range shape {
		if n == tensor.Unknown {
			shape[d] = 3
		}
	}
	a := array.New(typ.DType(), shape...)
	for k := range a.Len() {
		v := 0.1 + 0.8*math.Mod(float64(k*7+salt)*0.381966, 1)
		if (k+salt)%3 == 0 {
			v = -v
		}
		if typ.DType() == array.Int64 {
			v = float64((k + salt) % 3)
		}
		if typ.DType() == array.Bool {
			v = float64((k + salt) % 2)
		}
		a.SetFloat(k, v)
	}
	return a
}

// checkGradient compares the gradients of a weighted sum of an expression with central differences.
func checkGradient(t *testing.T, text string) {
	s := expr.NewScope()
	if err := s.Declare(gradVars); err != nil {
		t.Fatal(err)
	}
	y, err := s.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	// Different weights expose elements that are mixed up.
	cost := tensor.Sum(tensor.Mul(y[0], tensor.Sin(tensor.Add(tensor.Float(0.3), tensor.Mul(tensor.Float(2), y[0])))))
	var wrt []*fgraph.Variable
	for _, v := range tensor.InputsOf(y...) {
		if tensor.TypeOf(v).DType() == array.Float64 {
			wrt = append(wrt, v)
		}
	}
	grads, err := tensor.GradOptions{Zeros: true}.Grad(cost, wrt...) // a condition has no gradient
	if err != nil {
		t.Fatal(err)
	}
	args := make([]*array.Array, len(s.Inputs()))
	for k, v := range s.Inputs() {
		args[k] = argument(tensor.TypeOf(v), k)
	}
	f, err := exec.NewFunction(t.Context(), s.Inputs(), []*fgraph.Variable{cost}, exec.FunctionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	df, err := exec.NewFunction(t.Context(), s.Inputs(), grads, exec.FunctionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := df.Call(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	step, tol := 1e-5, 1e-6
	if text == "cast(cast(X, float32), float64)" {
		step, tol = 1e-2, 1e-3
	}
	at := func(k, e int, v float64) float64 {
		old := args[k].Float(e)
		args[k].SetFloat(e, v)
		defer args[k].SetFloat(e, old)
		out, err := f.Call(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		return out[0].Float(0)
	}
	for n, v := range wrt {
		for k, in := range s.Inputs() {
			if in != v {
				continue
			}
			if !array.SameShape(got[n], args[k]) {
				t.Fatalf("gradient with respect to %v has shape %v", v, got[n].Shape())
			}
			for e := range args[k].Len() {
				x := args[k].Float(e)
				want := (at(k, e, x+step) - at(k, e, x-step)) / (2 * step)
				if d := math.Abs(got[n].Float(e) - want); !(d <= tol*max(1, math.Abs(want))) {
					t.Fatalf("with respect to element %d of %v: %v, finite differences say %v", e, v, got[n].Float(e), want)
				}
			}
		}
	}
}

func TestGradErrors(t *testing.T) {
	s := expr.NewScope()
	if err := s.Declare("x y: vector; i: int64 vector; S: csr; X: matrix"); err != nil {
		t.Fatal(err)
	}
	x, y := s.Lookup("x"), s.Lookup("y")
	for _, c := range []struct {
		cost string
		wrt  *fgraph.Variable
	}{{"x", x}, {"sum(i)", x}, {"sum(x)", y}, {"sum(x > 0)*1.0", x}, {"sum(x)", s.Lookup("i")}, {"sum(sdot(S, X))", s.Lookup("X")}, {"1.0*argmax(x)", x}} {
		if g, err := tensor.Grad(s.MustParse(c.cost), c.wrt); !errors.Is(err, tensor.ErrGradient) {
			t.Errorf("gradient of %s with respect to %v: %v, %v", c.cost, c.wrt, g, err)
		}
	}
	g, err := tensor.GradOptions{Zeros: true}.Grad(s.MustParse("sum(x)"), y)
	if err != nil || fgraph.Sprint(0, g...) != "[second(y, 0.0)]" {
		t.Errorf("%v, %v", fgraph.Sprint(0, g...), err)
	}
	known := tensor.Vector("g")
	e := s.MustParse("exp(x)")
	g, err = tensor.GradOptions{Known: map[*fgraph.Variable]*fgraph.Variable{e: known}}.Grad(tensor.Sum(e), x)
	if err != nil || fgraph.Sprint(0, g...) != "[mul(g, exp(x))]" {
		t.Errorf("%v, %v", fgraph.Sprint(0, g...), err)
	}
}

// TestGradDeep differentiates a chain of 100,000 ops.
func TestGradDeep(t *testing.T) {
	x := tensor.Scalar("x")
	y := x
	for range 100000 {
		y = tensor.Sin(y)
	}
	if _, err := tensor.Grad(y, x); err != nil {
		t.Fatal(err)
	}
}
