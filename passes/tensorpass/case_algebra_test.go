package tensorpass_test

import (
	"fmt"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// Cases 56 to 78 are what the tests of Theano and PyTensor demand of the algebra and the structure
// of expressions. A test says so where nnopt differs.

const (
	caseVars = "x y z w: vector; X Y Z: matrix; s b: scalar; t: tensor3; f g: float32 vector; F: float32 matrix; i j: int64 vector; " +
		"p q: bool vector; r: row; c: col"
	unfused = "+fast_run -fusion -inplace"
)

// A turn is an expression and what a query makes of it.
type turn struct{ expr, want string }

// turns optimizes expressions and compares graphs, types and values.
func turns(t *testing.T, query string, list ...turn) {
	t.Helper()
	opt := passtest.Optimizer(t, query)
	for _, c := range list {
		s := expr.NewScope()
		if err := s.Declare(caseVars); err != nil {
			t.Fatal(err)
		}
		out, err := s.Parse(c.expr)
		if err != nil {
			t.Fatalf("%s: %v", c.expr, err)
		}
		plain, err := exec.NewFunction(t.Context(), s.Inputs(), out, exec.FunctionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := exec.NewFunction(t.Context(), s.Inputs(), out, exec.FunctionOptions{Optimizer: opt})
		if err != nil {
			t.Fatalf("%s: %v", c.expr, err)
		}
		if got := f.String(); got != "["+c.want+"]" {
			t.Errorf("%s became\n%s, want\n[%s]", c.expr, got, c.want)
		}
		for seed := range uint64(3) {
			args, err := plain.RandomArguments(t.Context(), seed)
			if err != nil {
				t.Fatalf("%s: %v", c.expr, err)
			}
			compare(t, plain, f, args, true)
		}
	}
}

// TestCase56Quotients: equal factors cancel, also in float32 and with rows that broadcast.
func TestCase56Quotients(t *testing.T) {
	turns(t, unfused,
		turn{"x/x", "Alloc(1.0, Shape_i{0}(x))"},
		turn{"x*y/x", "y"},
		turn{"x/y/x", "inv(y)"},
		turn{"(x/y)*(y/z)*(z/w)", "true_div(x, w)"},
		turn{"2*x/(4*y)", "true_div(mul(0.5, x), y)"},
		turn{"2*x/2", "x"},
		turn{"X*r/r", "X"},
		turn{"X*r/X", "Alloc(r, Shape_i{0}(X), Shape_i{1}(X))"},
		turn{"f/f", "Alloc(1.0, Shape_i{0}(f))"},
		turn{"f*g/f", "g"},
		turn{"2*f/(4*g)", "true_div(mul(0.5, f), g)"},
		turn{"2*f/2", "f"},
	)
}

// TestCase57Distribution: factors are multiplied into sums where that saves operations, and the
// result is the same every time.
func TestCase57Distribution(t *testing.T) {
	for range 3 {
		turns(t, unfused,
			turn{"(y/z + w/x)*x*z", "add(mul(y, x), mul(w, z))"},
			turn{"(y/x + z)*x", "add(y, mul(z, x))"},
			turn{"(x + y)*z", "mul(add(x, y), z)"},
			turn{"mul(s - 1, 1e-7 + x/s, 1e-7 + y/s, s)",
				"mul(add(-1.0, *1 -> DimShuffle{x}(s)), add(mul(1e-07, *1), x), add(1e-07, true_div(y, *1)))"},
		)
	}
}

// TestCase58Abs: x/|x| is a sign, and one absolute value is enough for a product.
func TestCase58Abs(t *testing.T) {
	turns(t, unfused,
		turn{"4*x/abs(2*x)", "mul(2.0, sgn(x))"},
		turn{"abs(x*y*-2)", "abs(mul(2.0, x, y))"},
	)
}

// TestCase59NaN: a constant that is not equal to itself does not keep the rules going.
func TestCase59NaN(t *testing.T) {
	turns(t, unfused, turn{"x + nan", "add(nan, x)"}, turn{"nan*x*nan", "mul(nan, x)"})
}

// TestCase60Zero: products with 0 are 0 of the broadcast shape, also in quotients; sums drop a 0.
func TestCase60Zero(t *testing.T) {
	turns(t, unfused,
		turn{"x*0", "Alloc(0.0, Shape_i{0}(x))"},
		turn{"x*0/y", "Alloc(0.0, Shape_i{0}(y))"},
		turn{"add(0, x, y)", "add(x, y)"},
		turn{"X*0 + r", "Alloc(r, Shape_i{0}(X), Shape_i{1}(X))"},
		turn{"r*0*X", "Alloc(0.0, Shape_i{0}(X), Shape_i{1}(X))"},
	)
}

// TestCase61Neg: signs move into constants. All constants here can take a sign, as there are no
// unsigned and no 8-bit integers.
func TestCase61Neg(t *testing.T) {
	turns(t, unfused,
		turn{"-(-x)", "x"},
		turn{"-(2*x)", "mul(-2.0, x)"},
		turn{"-(x*y)", "mul(-1.0, x, y)"},
		turn{"-(x*y*z)", "mul(-1.0, x, y, z)"},
	)
}

// TestCase62MulSpecialize: products with 1, 0 and -1 keep only what has to be computed.
func TestCase62MulSpecialize(t *testing.T) {
	turns(t, unfused,
		turn{"x*1", "x"},
		turn{"x*0", "Alloc(0.0, Shape_i{0}(x))"},
		turn{"x*-1", "neg(x)"},
		turn{"s*1*-b", "mul(-1.0, s, b)"},
		turn{"x*0*-y", "Alloc(0.0, Shape_i{0}(y))"},
		turn{"x*-1*-y", "mul(x, y)"},
	)
}

// TestCase63Powers: powers with known exponents are products, roots and inverses; x**15 takes six
// operations and x**16 four.
func TestCase63Powers(t *testing.T) {
	turns(t, unfused,
		turn{"x**0", "Alloc(1.0, Shape_i{0}(x))"},
		turn{"x**1", "x"},
		turn{"x**2", "sqr(x)"},
		turn{"x**-1", "inv(x)"},
		turn{"x**-2", "inv(sqr(x))"},
		turn{"x**0.5", "sqrt(x)"},
		turn{"x**-0.5", "inv(sqrt(x))"},
	)
	for text, want := range map[string]int{"x**15": 6, "x**16": 4} {
		_, _, g := newGraph(t, caseVars, text)
		if err := passtest.Optimizer(t, "+fast_run").Rewrite(t.Context(), g, nil); err != nil {
			t.Fatal(err)
		}
		op, ok := g.Outputs()[0].Owner().Op().(*tensor.CompositeOp)
		if !ok || g.NumApplies() != 1 || op.Program().NumOps() != want {
			t.Errorf("%s became %v, want one op of %d", text, g, want)
		}
	}
}

// TestCase64Log1p: the logarithm of a sum with 1 keeps its digits and its shape.
func TestCase64Log1p(t *testing.T) {
	turns(t, unfused,
		turn{"log(1 + x)", "log1p(x)"},
		turn{"log(1 - x)", "log1p(neg(x))"},
		turn{"log(fill(y, 1) + x)", "log1p(x)"},
		turn{"log(fill(X, 1) + r)", "Alloc(log1p(r), Shape_i{0}(X), Shape_i{1}(X))"},
	)
}

// TestCase65SwitchSink: a product or quotient moves into a switch with a branch of zero, and keeps
// the order of the branches and the element type. So a branch that is not taken can't spoil a
// gradient.
func TestCase65SwitchSink(t *testing.T) {
	turns(t, unfused,
		turn{"x*switch(y > 0, 0, z)", "switch(gt(y, 0.0), 0.0, mul(x, z))"},
		turn{"x*switch(y > 0, z, 0)", "switch(gt(y, 0.0), mul(x, z), 0.0)"},
		turn{"switch(y > 0, 0, z)/x", "switch(gt(y, 0.0), 0.0, true_div(z, x))"},
		turn{"switch(y > 0, z, 0)/x", "switch(gt(y, 0.0), true_div(z, x), 0.0)"},
		turn{"f*switch(y > 0, 0.0, z)", "switch(gt(y, 0.0), 0.0, mul(f, z))"},
	)
	sc := expr.NewScope()
	if err := sc.Declare("x: scalar"); err != nil {
		t.Fatal(err)
	}
	out, err := sc.Parse("switch(x < 7, x, sqrt(x - 7))")
	if err != nil {
		t.Fatal(err)
	}
	grad, err := tensor.Grad(out[0], sc.Lookup("x"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := exec.NewFunction(t.Context(), sc.Inputs(), grad, exec.FunctionOptions{Optimizer: passtest.Optimizer(t, "+fast_run")})
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Call(t.Context(), array.Scalar(5.0))
	if err != nil || got[0].Float(0) != 1 {
		t.Errorf("the gradient at 5 is %v, want 1: %v, %v", got, f, err)
	}
}

// TestCase66Sums: a sum of a sum is one sum, whatever the axes; a product of a sum is not.
func TestCase66Sums(t *testing.T) {
	opt := passtest.Optimizer(t, unfused)
	for _, c := range []struct{ inner, outer string }{
		{"0", "0"}, {"1", "0"}, {"2", "0"}, {"0", "1"}, {"1", "1"}, {"2", "1"}, {"[0, 1]", "0"}, {"[0, 2]", "0"}, {"[1, 2]", "0"}, {"0", "[0, 1]"}, {"2", "[0, 1]"},
	} {
		for _, op := range [][2]string{{"sum", "sum"}, {"prod", "prod"}, {"sum", "prod"}} {
			text := fmt.Sprintf("%s(%s(t, axis=%s), axis=%s)", op[0], op[1], c.inner, c.outer)
			s, out, g := newGraph(t, caseVars, text)
			if err := opt.Rewrite(t.Context(), g, nil); err != nil {
				t.Fatal(err)
			}
			want := 1
			if op[0] != op[1] {
				want = 2
			}
			if g.NumApplies() != want {
				t.Errorf("%s became %v, want %d reductions", text, g, want)
			}
			sameValues(t, s, out, g, true)
		}
	}
}

// TestCase67Factors: factors that do not depend on the axes move out of a sum; sums of broadcast
// values are products.
func TestCase67Factors(t *testing.T) {
	turns(t, unfused,
		turn{"sum(s*X)", "mul(s, sum(X))"},
		turn{"sum(X/x.dimshuffle('x', 0), axis=0)", "true_div(sum{axis=0}(X), x)"},
		turn{"sum(alloc(2.0, 3, 4))", "24.0"},
		turn{"sum(alloc(s, 3, 4))", "mul(s, 12.0)"},
		turn{"sum(-X)", "neg(sum(X))"},
	)
}

// TestCase68IntegerDivision: rounded quotients do not cancel.
func TestCase68IntegerDivision(t *testing.T) {
	turns(t, unfused,
		turn{"x*(i//(i + 1))", "mul(x, int_div(i, add(1, i)))"},
		turn{"i//2*2", "mul(2, int_div(i, 2))"},
	)
}

// TestCase69Comparisons: comparisons of a variable with itself, of sizes with 0, and of truth
// values with constants are known.
func TestCase69Comparisons(t *testing.T) {
	turns(t, unfused,
		turn{"x < x", "Alloc(False, Shape_i{0}(x))"},
		turn{"x <= x", "Alloc(True, Shape_i{0}(x))"},
		turn{"x.shape[0] < 0", "False"},
		turn{"maximum(x.shape[0], 0)", "Shape_i{0}(x)"},
		turn{"p & True", "p"},
		turn{"p & False", "Alloc(False, Shape_i{0}(p))"},
		turn{"p | True", "Alloc(True, Shape_i{0}(p))"},
		turn{"p ^ False", "p"},
		turn{"p ^ p", "Alloc(False, Shape_i{0}(p))"},
	)
}

// TestCase70Complements: functions that keep digits replace expressions that lose them.
func TestCase70Complements(t *testing.T) {
	turns(t, unfused,
		turn{"1 - erf(x)", "erfc(x)"},
		turn{"1 + -1*erf(x)", "erfc(x)"},
		turn{"erf(x) - 1", "neg(erfc(x))"},
		turn{"1 - erfc(x)", "erf(x)"},
		turn{"log(sigmoid(x))", "neg(softplus(neg(x)))"},
		turn{"log(1 - sigmoid(x))", "neg(softplus(x))"},
		turn{"log(1 + exp(x))", "softplus(x)"},
		turn{"exp(x)/(1 + exp(x))", "sigmoid(x)"},
		turn{"1/(1 + exp(-x))", "sigmoid(x)"},
		turn{"y*exp(x)/(1 + exp(x))", "mul(y, sigmoid(x))"},
	)
}

// TestCase71Upcast: constants of two types are merged if both are used as one type.
func TestCase71Upcast(t *testing.T) {
	turns(t, unfused,
		turn{"[1 - x, 1.0 - x]", "*1 -> sub(1.0, x), *1"},
		turn{"[i + 1, i + True]", "*1 -> add(1, i), *1"},
	)
}

// TestLogErfcOfBroadcast: local_log_erfc recognizes what it has done while dimensions are moved
// through it.
func TestLogErfcOfBroadcast(t *testing.T) {
	for _, query := range []string{"+fast_run", "+fast_run -canonicalize"} {
		for _, text := range []string{"log(erfc(fill(x, b)))", "log(erfc(b)) + X", "log(erfc(x)).dimshuffle('x', 0)"} {
			s, out, g := newGraph(t, caseVars, text)
			if err := passtest.Optimizer(t, query).Rewrite(t.Context(), g, nil); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			sameValues(t, s, out, g, true)
		}
	}
}
