package index_test

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/nnet3/index"
)

// The rows of two sequences, in the order of a computation and in print.
func Example() {
	var rows []index.Index
	for n := range int32(2) {
		for t := int32(-1); t <= 1; t++ {
			rows = append(rows, index.Index{N: n, T: t})
		}
	}
	fmt.Println(index.Format(rows))
	slices.SortFunc(rows, index.Compare)
	fmt.Println(rows)
	fmt.Println(rows[0].Add(index.Index{T: -5}))
	// Output:
	// [(0,-1:1), (1,-1:1)]
	// [(0,-1) (1,-1) (0,0) (1,0) (0,1) (1,1)]
	// (0,-6)
}
