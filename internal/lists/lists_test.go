package lists_test

import (
	"fmt"

	"github.com/nnopt/nnopt/internal/lists"
)

func ExampleMap() {
	fmt.Println(lists.Map([]string{"dot", "softmax"}, func(s string) int { return len(s) }))
	// Output: [3 7]
}

func ExampleRange() {
	fmt.Println(lists.Range[int64](3))
	// Output: [0 1 2]
}
