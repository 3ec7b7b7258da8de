package fgraph_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/nnopt/nnopt/fgraph"
)

// Op is the simplest possible op: a name.
type Op string

func (o Op) String() string { return string(o) }

// Float is the type of all values.
type Float struct{}

func (Float) String() string             { return "float64" }
func (Float) Accepts(t fgraph.Type) bool { return t == Float{} }

func apply(op Op, inputs ...*fgraph.Variable) *fgraph.Variable {
	return fgraph.NewApply(op, inputs, Float{}).Out()
}

func Example() {
	x, y, z := fgraph.NewInput(Float{}, "x"), fgraph.NewInput(Float{}, "y"), fgraph.NewInput(Float{}, "z")
	sum := apply("add", y, z)
	quotient := apply("true_div", apply("mul", sum, x), sum)
	g, err := fgraph.New([]*fgraph.Variable{x, y, z}, []*fgraph.Variable{quotient})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g)

	why := fgraph.Reason{Pass: "example", Rule: "cancel"}
	if err := g.Replace(sum, quotient, why); errors.Is(err, fgraph.ErrCycle) {
		fmt.Println("a cycle is refused")
	}
	if err := g.Replace(quotient, x, why); err != nil {
		fmt.Println(err)
	}
	fmt.Println(g, g.NumApplies())
	// Output:
	// [true_div(mul(*1 -> add(y, z), x), *1)]
	// a cycle is refused
	// [x] 0
}

func ExampleFunctionGraph_WriteTree() {
	x, y, z := fgraph.NewInput(Float{}, "x"), fgraph.NewInput(Float{}, "y"), fgraph.NewInput(Float{}, "z")
	sum := apply("add", y, z)
	g, _ := fgraph.New([]*fgraph.Variable{x, y, z}, []*fgraph.Variable{apply("true_div", apply("mul", sum, x), sum)})
	g.WriteTree(os.Stdout)
	// Output:
	// true_div [A] <float64>
	//  ├─ mul [B] <float64>
	//  │  ├─ add [C] <float64>
	//  │  │  ├─ y <float64>
	//  │  │  └─ z <float64>
	//  │  └─ x <float64>
	//  └─ add [C] <float64>
	//     ┆
}

func ExampleFunctionGraph_DOT() {
	x := fgraph.NewInput(Float{}, "x")
	g, _ := fgraph.New([]*fgraph.Variable{x}, []*fgraph.Variable{apply("mul", x, x)})
	fmt.Println(g.DOT("square"))
	// Output:
	// strict digraph "square" {
	//   // Node definitions.
	//   a0 [
	//     label="mul"
	//     shape=box
	//   ];
	//   v0 [
	//     label="x"
	//     shape=ellipse
	//   ];
	//   out0 [
	//     label="output 0"
	//     shape=plaintext
	//   ];
	//
	//   // Edge definitions.
	//   a0 -> out0;
	//   v0 -> a0 [label="0, 1"];
	// }
}

// checker objects to graphs of more than two applies.
type checker struct{}

func (checker) OnAttach(*fgraph.FunctionGraph) error { return nil }
func (checker) Validate(g *fgraph.FunctionGraph) error {
	if n := g.NumApplies(); n > 2 {
		return fmt.Errorf("%w: %d applies", fgraph.ErrInconsistent, n)
	}
	return nil
}

func ExampleFunctionGraph_ReplaceValidate() {
	x := fgraph.NewInput(Float{}, "x")
	y := apply("exp", x)
	g, _ := fgraph.New([]*fgraph.Variable{x}, []*fgraph.Variable{y}, checker{})
	err := g.ReplaceValidate(y, apply("inv", apply("exp", apply("neg", x))), fgraph.Reason{Rule: "roundabout"})
	fmt.Println(err)
	fmt.Println(g)
	// Output:
	// roundabout: inconsistent graph: 3 applies
	// [exp(x)]
}

// A history goes back to the graph as it was after any replacement.
func ExampleFullHistory() {
	x, y := fgraph.NewInput(Float{}, "x"), fgraph.NewInput(Float{}, "y")
	negated := apply("neg", apply("neg", x))
	product := apply("mul", negated, y)
	h := fgraph.NewFullHistory()
	g, err := fgraph.New([]*fgraph.Variable{x, y}, []*fgraph.Variable{product}, h)
	if err != nil {
		fmt.Println(err)
		return
	}
	g.Replace(negated, x, fgraph.Reason{Pass: "canonicalize", Rule: "neg_neg"})
	g.Replace(product, apply("mul", y, x), fgraph.Reason{Pass: "canonicalize", Rule: "order"})
	for k := h.Len(); k >= 0; k-- {
		if err := h.Goto(k); err != nil {
			fmt.Println(err)
		}
		fmt.Println(k, g)
	}
	fmt.Println(h.Reason(0))
	// Output:
	// 2 [mul(y, x)]
	// 1 [mul(x, y)]
	// 0 [mul(neg(neg(x)), y)]
	// canonicalize/neg_neg
}
