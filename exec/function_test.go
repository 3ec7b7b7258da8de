package exec_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// scope has variables of all kinds.
func scope(t testing.TB) *expr.Scope {
	t.Helper()
	s := expr.NewScope()
	if err := s.Declare("x y: vector; X Y: matrix; s b: scalar; t3: tensor3; f: float32 matrix; i: int64 vector; r: row; c: col; S: csr"); err != nil {
		t.Fatal(err)
	}
	return s
}

func numbers(shape ...int) *array.Array {
	a := array.New(array.Float64, shape...)
	for i := range a.Len() {
		a.SetFloat(i, float64(i)+1)
	}
	return a
}

// values are arguments for the variables of scope.
func values() []*array.Array {
	return []*array.Array{numbers(3), numbers(3), numbers(3, 3), numbers(3, 3), array.Scalar(2.0), array.Scalar(-1.0), numbers(2, 3, 4),
		numbers(3, 3).Cast(array.Float32), array.Of([]int64{2, 0, -1}, 3), numbers(1, 3), numbers(3, 1),
		array.ToCSR(array.Of([]float64{1, 0, 2, 0, 0, 3, 4, 0, 0}, 3, 3))}
}

// TestExpressions computes expressions without any optimization.
func TestExpressions(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"x + y", "[2.0, 4.0, 6.0]"},
		{"(x + 1)*y/s", "[1.0, 3.0, 6.0]"},
		{"-x**2", "[-1.0, -4.0, -9.0]"},
		{"2**-1", "0.5"},
		{"X.T", "[[1.0, 4.0, 7.0], [2.0, 5.0, 8.0], [3.0, 6.0, 9.0]]"},
		{"dot(X, x)", "[14.0, 32.0, 50.0]"}, {"dot(x, X)", "[30.0, 36.0, 42.0]"}, {"dot(x, y)", "14.0"}, {"x.dot(X)[0]", "30.0"},
		{"outer(x, y)[1]", "[2.0, 4.0, 6.0]"},
		{"sum(X, axis=0)", "[12.0, 15.0, 18.0]"}, {"X.sum(axis=1)", "[6.0, 15.0, 24.0]"}, {"sum(X)", "45.0"}, {"mean(X, axis=(0, 1))", "5.0"},
		{"max(X, axis=-1)", "[3.0, 6.0, 9.0]"}, {"argmax(X)", "8"}, {"prod(x)", "6.0"}, {"sum(X, axis=0, keepdims=True)", "[[12.0, 15.0, 18.0]]"},
		{"X + x", "[[2.0, 4.0, 6.0], [5.0, 7.0, 9.0], [8.0, 10.0, 12.0]]"}, {"r + c", "[[2.0, 3.0, 4.0], [3.0, 4.0, 5.0], [4.0, 5.0, 6.0]]"},
		{"x[1:3]", "[2.0, 3.0]"}, {"x[::-1]", "[3.0, 2.0, 1.0]"}, {"x[-1]", "3.0"}, {"X[1, ::2]", "[4.0, 6.0]"}, {"x[None]", "[[1.0, 2.0, 3.0]]"},
		{"X[..., 0]", "[1.0, 4.0, 7.0]"}, {"x[i]", "[3.0, 1.0, 3.0]"}, {"X[i, i]", "[9.0, 1.0, 9.0]"}, {"x[:, None].shape", "[3, 1]"},
		{"inc_subtensor(x[1:3], y[0:2])", "[1.0, 3.0, 5.0]"}, {"set_subtensor(x[0], 7)", "[7.0, 2.0, 3.0]"}, {"inc_subtensor(x[i], 1)", "[2.0, 2.0, 5.0]"},
		{"alloc(s, 2, 2)", "[[2.0, 2.0], [2.0, 2.0]]"}, {"zeros(3)", "[0.0, 0.0, 0.0]"}, {"ones(2, dtype=int64)", "[1, 1]"}, {"fill(x, 1)", "[1.0, 1.0, 1.0]"},
		{"reshape(t3, 4, -1)[0]", "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]"}, {"flatten(X)[4]", "5.0"}, {"reshape(X.T, (9,))[1]", "4.0"}, {"t3.shape", "[2, 3, 4]"},
		{"t3.transpose(2, 0, 1).shape", "[4, 2, 3]"}, {"x.dimshuffle('x', 0).shape", "[1, 3]"}, {"X.size", "9"},
		{"switch(x > 1, x, 0)", "[0.0, 2.0, 3.0]"}, {"where(b < 0, 1, 2)", "1"}, {"~(x > 1) | (x == 3)", "[True, False, True]"},
		{"join(0, x, y)", "[1.0, 2.0, 3.0, 1.0, 2.0, 3.0]"}, {"concatenate([X, X], axis=1)[0]", "[1.0, 2.0, 3.0, 1.0, 2.0, 3.0]"}, {"stack([s, b])", "[2.0, -1.0]"},
		{"stack([x, y])[1]", "[1.0, 2.0, 3.0]"}, {"[[[1, 2], [3, 4.5]]]", "[[1.0, 2.0], [3.0, 4.5]]"}, {"arange(2, 8, 3)", "[2, 5]"},
		{"cast(x, int64)//2", "[0, 1, 1]"}, {"-7 % 2 + i", "[3, 1, 0]"}, {"7//-2 + i", "[-2, -4, -5]"}, {"clip(x, 2, 2.5)", "[2.0, 2.0, 2.5]"},
		{"f*2", "[[2.0, 4.0, 6.0], [8.0, 10.0, 12.0], [14.0, 16.0, 18.0]]"}, {"exp(0)", "1.0"}, {"maximum(x, 2)", "[2.0, 2.0, 3.0]"},
		{"softmax(zeros(1, 2))", "[[0.5, 0.5]]"}, {"sdot(S, X)", "[[15.0, 18.0, 21.0], [21.0, 24.0, 27.0], [4.0, 8.0, 12.0]]"},
		{"true_div(mul(*1 -> add(x, y), x), *1)", "[1.0, 2.0, 3.0]"}, {"sum{axis=0}(DimShuffle{1,0}(X))", "[6.0, 15.0, 24.0]"},
		{"Gemm(X, 1.0, Y, Y, -1.0)[0]", "[29.0, 34.0, 39.0]"}, {"grad(sum(x**2), x)", "[2.0, 4.0, 6.0]"}, {"grad(sum(sigmoid(s*x)), b)", "0.0"},
		{"all(x > 0)", "True"}, {"any(X > 8, axis=1)", "[False, False, True]"}, {"logsumexp(zeros(4))", "1.3862943611198906"},
		{"1 < 2", "True"}, {"x.T.sum()", "6.0"}, {"nan", "nan"}, {"-inf", "-inf"},
	} {
		s := scope(t)
		out, err := s.Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		f, err := exec.NewFunction(t.Context(), s.Inputs(), out, exec.FunctionOptions{})
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		got, err := f.Call(t.Context(), values()...)
		if err != nil || got[0].String() != c.want {
			t.Errorf("%s = %v, %v, want %s", c.text, got, err, c.want)
		}
	}
}

