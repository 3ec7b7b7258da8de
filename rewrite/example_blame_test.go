package rewrite_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

func graphOf(inputs []*fgraph.Variable, outputs ...*fgraph.Variable) *fgraph.FunctionGraph {
	g, err := fgraph.New(inputs, outputs)
	if err != nil {
		panic(err)
	}
	return g
}

// Asking a rule about an apply leaves the graph unchanged.
func ExampleWhyNot() {
	x, y, z := fgraph.NewInput(Float{}, "x"), fgraph.NewInput(Float{}, "y"), fgraph.NewInput(Float{}, "z")
	quotients := []*fgraph.Variable{
		apply("true_div", apply("add", x, y), y),
		apply("true_div", apply("mul", x, y), z),
		apply("true_div", apply("mul", x, y), y),
	}
	g := graphOf([]*fgraph.Variable{x, y, z}, quotients...)
	for _, v := range quotients {
		fmt.Println(rewrite.WhyNot(context.Background(), simplify, g, v.Owner()))
	}
	// Output:
	// the dividend is no product
	// z is no factor
	// it fires: true_div(mul(x, y), y) -> x
}

// One of three rewrites is wrong. Bisect repeats the run with fewer and fewer rewrites until
// it has found the culprit.
func ExampleBisect() {
	rename := func(from, to Op) rewrite.Rule {
		return rewrite.Rule{Name: string(from + "_to_" + to), On: []rewrite.Track{rewrite.TrackOp(from)}, Depth: 1,
			Fn: func(_ *rewrite.Context, n *fgraph.Apply) (rewrite.Result, error) {
				return rewrite.Replace(apply(to, n.Inputs()...)), nil
			}}
	}
	walk := rewrite.In2Out("rename", rename("minus", "neg"), rename("sqr", "sqrt"), rename("reciprocal", "inv"))
	culprit, found := rewrite.Bisect(context.Background(), func(ctx context.Context) (right bool) {
		x := fgraph.NewInput(Float{}, "x")
		g := graphOf([]*fgraph.Variable{x}, apply("reciprocal", apply("sqr", apply("minus", x))))
		if err := rewrite.Run(ctx, walk, g, nil); err != nil {
			return false
		}
		return !strings.Contains(g.String(), "sqrt") // a real test compares values
	})
	fmt.Println(found, culprit)
	// Output:
	// true rename/sqr_to_sqrt: sqr(neg(x)) -> sqrt(neg(x))
}

// A failing rule need not end the run: the policy decides.
func ExampleOptions() {
	faulty := rewrite.Rule{Name: "faulty", Fn: func(*rewrite.Context, *fgraph.Apply) (rewrite.Result, error) { panic("out of ideas") }}
	x, y := fgraph.NewInput(Float{}, "x"), fgraph.NewInput(Float{}, "y")
	g := graphOf([]*fgraph.Variable{x, y}, apply("true_div", apply("mul", x, y), y))
	ctx := rewrite.WithOptions(context.Background(), rewrite.Options{
		OnFailure: rewrite.Ignore,
		Reproduce: func(f rewrite.Failure) { fmt.Printf("%v\n\tbefore: %v\n", f.Err, f.Graph) },
	})
	err := rewrite.Run(ctx, rewrite.In2Out("walk", faulty, simplify), g, nil)
	fmt.Println(g, err)
	// Output:
	// walk: rule faulty: at mul(x, y): panic: out of ideas, at rewrite/example_blame_test.go:63
	// 	before: [true_div(mul(x, y), y)]
	// walk: rule faulty: at true_div(mul(x, y), y): panic: out of ideas, at rewrite/example_blame_test.go:63
	// 	before: [true_div(mul(x, y), y)]
	// [x] <nil>
}
