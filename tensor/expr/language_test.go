package expr_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// TestLanguage calls functions and ops with random positional and named arguments. Every call is
// computed or fails with an error that names the function.
func TestLanguage(t *testing.T) {
	csr := array.ToCSR(array.Of([]float64{1, 0, 2, 0, 0, 3, 4, 0, 0}, 3, 3))
	args := []*array.Array{
		array.Of([]float64{1, -2, 0.5}, 3), array.Of([]float64{1, 2, 3}, 3), array.Full(array.Float64, 0.25, 3, 3), array.Full(array.Float64, 2, 3, 3), array.Scalar(1.5),
		array.Full(array.Float64, 1, 3, 3, 3), array.Full(array.Float32, 3, 3), array.Of([]int64{0, 2, 1}, 3), array.Scalar(int64(2)), array.Of([]bool{true, false, true}, 3), csr, array.Full(array.Float64, 7, 3),
	}
	positional := []string{"x", "X", "t", "i", "n", "s", "f", "p", "S", "v", "2", "0", "-1", "0.5", "10**12", "9223372036854775807", "'x'", "[1, 2]", "[]", "[[0, 1], [1, 0]]", "[x, X]", "(0, 1)", "None", "True", "'float32'", "...", "x[:2]", "X[i]"}
	named := []string{"axis=1", "axis=-9", "axis=None", "axis=[0, 1]", "keepdims=1", "x=X", "x=2", "y=X", "y=i", "step=2", "step=0", "start=1", "stop=5", "dtype='float32'", "dtype=2", "shape=[3, 1]", "shape=x", "ndim=2", "ndim=X", "tensors=[x, x]", "wrt=x", "cost=s", "min=0", "value=X", "nonsense=1"}
	tries := longtest.Of(24, 120)
	rng := rand.New(rand.NewPCG(1, 2))
	computed := 0
	for _, name := range languageNames() {
		for try := range tries {
			var list []string
			for range try % 6 {
				list = append(list, positional[rng.IntN(len(positional))])
			}
			for range try / 6 % 4 {
				list = append(list, named[rng.IntN(len(named))])
			}
			text := fmt.Sprintf("%s(%s)", name, strings.Join(list, ", "))
			s := newScope(t, parseVars)
			out, err := s.Parse(text)
			if err != nil {
				var own *tensor.Error
				if !errors.As(err, &own) || own.Op == "" {
					t.Errorf("%s: %v does not say where", text, err)
				}
				continue
			}
			f, err := exec.NewFunction(t.Context(), s.Inputs(), out, exec.FunctionOptions{})
			if errors.Is(err, fgraph.ErrInconsistent) {
				continue // the op overwrites an input of the graph
			}
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			if _, err := f.Call(t.Context(), args...); err == nil {
				computed++
			} else if errors.Is(err, exec.ErrPanic) {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
	if computed < longtest.Of(200, 300) {
		t.Errorf("only %d calls were computed", computed)
	}
}

// languageNames returns the names of all functions and of all ops. Ops have parameters of every
// kind that they accept.
func languageNames() []string {
	names := expr.Default().Functions()
	ops := expr.Default().Names()
	for _, op := range ops {
		for _, params := range []string{"", "{0}", "{1}", "{2}", "{8}", "{axis=0}", "{axis=0,1}", "{axis=7}", "{}", "{1,0}", "{x,0,x}", "{1:}", "{_}", "{::-1,_:_}", "{inplace}", "{0}{inplace}", "{1:}{inplace}",
			"{inplace=0}", "{inplace=7}", "{float32}", "{int64}", "{bool}{inplace=0}", "{[?, 3]}", "{[3]}", "{a}", "{-1}", "{0,0,1}", "{-1,1,0}", "{half_pixel}", "{asymmetric}{floor}",
			"{1}{strides=2}{pads=0,1}{groups=3}", "{2}{dilations=1,2}{pads=0,-1,1,0}", "{2,1}{strides=2,1}{ceil}"} {
			if _, ok := expr.Default().Op(op + params); ok {
				names = append(names, op+params)
			}
		}
	}
	return names
}

// TestMissingArguments checks that errors name an argument that is missing, unknown or given twice.
func TestMissingArguments(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"arange(step=2)", "arange: argument stop is missing"}, {"arange()", "arange: argument stop is missing"}, {"arange(1, 2, 3, 4)", "arange: 4 arguments, it takes 3"},
		{"concatenate(axis=1)", "concatenate: argument tensors is missing"}, {"dot(axis=1, keepdims=1)", "dot: argument x is missing"}, {"dot(X, keepdims=1)", "dot: argument y is missing"},
		{"dot(X, Y, keepdims=1)", "dot: takes no argument keepdims"}, {"dot(X, Y, x=X)", "dot: argument x is given twice"}, {"fill(x=1, y=2)", "fill: argument model is missing"},
		{"clip(x, max=1)", "clip: argument min is missing"}, {"join(x=1, y=2)", "join: argument axis is missing"}, {"dimshuffle(axis=1)", "dimshuffle: argument x is missing"},
		{"inc_subtensor(x[1:], value=2)", "inc_subtensor: argument y is missing"}, {"specify_shape(shape=3)", "specify_shape: argument x is missing"}, {"cast(x)", "cast: argument dtype is missing"},
		{"exp(x, axis=1)", "exp: takes no argument axis"}, {"Softmax(X, axis=0)", "Softmax: takes no argument axis"}, {"where(p, x, y, axis=1)", "where: takes no argument axis"}, {"softmax(axis=0)", "softmax: argument x is missing"},
		{"stack(axis=0)", "stack: no tensors"}, {"sum(axis=0)", "sum: argument x is missing"}, {"grad(wrt=x)", "grad: argument cost is missing"},
	} {
		if _, err := newScope(t, parseVars).Parse(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
	for _, c := range [][2]string{{"arange(stop=3)", "ARange(0, 3, 1)"}, {"arange(1, stop=3)", "ARange(1, 3, 1)"}, {"arange(3, step=2)", "ARange(0, 3, 2)"}, {"arange(start=1, stop=9, step=2)", "ARange(1, 9, 2)"},
		{"dot(y=Y, x=X)", "dot(X, Y)"}, {"clip(x, max=1, min=0)", "minimum(maximum(x, 0.0), 1.0)"}, {"concatenate(tensors=[x, y])", "Join{0}(x, y)"}, {"reshape(x=X, shape=[3, 3])", "Reshape{2}(X, [3, 3])"}} {
		out, err := newScope(t, parseVars).Parse(c[0])
		if err != nil || fgraph.Sprint(0, out...) != "["+c[1]+"]" {
			t.Errorf("%s is %s, %v, want %s", c[0], fgraph.Sprint(0, out...), err, c[1])
		}
	}
}
