package pattern_test

import (
	"context"
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// The vocabulary of the example, toys, has the ops mul and true_div.
func ExampleSub() {
	rule, err := pattern.Sub(toys{}, "(true_div (mul x y) y)", "x", pattern.Named("cancel_factor"))
	if err != nil {
		fmt.Println(err)
		return
	}
	x, y := fgraph.NewInput(float, "x"), fgraph.NewInput(float, "y")
	product := fgraph.NewApply(toy("mul"), []*fgraph.Variable{y, x}, float).Out()
	quotient := fgraph.NewApply(toy("true_div"), []*fgraph.Variable{product, y}, float).Out()
	g, err := fgraph.New([]*fgraph.Variable{x, y}, []*fgraph.Variable{quotient})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g)
	err = rewrite.Run(context.Background(), rewrite.In2Out("simplify", rule), g, nil)
	fmt.Println(g, err)
	// Output:
	// [true_div(mul(y, x), y)]
	// [x] <nil>
}

func ExampleSub_faults() {
	_, err := pattern.Sub(toys{}, "(true_div (mull x y) y)", "z")
	fmt.Println(err)
	// Output:
	// 2 faults:
	// 	pattern "(true_div (mull x y) y) => z": column 11: unknown op: mull
	// 	pattern "(true_div (mull x y) y) => z": unbound name: z in the replacement
}

// The guard isInput is a Go function.
func ExampleWithGuard() {
	isName := func(a pattern.Args) bool { return a.Vars[0].Owner() == nil }
	rule, err := pattern.Compile(toys{}, "(exp (add x ...rest)) && isInput(x) => (mul (exp x) (exp (add ...rest)))", pattern.WithGuard("isInput", isName), pattern.Named("split_exp"))
	if err != nil {
		fmt.Println(err)
		return
	}
	x, y := fgraph.NewInput(float, "x"), fgraph.NewInput(float, "y")
	make := func(op toy, in ...*fgraph.Variable) *fgraph.Variable { return fgraph.NewApply(op, in, float).Out() }
	g, err := fgraph.New([]*fgraph.Variable{x, y}, []*fgraph.Variable{make("exp", make("add", make("mul", x, x), y))})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = rewrite.Run(context.Background(), rewrite.In2Out("walk", rule), g, nil)
	fmt.Println(g, err)
	// Output:
	// [mul(exp(y), exp(add(mul(x, x))))] <nil>
}

// A Matcher finds a pattern and returns the variables bound to its names.
func ExampleNewMatcher() {
	m, err := pattern.NewMatcher(toys{}, "(true_div (mul x y) z)")
	if err != nil {
		fmt.Println(err)
		return
	}
	x, y := fgraph.NewInput(float, "x"), fgraph.NewInput(float, "y")
	product := fgraph.NewApply(toy("mul"), []*fgraph.Variable{y, x}, float).Out()
	quotient := fgraph.NewApply(toy("true_div"), []*fgraph.Variable{product, y}, float)
	b, ok := m.Match(quotient)
	fmt.Println(ok, b.Variable("x"), b.Variable("y"), b.Variable("z"))
	// Output:
	// true y x y
}
