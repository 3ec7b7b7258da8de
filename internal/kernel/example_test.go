package kernel_test

import (
	"fmt"

	"github.com/nnopt/nnopt/internal/kernel"
)

// A layer: y = max(x·Wᵀ + bias, 0), with weights that are packed once.
func ExampleWeights_Mul() {
	w := kernel.NewWeights(kernel.Matrix{Rows: 2, Cols: 3, Stride: 3, Data: []float32{
		1, 2, 3,
		-1, 0, -1,
	}})
	x := kernel.Matrix{Rows: 2, Cols: 3, Stride: 3, Data: []float32{
		1, 1, 1,
		0, 1, -5,
	}}
	y := kernel.New(2, 2)
	w.Mul(x, kernel.Epilogue{Bias: []float32{0.5, 0}, ReLU: true}, y)
	fmt.Println(y.Data)
	// Output:
	// [6.5 0 0 5]
}

// An element-wise function is applied to a view: here, to the last two columns of a matrix, in
// place.
func ExampleMapRows() {
	m := kernel.Matrix{Rows: 2, Cols: 3, Stride: 3, Data: []float32{
		-1, -2, 3,
		-4, 5, -6,
	}}
	right := kernel.Cols(m, 1, 2)
	kernel.MapRows(right, right, kernel.ReLUVec)
	fmt.Println(m.Data)
	// Output:
	// [-1 0 3 -4 5 0]
}

// A map of float64s is looked up by name. In-place maps are fine.
func ExampleFloat64Map() {
	sqrt := kernel.Float64Map("sqrt")
	v := []float64{1, 4, 9}
	sqrt(v, v, nil)
	fmt.Println(v, kernel.Float64Map("gamma") == nil)
	// Output:
	// [1 2 3] true
}
