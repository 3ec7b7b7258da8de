package rewrite_test

import (
	"context"
	"fmt"
	"os"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

type Op string

func (o Op) String() string { return string(o) }

type Float struct{}

func (Float) String() string             { return "float64" }
func (Float) Accepts(t fgraph.Type) bool { return t == Float{} }

func apply(op Op, inputs ...*fgraph.Variable) *fgraph.Variable {
	return fgraph.NewApply(op, inputs, Float{}).Out()
}

// The rule of Theano's tutorial: (x*y)/y → x and (x*y)/x → y.
var simplify = rewrite.Rule{
	Name:  "simplify",
	Doc:   "a product divided by one of its factors is the other one",
	On:    []rewrite.Track{rewrite.TrackOp(Op("true_div"))},
	Depth: 2,
	Fn: func(c *rewrite.Context, n *fgraph.Apply) (rewrite.Result, error) {
		product, y := n.Inputs()[0].Owner(), n.Inputs()[1]
		if product == nil || product.Op() != Op("mul") {
			return c.Miss("the dividend is no product"), nil
		}
		for i, factor := range product.Inputs() {
			if factor == y {
				return rewrite.Replace(product.Inputs()[1-i]), nil
			}
		}
		return c.Miss("%v is no factor", y), nil
	},
}

func Example() {
	x, y, z := fgraph.NewInput(Float{}, "x"), fgraph.NewInput(Float{}, "y"), fgraph.NewInput(Float{}, "z")
	quotient := apply("true_div", apply("mul", apply("add", y, z), x), apply("add", y, z))
	g, err := fgraph.New([]*fgraph.Variable{x, y, z}, []*fgraph.Variable{quotient})
	if err != nil {
		fmt.Println(err)
		return
	}

	// The two sums are different applies until they are merged.
	optimizer := rewrite.NewSequence("example",
		rewrite.In2Out("too_early", simplify), &rewrite.Merge{}, rewrite.In2Out("now", simplify))
	ctx := rewrite.WithOptions(context.Background(), rewrite.Options{
		Trace:  rewrite.TraceTo(os.Stdout),
		WhyNot: func(m rewrite.Miss) { fmt.Printf("%s: %s: %s\n", m.Pass, m.Rule, m.Text) },
	})
	if err := optimizer.Rewrite(ctx, g, nil); err != nil {
		fmt.Println(err)
	}
	fmt.Println(g)
	// Output:
	// too_early: simplify: add(y, z) is no factor
	// rewriting: MergeOptimizer/merge: add(y, z) -> add(y, z)
	// rewriting: now/simplify: true_div(mul(*1 -> add(y, z), x), *1) -> x
	// [x]
}

func ExampleEquilibrium() {
	rename := func(name string, from, to Op) rewrite.Rule {
		return rewrite.Rule{Name: name, On: []rewrite.Track{rewrite.TrackOp(from)}, Depth: 1,
			Fn: func(_ *rewrite.Context, n *fgraph.Apply) (rewrite.Result, error) {
				return rewrite.Replace(apply(to, n.Inputs()...)), nil
			}}
	}
	x := fgraph.NewInput(Float{}, "x")
	g, _ := fgraph.New([]*fgraph.Variable{x}, []*fgraph.Variable{apply("neg", x)})
	fight := &rewrite.Equilibrium{Name: "fight", Rules: []rewrite.NodeRewriter{
		rename("neg_to_minus", "neg", "minus"), rename("minus_to_neg", "minus", "neg"),
	}}
	fmt.Println(rewrite.Run(context.Background(), fight, g, nil))
	// Output:
	// fight: rules do not terminate: neg_to_minus fired 9 times, more than MaxUse 8 allows for 1 applies; these 2 undo each other:
	// 	minus_to_neg: minus(x) -> neg(x)
	// 	neg_to_minus: neg(x) -> minus(x)
}
