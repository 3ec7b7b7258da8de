package tensor_test

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
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

func ExampleScope_Parse() {
	s := tensor.NewScope()
	if err := s.Declare("x y z: vector; X: matrix"); err != nil {
		panic(err)
	}
	for _, text := range []string{"(y + z)*x/(y + z)", "true_div(mul(add(y, z), x), add(y, z))", "X.T[1:3, None]", "sum(X, axis=0) + s"} {
		out, err := s.Parse(text)
		fmt.Println(fgraph.Sprint(0, out...), err)
	}
	_, err := s.Parse("X + [1, 2")
	fmt.Println(err)
	_, err = s.Parse("dot(X, exp(x, y))")
	fmt.Println(err)
	// Output:
	// [true_div(mul(add(y, z), x), add(y, z))] <nil>
	// [true_div(mul(add(y, z), x), add(y, z))] <nil>
	// [DimShuffle{0,x,1}(Subtensor{1:3}(DimShuffle{1,0}(X)))] <nil>
	// [add(sum{axis=0}(X), DimShuffle{x}(s))] <nil>
	// column 10: "]" expected, not end
	// column 8: exp: 2 arguments, it takes 1
}
