package tensor_test

import (
	"math"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// costOf returns the cost of all applies of an expression.
func costOf(t *testing.T, vars, text string) (sum float64) {
	t.Helper()
	s := expr.NewScope()
	if err := s.Declare(vars); err != nil {
		t.Fatal(err)
	}
	out, err := s.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	g, err := tensor.NewGraph(s.Inputs(), out)
	if err != nil {
		t.Fatal(err)
	}
	for a := range g.Applies() {
		c := tensor.Cost(a)
		if c < 0 || c != math.Trunc(c) || math.IsInf(c, 0) {
			t.Errorf("%v costs %g", a, c)
		}
		sum += c
	}
	return sum
}

// TestCostOrder: of two expressions the first is the cheaper one, as exec has it.
func TestCostOrder(t *testing.T) {
	const vars = "A B: float64[300, 300]; F G: float32[300, 300]; I J: int64[300, 300]; v w: float64[300]; X Y: matrix; x: vector; L: float64[10, 1000]; R: float64[1000, 10]; s: scalar"
	for _, c := range [][2]string{
		{"A + B", "exp(A)"},
		{"exp(A)", "tan(A)"},
		{"exp(A)", "gammaln(A)"},
		{"A**2", "A**s"},
		{"A**3", "A**2.5"},
		{"sqr(A)", "A*A*A"},
		{"F@G", "A@B"},
		{"A@B", "I@J"},
		{"L@R", "R@L"},
		{"A@v", "A@B"},
		{"X@x", "X@Y"},
		{"A.T", "A + B"},
		{"A[1:]", "A + B"},
		{"A.T@v", "A@B"},
		{"sum(A)", "A@v"},
		{"sum(A)", "exp(A)"},
		{"v + w", "A + v"},
		{"X.shape[0]", "x + 1"},
		{"A + v", "I + J"},
		{"dot(v, w)", "sum(v*w)"},
		{"A@v", "inv(A)*A + exp(A)"},
		{"A@v", "matrix_inverse(A)@v"},
		{"A@B", "matrix_inverse(A)"},
		{"zeros((300, 300))", "exp(A)"},
	} {
		if a, b := costOf(t, vars, c[0]), costOf(t, vars, c[1]); a >= b {
			t.Errorf("%s costs %g, and %s %g", c[0], a, c[1], b)
		}
	}
}

// TestCostOfFused: a fused op costs less than its parts, by the calls and the memory that it saves.
func TestCostOfFused(t *testing.T) {
	x := fgraph.NewInput(tensor.NewType(array.Float64, 1000), "x")
	y := tensor.Exp(tensor.Mul(x, x))
	p := array.NewProgram(array.Float64)
	p.Return(p.Append(array.Exp, p.Append(array.Mul, 0, 0)))
	fused := tensor.MustApply(tensor.NewComposite(p), x)
	x2 := tensor.Mul(x, x)
	two := tensor.Cost(x2.Owner()) + tensor.Cost(y.Owner())
	if got := tensor.Cost(fused.Owner()) - float64(1000*(array.Mul.Work(array.Float64, 2)+array.Exp.Work(array.Float64, 1))); got <= 0 || got >= 400e3 || two <= 1e6 {
		t.Errorf("%g besides the operations, and its parts %g", got, two)
	}
}

// priced is an op that knows its cost.
type priced struct{ tensor.Elemwise }

func (priced) Cost(a *fgraph.Apply) float64 { return 12.4 * float64(len(a.Inputs())) }

// A Coster decides itself.
func TestCoster(t *testing.T) {
	x := fgraph.NewInput(tensor.VectorType(array.Float64), "x")
	if got := tensor.Cost(tensor.MustApply(priced{tensor.Elemwise{Op: array.Exp}}, x).Owner()); got != 12 {
		t.Error(got)
	}
}
