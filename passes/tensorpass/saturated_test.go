package tensorpass_test

import (
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// TestSaturated: logarithms of probabilities that underflow, and of parts of them, are those of the
// stable functions, and so are their gradients.
func TestSaturated(t *testing.T) {
	const vars = "X Y: matrix; t: tensor3; x: vector; y j: int64 vector; n: int64 scalar; p: bool matrix; s: scalar; r: row"
	args := map[string]*array.Array{
		"X": array.Of([]float64{1000, 0, -3, 0, 2000, -2000, 1, 2, 3}, 3, 3),
		"Y": array.Of([]float64{0, 1, 0.5, 0.25, 0, 1, 2, -1, 0.5}, 3, 3),
		"t": array.Of([]float64{1000, 0, -3, 0, 2000, -2000, 1, 2, 3, -900, 900, 0}, 2, 2, 3),
		"x": array.Of([]float64{0, 800, -800}, 3), "y": array.Of([]int64{1, 0, 2}, 3), "j": array.Of([]int64{1, 1, 0}, 3), "n": array.Scalar(int64(1)),
		"p": array.Of([]bool{true, false, true, true, true, true, false, false, true}, 3, 3), "s": array.Scalar(0.5), "r": array.Of([]float64{0.5, 1, 2}, 1, 3),
	}
	// P is short for softmax and L for its logarithm, which is the stable one in the second column.
	for i, c := range []struct{ expr, stable string }{
		{"log(P(X))", "L(X)"}, {"log(P(X, axis=0))", "L(X, axis=0)"}, {"log(P(t, axis=1))", "L(t, axis=1)"}, {"log(P(t, axis=0))", "L(t, axis=0)"}, {"log(P(X).T)", "L(X).T"}, {"log(P(X)[:, None])", "L(X)[:, None]"},
		{"log(P(X)[:, [0, 1]])", "L(X)[:, [0, 1]]"}, {"log(P(X)[1])", "L(X)[1]"}, {"log(P(X)[:, 1:])", "L(X)[:, 1:]"}, {"log(P(X)[n, 1])", "L(X)[n, 1]"}, {"log(P(X)[::-1, ::2])", "L(X)[::-1, ::2]"}, {"log(P(X)[j])", "L(X)[j]"},
		{"log(P(X)[arange(3), y])", "L(X)[arange(3), y]"}, {"log(P(X)[arange(y.shape[0]), y])", "L(X)[arange(3), y]"}, {"log(P(X))[arange(3), y]", "L(X)[arange(3), y]"}, {"log(P(X, axis=0)[y, arange(3)])", "L(X, axis=0)[y, arange(3)]"},
		{"log(P(X).reshape(9))", "L(X).reshape(9)"}, {"log(P(X).flatten())", "L(X).flatten()"}, {"log(P(t)[0].T[:, [1, 0]])", "L(t)[0].T[:, [1, 0]]"}, {"log(P(X + x))", "L(X + x)"}, {"log(SoftmaxWithBias(X, x)[:, 0])", "L(X + x)[:, 0]"},
		{"log(specify_shape(P(X), 3, 3))", "L(X)"}, {"log(P(X)[0])*2 + s", "L(X)[0]*2 + s"}, {"categorical_crossentropy(P(X), y)", "-L(X)[arange(3), y]"}, {"categorical_crossentropy(P(X, axis=0), y)", "-L(X, axis=0)[arange(3), y]"},
		{"categorical_crossentropy(P(X)[:2], y[:2])", "-L(X)[arange(2), y[:2]]"}, {"categorical_crossentropy(P(t)[0], y[:2])", "-L(t)[0][arange(2), y[:2]]"}, {"log(exp(X)/sum(exp(X), axis=1, keepdims=True))", "L(X)"},
		{"log(sigmoid(X)[j])", "(-softplus(-X))[j]"}, {"log(sigmoid(X)[0])", "(-softplus(-X))[0]"}, {"log(sigmoid(X).T[:, [0, 1]])", "(-softplus(-X)).T[:, [0, 1]]"}, {"log(sigmoid(X).reshape(9))", "(-softplus(-X)).reshape(9)"},

		{"-sum(Y*log(P(X)))", "-sum(Y*L(X))"}, {"-mean(Y*log(P(X)))", "-mean(Y*L(X))"}, {"sum(log(P(X)))", "sum(L(X))"}, {"-sum(r*log(P(X)))", "-sum(r*L(X))"}, {"-sum(Y*log(P(X, axis=0)))", "-sum(Y*L(X, axis=0))"},
		{"-sum(Y*log(P(X + x)))", "-sum(Y*L(X + x))"}, {"-sum(Y*log(P(X*s)))", "-sum(Y*L(X*s))"}, {"s*sum(Y*log(P(X)))/3 + sum(X)", "s*sum(Y*L(X))/3 + sum(X)"}, {"sum(Y*log(P(X)) + P(X)**2)", "sum(Y*L(X) + P(X)**2)"},
		{"-mean(log(P(X))[arange(3), y])", "-mean(L(X)[arange(3), y])"}, {"-mean(log(P(X))[arange(y.shape[0]), y])", "-mean(L(X)[arange(3), y])"}, {"-mean(log(P(X)[arange(3), y]))", "-mean(L(X)[arange(3), y])"},
		{"-mean(log(P(X)[arange(y.shape[0]), y]))", "-mean(L(X)[arange(3), y])"}, {"-sum(log(P(X)[:, [0, 1, 1]]))", "-sum(L(X)[:, [0, 1, 1]])"}, {"sum(log(P(X)[j])*Y)", "sum(L(X)[j]*Y)"}, {"sum(log(P(X, axis=0)[j])*Y)", "sum(L(X, axis=0)[j]*Y)"},
		{"sum(log(P(X)[1:, 0])*2)", "sum(L(X)[1:, 0]*2)"}, {"sum(log(P(X)[n])*s)", "sum(L(X)[n]*s)"}, {"log(P(X))[n, 1]", "L(X)[n, 1]"}, {"log(P(X)[0, 1]) + log(P(X)[1, 0])", "L(X)[0, 1] + L(X)[1, 0]"}, {"sum(log(P(X, axis=0)[0]))", "sum(L(X, axis=0)[0])"},
		{"sum(log(P(X)[:, None])*Y[None])", "sum(L(X)[:, None]*Y[None])"}, {"sum(log(P(X).T)*Y)", "sum(L(X).T*Y)"}, {"sum(log(P(X).reshape(9))*Y.flatten())", "sum(L(X).reshape(9)*Y.flatten())"}, {"sum(switch(p, log(P(X)), 0)*Y)", "sum(switch(p, L(X), 0)*Y)"},
		{"grad(sum(log(P(X)*2)*Y), X)", "grad(sum(L(X)*Y), X)"}, {"sum(-log(P(X)) - log(P(X))*Y)", "sum(-L(X) - L(X)*Y)"}, {"sum(log10(P(X)[:, 0])*s)*0 + sum(log(P(X)))", "sum(L(X))"},
		{"-sum(categorical_crossentropy(P(X), y))", "sum(L(X)[arange(3), y])"}, {"mean(categorical_crossentropy(P(X, axis=0), y))", "-mean(L(X, axis=0)[arange(3), y])"}, {"mean(categorical_crossentropy(P(X)[:2], y[:2]))", "-mean(L(X)[arange(2), y[:2]])"},
		{"-sum(P(X)*log(P(X)))", "-sum(P(X)*L(X))"}, {"sum(Y*log(P(X)))**2", "sum(Y*L(X))**2"}, {"-sum(log(SoftmaxWithBias(X, x))*Y)", "-sum(L(X + x)*Y)"},
		{"log(1 - exp(-Y*Y/1e17))", "log(-expm1(-Y*Y/1e17))"}, {"log1p(-exp(X - 3000))", "-exp(X - 3000)"}, {"log(1 - exp(x*1e-20))[0]", "log(0*x)[0]"}, {"sum(log(1 - exp(-Y*Y - 0.5)))", "sum(log1p(-exp(-Y*Y - 0.5)))"},
		{"sum(exp(X)/(1 + exp(X)))", "sum(sigmoid(X))"}, {"sum(1/(1 + exp(-X)))", "sum(sigmoid(X))"}, {"sum(1 - 1/(1 + exp(X)))", "sum(sigmoid(X))"}, {"sum(Y/(1 + exp(X)))", "sum(Y*sigmoid(-X))"},
		{"sum(log(sigmoid(X))*Y)", "sum(-softplus(-X)*Y)"}, {"sum(log(1 - sigmoid(X))*Y)", "sum(-softplus(X)*Y)"}, {"sum(log(sigmoid(X)[:, 1])*x)", "sum(-softplus(-X)[:, 1]*x)"}, {"sum(log(sigmoid(X)[j])*Y)", "sum(-softplus(-X)[j]*Y)"},
	} {
		if !longtest.Enabled() && i%6 != 0 {
			continue
		}
		forms := [][2]string{{c.expr, c.stable}}
		if strings.Contains(c.expr, "sum(") && !strings.HasPrefix(c.expr, "log(") && !strings.HasPrefix(c.expr, "grad(") || strings.Contains(c.expr, "mean(") || strings.Contains(c.expr, "n, 1]") || strings.Contains(c.expr, "0, 1]) +") {
			forms = append(forms, [2]string{"grad(" + c.expr + ", X)", "grad(" + c.stable + ", X)"})
		}
		for _, form := range forms {
			for i := range form {
				form[i] = strings.NewReplacer("P(", "softmax(", "L(", "log_softmax(").Replace(form[i])
			}
			for _, query := range []string{"+fast_run", "+fast_run -fusion -inplace"} {
				value := func(text, query string) *array.Array {
					s := expr.NewScope()
					if err := s.Declare(vars); err != nil {
						t.Fatal(err)
					}
					out, err := s.Parse(text)
					if err != nil {
						t.Fatalf("%s: %v", text, err)
					}
					var in []*array.Array
					for _, v := range s.Inputs() {
						in = append(in, args[v.Name()])
					}
					f, err := exec.NewFunction(t.Context(), s.Inputs(), out, exec.FunctionOptions{Optimizer: passtest.Optimizer(t, query)})
					if err != nil {
						t.Fatal(err)
					}
					v, err := f.Call(t.Context(), in...)
					if err != nil {
						t.Fatalf("%s: %v", text, err)
					}
					return v[0]
				}
				got, want := value(form[0], query), value(form[1], "none")
				if diff := array.MaxRelDiff(got, want); !(diff < 1e-12) {
					t.Errorf("%s, %s: %v, want %v", form[0], query, got, want)
				}
			}
		}
	}
}

// TestLogisticGradient: the gradient of the logarithm of a sigmoid keeps the digits of the
// difference to 1.
func TestLogisticGradient(t *testing.T) {
	turns(t, unfused,
		turn{"grad(sum(log(sigmoid(x))), x)", "sigmoid(neg(x))"},
		turn{"grad(sum(1/(1 + exp(-x))), x)", "mul(sigmoid(neg(x)), sigmoid(x))"},
	)
}

// TestConstantChoice: a switch of numbers, too, shields its 0 from what it is multiplied by.
func TestConstantChoice(t *testing.T) {
	turns(t, unfused,
		turn{"switch([True, False], 0.0, [1.0, 2.0])*inf", "[0.0, inf]"},
		turn{"[inf, 1.0]*switch([True, False], 0.0, [1.0, 2.0])", "[0.0, 2.0]"},
		turn{"switch([False, True], [1.0, 2.0], 0.0)/[0.0, 1.0]", "[0.0, 2.0]"},
		turn{"switch([False, True], 1.0, 0.0)*[2.0, 3.0]", "[0.0, 3.0]"},
	)
}
