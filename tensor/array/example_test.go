package array_test

import (
	"fmt"

	"github.com/nnopt/nnopt/tensor/array"
)

// A program of several operations reads and writes memory once. The row is broadcast.
func ExampleProgram() {
	p := array.NewProgram(array.Float64, array.Float64)
	square := p.Append(array.Sqr, 0)
	p.Return(p.Append(array.Add, square, 1))
	fmt.Println(p)

	x, row := array.Of([]float64{1, 2, 3, 4}, 2, 2), array.Of([]float64{10, 20}, 1, 2)
	out := array.New(array.Float64, 2, 2)
	var ws array.Workspace
	ws.Map(p, []*array.Array{out}, []*array.Array{x, row})
	fmt.Println(out)
	// Output:
	// add(sqr(i0), i1)
	// [[11.0, 24.0], [19.0, 36.0]]
}
