package tutorial

import (
	"context"
	"fmt"

	"github.com/nnopt/nnopt/optdb/graphtest"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor/expr"
)

func Example_files() {
	const cases = `passes: simplify
expect: simplify

graph {
    input %x : float64 scalar
    input %y : float64 scalar
    %0 = mul(%x, %y) : float64 scalar
    %1 = true_div(%0, %y) : float64 scalar
    %2 = exp(%1) : float64 scalar
    return %2
}
---
`
	simplify := pattern.Must(tensorpass.Vocabulary(), "(true_div (mul x y) y)", "x", pattern.Named("simplify"))
	updated, err := graphtest.Check(context.Background(), "simplify.graph", cases, graphtest.Config{
		Dialect: expr.Dialect{}, Passes: []rewrite.GraphRewriter{rewrite.In2Out("simplify", simplify)},
	})
	fmt.Println(err)
	fmt.Print(updated[len(cases):])
	// Output:
	// simplify.graph:1: another result: got
	// graph {
	//     input %x : float64 scalar
	//     input %y : float64 scalar
	//     %0 = exp(%x) : float64 scalar
	//     return %0
	// }
	// want
	//
	// graph {
	//     input %x : float64 scalar
	//     input %y : float64 scalar
	//     %0 = exp(%x) : float64 scalar
	//     return %0
	// }
}
