package tensor_test

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

func Example() {
	x, y := tensor.Vector("x"), tensor.Vector("y")
	z := tensor.Sum(tensor.Mul(tensor.Exp(x), y))
	grads, err := tensor.Grad(z, x, y)
	if err != nil {
		panic(err)
	}
	fmt.Println(fgraph.Sprint(0, z))
	fmt.Println(fgraph.Sprint(0, grads...))
	// Output:
	// [sum(mul(exp(x), y))]
	// [mul(mul(*1 -> second(mul(*2 -> exp(x), y), DimShuffle{x}(1.0)), y), *2), mul(*1, *2)]
}

// A pass recognises an op by its type and reads its fields.
func Example_recognise() {
	z, x, y := tensor.Matrix("z"), tensor.Matrix("x"), tensor.Matrix("y")
	v := tensor.MustApply(tensor.GemmOp{}, z, tensor.Float(2), x, y, tensor.Float(1))
	if op, ok := tensor.OpOf(v).(tensor.GemmOp); ok && !op.Inplace {
		v = tensor.MustApply(tensor.GemmOp{Inplace: true}, v.Owner().Inputs()...)
	}
	fmt.Println(fgraph.Sprint(0, v))
	// Output: [Gemm{inplace}(z, 2.0, x, y, 1.0)]
}

// Products of several tensors are multiplied in a good order.
func ExampleEinsum() {
	x, y, z := tensor.Matrix("x"), tensor.Matrix("y"), tensor.Vector("z")
	fmt.Println(fgraph.Sprint(0, tensor.Einsum("ij,jk,k->i", x, y, z)))
	// Output: [dot(x, dot(y, z))]
}

// Functions that build expressions panic. Try returns an error instead.
func ExampleTry() {
	x, y := fgraph.NewInput(tensor.NewType(array.Float64, 2, 3), "x"), fgraph.NewInput(tensor.NewType(array.Float64, 4, 5), "y")
	_, err := tensor.Try(func() *fgraph.Variable { return tensor.Dot(x, y) })
	fmt.Println(err)
	// Output: dot: argument 2: is a float64[4, 5], whose first dimension does not fit the last one of a float64[2, 3]
}

// Shapes are expressions themselves, of the shapes of inputs.
func ExampleShapes() {
	x, y := tensor.Matrix("x"), tensor.Matrix("y")
	v := tensor.Join(0, tensor.Dot(x, y), y)
	fmt.Println(v.Type())
	fmt.Println(fgraph.Sprint(0, tensor.NewShapes().Shape(v)...))
	// Output:
	// float64 matrix
	// [add(Shape_i{0}(x), Shape_i{0}(y)), Shape_i{1}(y)]
}

func ExampleNewType() {
	fmt.Println(tensor.NewType(array.Float32, 2, tensor.Unknown), "-", tensor.NewType(array.Float64, 1, tensor.Unknown), "-", tensor.VectorType(array.Int64))
	fmt.Println(tensor.MatrixType(array.Float64).Accepts(tensor.NewType(array.Float64, 2, 3)))
	// Output:
	// float32[2, ?] - float64 row - int64 vector
	// true
}
