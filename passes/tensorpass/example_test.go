package tensorpass_test

import (
	"context"
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
)

// The rules of a group run until none of them fires.
func ExampleIn() {
	x := tensor.Vector("x")
	y := tensor.Log(tensor.Add(tensor.Int(1), tensor.Exp(x)))
	g, err := tensor.NewGraph(tensor.InputsOf(y), []*fgraph.Variable{y})
	if err != nil {
		panic(err)
	}
	stabilize := &rewrite.Equilibrium{Name: "stabilize"}
	for _, l := range tensorpass.In(tensorpass.Stabilize) {
		stabilize.Rules = append(stabilize.Rules, l.Rule)
	}
	if err := rewrite.Run(context.Background(), stabilize, g, nil); err != nil {
		panic(err)
	}
	fmt.Println(g)
	// Output: [softplus(x)]
}

// A pass, or a rule as a pass, is known by its name.
func ExamplePass() {
	x, y := tensor.Matrix("x"), tensor.Matrix("y")
	z := tensor.Transpose(tensor.Dot(x, y))
	g, err := tensor.NewGraph([]*fgraph.Variable{x, y}, []*fgraph.Variable{z})
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"local_lift_transpose_through_dot", "local_dot_to_dot22"} {
		if err := rewrite.Run(context.Background(), tensorpass.Pass(name), g, nil); err != nil {
			panic(err)
		}
		fmt.Println(g)
	}
	// Output:
	// [dot(DimShuffle{1,0}(y), DimShuffle{1,0}(x))]
	// [Dot22(DimShuffle{1,0}(y), DimShuffle{1,0}(x))]
}

// A rule of one's own is a line of text.
func ExampleVocabulary() {
	rule := pattern.Must(tensorpass.Vocabulary(), "(tanh (neg x))", "(neg (tanh x))", pattern.Named("tanh_of_neg"))
	x := tensor.Vector("x")
	y := tensor.Tanh(tensor.Neg(x))
	g, err := tensor.NewGraph([]*fgraph.Variable{x}, []*fgraph.Variable{y})
	if err != nil {
		panic(err)
	}
	if err := rewrite.Run(context.Background(), rewrite.In2Out("odd", rule), g, nil); err != nil {
		panic(err)
	}
	fmt.Println(g)
	// Output: [neg(tanh(x))]
}
