package egraph_test

import (
	"context"
	"fmt"

	"github.com/nnopt/nnopt/passes/saturate/internal/egraph"
	"github.com/nnopt/nnopt/pattern"
)

// Products are commutative by declaration, and take any number of factors. The rules drop two factors
// that cancel, and a product of a single one.
func Example() {
	l := egraph.NewLanguage()
	variable, _ := l.Declare(egraph.Signature{Name: "var"})
	mul, _ := l.Declare(egraph.Signature{Name: "mul", Inputs: [2]int{0, -1}, Commutes: true})
	inv, _ := l.Declare(egraph.Signature{Name: "inv", Inputs: [2]int{1, 1}})
	list, _ := pattern.ParseRules("example", `
# A factor cancels its inverse.
cancel:
    (mul x (inv x) ...ys) => (mul ...ys)
single:
    (mul x) => x
`)
	rules, err := egraph.Compile(l, list)
	if err != nil {
		fmt.Println(err)
		return
	}

	g := egraph.New(l, egraph.WithExplanations())
	a, b := g.Add(g.Intern(variable, "a")), g.Add(g.Intern(variable, "b"))
	root := g.Add(g.Intern(mul, nil), a, b, g.Add(g.Intern(inv, nil), a))
	report, _ := g.Saturate(context.Background(), rules, egraph.Options{})
	choice, _ := g.Extract(context.Background(), func(*egraph.Graph, egraph.Node) float64 { return 1 }, root)
	why, _ := g.ExplainChoice(rules, root, choice)
	fmt.Println(report.Reason)
	fmt.Print(why)
	// Output:
	// saturated
	// (mul a b (inv a))
	//   => cancel
	// (mul b)
	//   => single
	// b
}
