package tensortest_test

import (
	"fmt"

	"github.com/nnopt/nnopt/passes/tensortest"
	"github.com/nnopt/nnopt/tensor"
)

// The same seed gives the same expressions.
func ExampleGenerator() {
	var texts []string
	for range 2 {
		g := tensortest.NewGenerator(7)
		g.Grow(5)
		inputs, _ := g.Inputs()
		graph, err := tensor.NewGraph(inputs, g.Outputs(1))
		if err != nil {
			panic(err)
		}
		texts = append(texts, graph.String())
	}
	fmt.Println(texts[0] == texts[1])
	// Output: true
}

// A graph comes in any size.
func ExampleAddChain() {
	chain := tensortest.AddChain(3)
	graph, err := tensor.NewGraph(chain.Inputs, chain.Outputs)
	if err != nil {
		panic(err)
	}
	fmt.Println(graph)
	// Output: [add(add(add(x, 0), 1), 2)]
}
