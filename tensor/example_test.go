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
