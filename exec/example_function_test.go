package exec_test

import (
	"context"
	"fmt"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// A function of tensors, without optimization.
func ExampleNewFunction() {
	x, y := tensor.Vector("x"), tensor.Scalar("y")
	f, err := exec.NewFunction(context.Background(), []*fgraph.Variable{x, y}, []*fgraph.Variable{tensor.Add(x, y)}, exec.FunctionOptions{})
	if err != nil {
		panic(err)
	}
	out, err := f.Call(context.Background(), array.Of([]float64{1, 2}, 2), array.Scalar(3.0))
	fmt.Println(out[0], err)
	// Output: [4.0, 5.0] <nil>
}

// A step of gradient descent: the function updates a shared variable with every call.
func ExampleShared() {
	ctx := context.Background()
	w := exec.NewShared("w", array.Scalar(0.0))
	x, y := tensor.Vector("x"), tensor.Vector("y")
	loss := tensor.Sum(tensor.Sqr(tensor.Sub(tensor.Mul(w.Variable(), x), y)))
	grads, err := tensor.Grad(loss, w.Variable())
	if err != nil {
		fmt.Println(err)
		return
	}
	step, err := exec.NewFunction(ctx, []*fgraph.Variable{x, y}, []*fgraph.Variable{loss}, exec.FunctionOptions{
		Updates: []exec.Update{{Shared: w, New: tensor.Sub(w.Variable(), tensor.Mul(tensor.Float(0.05), grads[0]))}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		out, err := step.Call(ctx, array.Of([]float64{1, 2}, 2), array.Of([]float64{3, 6}, 2))
		fmt.Println("loss", out, "w", w.Value(), err)
	}
	// Output:
	// loss [45.0] w 1.5 <nil>
	// loss [11.25] w 2.25 <nil>
	// loss [2.8125] w 2.625 <nil>
}

// A Runner keeps its memory from call to call. Its profile says what each op took.
func ExampleRunner() {
	ctx := context.Background()
	s := expr.NewScope()
	if err := s.Declare("X: matrix"); err != nil {
		fmt.Println(err)
		return
	}
	f, err := exec.NewFunction(ctx, s.Inputs(), []*fgraph.Variable{s.MustParse("sum(exp(X), axis=0)")}, exec.FunctionOptions{Profile: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	args, err := exec.ParseArguments(ctx, s.Inputs(), "X=[[0, 1], [0, 1]]")
	if err != nil {
		fmt.Println(err)
		return
	}
	r := f.NewRunner()
	for range 10 {
		if _, err := r.Run(ctx, args...); err != nil {
			fmt.Println(err)
			return
		}
	}
	for _, op := range r.Profile().Execution {
		fmt.Println(op.Name, op.Calls, "calls,", op.Bytes, "bytes")
	}
	// Unordered output:
	// sum{axis=0} 10 calls, 160 bytes
	// exp 10 calls, 320 bytes
}

// A runner computes its output where the next argument is read: a state that no call allocates.
func ExampleRunner_LendOutput() {
	x := fgraph.NewInput(tensor.NewType(array.Float64, 2), "x")
	next := tensor.Add(tensor.Mul(tensor.Exp(x), x), tensor.Float(1))
	f, err := exec.NewFunction(context.Background(), []*fgraph.Variable{x}, []*fgraph.Variable{next}, exec.FunctionOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.Memory().Peak(), "bytes")
	r := f.NewRunner()
	state := array.New(array.Float64, 2)
	if err := r.LendOutput(0, state); err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		if _, err := r.Run(context.Background(), state); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(state)
	// Output:
	// 192 bytes
	// [3.7182818284590455, 3.7182818284590455]
}
