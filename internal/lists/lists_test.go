package lists_test

import (
	"fmt"

	"github.com/nnopt/nnopt/internal/lists"
)

func ExampleMap() {
	fmt.Println(lists.Map([]string{"dot", "softmax"}, func(s string) int { return len(s) }))
	// Output: [3 7]
}
