package saturate_test

import (
	"context"
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/saturate"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// The vocabulary toys is that of the tests: a sum costs one less than it has terms, and a product
// one less than it has factors.
func Example() {
	rules, err := pattern.ParseRules("rules", `
# A common factor is multiplied once.
distribute:
    (add (mul x y) (mul x z)) <=> (mul x (add y z))

# The opposite of the opposite is the number.
opposite:
    (neg (neg x)) => x
`)
	if err != nil {
		fmt.Println(err)
		return
	}
	p := saturate.Pass{Name: "saturate"}
	for _, r := range rules {
		s, err := pattern.New(toys{}, r)
		if err != nil {
			fmt.Println(err)
			return
		}
		p.Rules = append(p.Rules, s)
	}
	a, b, c := fgraph.NewInput(number, "a"), fgraph.NewInput(number, "b"), fgraph.NewInput(number, "c")
	sum := call("add", call("mul", a, b), call("mul", call("neg", call("neg", a)), c))
	g, err := fgraph.New([]*fgraph.Variable{a, b, c}, []*fgraph.Variable{sum})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g)
	if err := rewrite.Run(context.Background(), &p, g, nil); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g)
	// Output:
	// [add(mul(a, b), mul(neg(neg(a)), c))]
	// [mul(a, add(b, c))]
}