func TestFunctionErrors(t *testing.T) {
	for _, c := range []struct {
		text string
		err  error
		says string
	}{
		{"x + x[0:2]", tensor.ErrShape, "argument 2 has size 2 in dimension 0, argument 1 has size 3"},
		{"x[5]", tensor.ErrShape, "index out of range"}, {"dot(X, x[1:])", tensor.ErrShape, "shapes [3 3] and [2]"},
		{"reshape(x, 2, 2)", tensor.ErrShape, "Reshape{2}"}, {"x[i + 5]", array.ErrIndex, ""}, {"max(x[3:])", array.ErrEmpty, ""},
		{"zeros(100000, 100000, 100000)", array.ErrTooLarge, ""}, {"alloc(0, cast(b, int64))", tensor.ErrShape, "size -1"},
		{"arange(0, 5, cast(s, int64) - 2)", tensor.ErrShape, "step 0"},
	} {
		s := scope(t)
		out, err := s.Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		f, err := exec.NewFunction(t.Context(), s.Inputs(), out, exec.FunctionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var where *exec.ApplyError
		if _, err = f.Call(t.Context(), values()...); !errors.Is(err, c.err) || !errors.As(err, &where) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v", c.text, err, c.err)
		}
	}
	s := scope(t)
	f, err := exec.NewFunction(t.Context(), s.Inputs(), []*fgraph.Variable{s.MustParse("x + y")}, exec.FunctionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	args := values()
	args[1] = array.Scalar(1.0)
	if _, err := f.Call(t.Context(), args...); !errors.Is(err, exec.ErrArgument) {
		t.Errorf("a scalar for a vector: %v", err)
	}
	if _, err := f.Call(t.Context()); !errors.Is(err, exec.ErrArgument) {
		t.Errorf("no arguments: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Call(ctx, values()...); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A lateContext is cancelled once it has been asked a few times.
type lateContext struct {
	context.Context
	asked, most int
}

func (c *lateContext) Err() error {
	if c.asked++; c.asked > c.most {
		return context.Canceled
	}
	return nil
}

// TestCancelledRuns: runs that are cancelled don't use up the memory that a call may take.
func TestCancelledRuns(t *testing.T) {
	x := fgraph.NewInput(tensor.NewType(array.Float64, 100), "x")
	sum := x
	for range 100 {
		sum = tensor.Add(tensor.Exp(sum), x)
	}
	f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x}, []*fgraph.Variable{sum}, exec.FunctionOptions{MaxBytes: 5000})
	if err != nil {
		t.Fatal(err)
	}
	r, arg := f.NewRunner(), array.New(array.Float64, 100)
	for range 20 {
		if _, err := r.Run(&lateContext{Context: t.Context(), most: 2}, arg); err == nil || errors.Is(err, array.ErrTooLarge) {
			t.Fatalf("a cancelled run: %v", err)
		}
		if _, err := r.Run(t.Context(), arg); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSharedUpdates: updates see the old values of all shared variables.
func TestSharedUpdates(t *testing.T) {
	a, b := exec.NewShared("a", array.Of([]float64{1, 2}, 2)), exec.NewShared("b", array.Of([]float64{10, 20}, 2))
	sum := tensor.Sum(tensor.Add(a.Variable(), b.Variable()))
	f, err := exec.NewFunction(t.Context(), nil, []*fgraph.Variable{sum, a.Variable()}, exec.FunctionOptions{Updates: []exec.Update{
		{a, tensor.Add(a.Variable(), b.Variable())}, {b, a.Variable()}}})
	if err != nil {
		t.Fatal(err)
	}
	r := f.NewRunner()
	for i, want := range []string{"[33.0 [1.0, 2.0]] [11.0, 22.0] [1.0, 2.0]", "[36.0 [11.0, 22.0]] [12.0, 24.0] [11.0, 22.0]"} {
		out, err := r.Run(t.Context())
		if got := fmt.Sprint(out, a.Value(), b.Value()); err != nil || got != want {
			t.Errorf("call %d: %v, %v, want %v", i, got, err, want)
		}
	}
	if err := a.SetValue(array.Scalar(1.0)); !errors.Is(err, exec.ErrArgument) {
		t.Errorf("a scalar for a vector: %v", err)
	}
}

// TestRunnerReusesMemory: results are valid until the next run, and a run in steady state allocates
// little.
func TestRunnerReusesMemory(t *testing.T) {
	s := scope(t)
	v := s.MustParse("x")
	for range 50 {
		v = tensor.Add(tensor.Exp(tensor.Neg(v)), s.Lookup("y"))
	}
	f, err := exec.NewFunction(t.Context(), s.Inputs(), []*fgraph.Variable{v}, exec.FunctionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := f.NewRunner()
	args := values()
	args[0], args[1] = numbers(1000), numbers(1000)
	first, err := r.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	want := first[0].Clone()
	if allocs := testing.AllocsPerRun(10, func() {
		if _, err := r.Run(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}); allocs > 2 {
		t.Errorf("%v allocations", allocs)
	}
	if again, _ := r.Run(t.Context(), args...); !array.Equal(again[0], want) {
		t.Error("another run gives other values")
	}
	if peak := r.Peak(); peak > 4*8*1024 {
		t.Errorf("%d bytes for a chain of vectors of 8000", peak)
	}
}

// TestFunctionConcurrently: one function, many goroutines.
func TestFunctionConcurrently(t *testing.T) {
	s := scope(t)
	f, err := exec.NewFunction(t.Context(), s.Inputs(), []*fgraph.Variable{s.MustParse("sum(exp(dot(X, Y)/100), axis=0) + x")}, exec.FunctionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := f.Call(t.Context(), values()...)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if got, err := f.Call(t.Context(), values()...); err != nil || !array.Equal(got[0], want[0]) {
					t.Error(got, err)
				}
			}
		})
	}
	wg.Wait()
}

// An ender is an identity that ends a context.
type ender struct{ end func() }

func (ender) String() string { return "ender" }
func (ender) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	return []fgraph.Type{in[0].Type()}, nil
}
func (e ender) Compile(*fgraph.Apply) (tensor.Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		e.end()
		*out[0] = *in[0].Clone()
		return nil
	}, nil
}

// TestCanceled: a call ends after the op that runs when its context ends, and the Runner can be used again.
func TestCanceled(t *testing.T) {
	enough := errors.New("enough")
	var cancel context.CancelCauseFunc
	first, second := 0, 0
	x := fgraph.NewInput(tensor.VectorType(array.Float64), "x")
	v := x
	for _, op := range []*ender{{func() { first++; cancel(enough) }}, {func() { second++ }}} {
		v = fgraph.NewApply(op, []*fgraph.Variable{v}, x.Type()).Out()
	}
	f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x}, []*fgraph.Variable{tensor.Neg(v)}, exec.FunctionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := f.NewRunner()
	var ctx context.Context
	for range 3 {
		ctx, cancel = context.WithCancelCause(t.Context())
		if _, err := r.Run(ctx, numbers(3)); !errors.Is(err, enough) {
			t.Fatal(err)
		}
	}
	cancel = func(error) {}
	if got, err := r.Run(t.Context(), numbers(3)); err != nil || got[0].Len() != 3 || first != 4 || second != 1 {
		t.Fatal(got, err, first, second)
	}
}

// TestConstantVector: a product with a vector that is prepared because it is a constant has the bits of one with an
// argument.
func TestConstantVector(t *testing.T) {
	for _, n := range []int{1, 2, 7, 128, 513, 3000, 40000} {
		for _, shape := range [][]int{{n}, {1, n}, {3, n}, {20, n}} {
			for _, dtype := range []array.DType{array.Float32, array.Float64} {
				x, v := uniform(dtype, -1, 1, shape...), uniform(dtype, -2, 1, n)
				if n == 128 {
					v.SetFloat(5, math.Inf(1))
					x.SetFloat(7, math.NaN())
				}
				a, b := fgraph.NewInput(tensor.NewType(dtype, shape...), "a"), fgraph.NewInput(tensor.NewType(dtype, n), "b")
				f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{a, b}, []*fgraph.Variable{tensor.Dot(a, b), tensor.Dot(a, tensor.Constant(v))}, exec.FunctionOptions{})
				if err != nil {
					t.Fatal(err)
				}
				out, err := f.Call(t.Context(), x, v)
				if err != nil || !array.Equal(out[0], out[1]) {
					t.Errorf("%v of %v: %v, of a constant %v (%v)", dtype, shape, out[0], out[1], err)
				}
			}
		}
	}
}
