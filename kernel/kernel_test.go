package kernel_test

import (
	"fmt"

	"github.com/nnopt/nnopt/kernel"
)

func ExampleRow() {
	m := kernel.Matrix{Rows: 2, Cols: 2, Stride: 3, Data: []float32{1, 2, 0, 3, 4}}
	fmt.Println(kernel.Row(m, 1))
	// Output:
	// [3 4]
}

func ExampleExp() {
	fmt.Println(kernel.Exp(1))
	// Output:
	// 2.7182818284590455
}
