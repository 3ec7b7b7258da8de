package egraph_test

import (
	"context"
	"testing"

	"github.com/nnopt/nnopt/passes/saturate/internal/egraph"
	"github.com/nnopt/nnopt/pattern"
)

// A maker sees what the pattern binds, and what it makes is explained like any replacement.
func TestMaker(t *testing.T) {
	l := egraph.NewLanguage()
	leaf, _ := l.Declare(egraph.Signature{Name: "leaf"})
	sum, _ := l.Declare(egraph.Signature{Name: "sum", Inputs: [2]int{1, -1}, Commutes: true})
	scale, _ := l.Declare(egraph.Signature{Name: "scale", Inputs: [2]int{1, 1}})
	calls := 0
	l.SetMaker("collect", func(g *egraph.Graph, m *egraph.Match) (egraph.Node, bool) {
		calls++
		k := g.Param(m.Op(m.Slot("k"))).(int)
		var rest []egraph.Node
		for _, c := range m.Classes(m.Rest("rest"), nil) {
			rest = append(rest, g.First(c))
		}
		if m.Slot("nothing") >= 0 || g.Arity(m.Root()) != 2+len(rest) {
			t.Error("wrong match")
		}
		twice := g.AddNode(g.Intern(scale, 2*k), g.First(m.Class(m.Slot("x"))))
		return g.AddNode(g.Intern(sum, nil), append(rest, twice)...), true
	})
	list, err := pattern.ParseRules("test", "collect:\n    (sum (scale{k} x) (scale{k} x) ...rest) => (collect)\n")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := egraph.Compile(l, list)
	if err != nil {
		t.Fatal(err)
	}
	g := egraph.New(l, egraph.WithExplanations())
	x, y := g.Add(g.Intern(leaf, "x")), g.Add(g.Intern(leaf, "y"))
	three := g.Add(g.Intern(scale, 3), x)
	root := g.Add(g.Intern(sum, nil), three, y, three)
	if _, err := g.Saturate(context.Background(), rules, egraph.Options{Limits: egraph.Limits{Laps: 10}}); err != nil {
		t.Fatal(err)
	}
	want, ok := g.Lookup(g.Intern(sum, nil), y, g.Add(g.Intern(scale, 6), x))
	if !ok || g.Find(root) != g.Find(want) || calls != 1 {
		t.Fatalf("not found, or found %d times", calls)
	}
	choice, err := g.Extract(context.Background(), func(g *egraph.Graph, n egraph.Node) float64 { return float64(g.Arity(n)) }, root)
	if err != nil {
		t.Fatal(err)
	}
	e, err := g.ExplainChoice(rules, root, choice)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range e.Steps {
		if s.Rule == "collect" {
			return
		}
	}
	t.Errorf("the explanation has no step of the rule:\n%v", e)
}

// An explanation shows what a maker built, and not something else of the same class.
func TestMakerBuilt(t *testing.T) {
	l := egraph.NewLanguage()
	leaf, _ := l.Declare(egraph.Signature{Name: "leaf"})
	mul, _ := l.Declare(egraph.Signature{Name: "mul", Inputs: [2]int{2, 2}, Commutes: true})
	dot, _ := l.Declare(egraph.Signature{Name: "dot", Inputs: [2]int{2, 2}})
	sum, _ := l.Declare(egraph.Signature{Name: "sum", Inputs: [2]int{1, 1}})
	var built *egraph.Built
	l.SetTypes(egraph.Types{Built: func(*egraph.Graph) *egraph.Built { return built }})
	l.SetMaker("product", func(g *egraph.Graph, m *egraph.Match) (egraph.Node, bool) {
		x, y := g.First(m.Class(m.Slot("x"))), g.First(m.Class(m.Slot("y")))
		both := g.AddNode(g.Intern(mul, nil), x, y)
		all := g.AddNode(g.Intern(sum, nil), both)
		built = &egraph.Built{Node: all, Inputs: []*egraph.Built{{Node: both, Inputs: []*egraph.Built{{Node: x, Name: "x"}, {Node: y, Name: "y"}}}}}
		return all, true
	})
	list, err := pattern.ParseRules("test", "product:\n    (dot x y) => (product)\n")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := egraph.Compile(l, list)
	if err != nil {
		t.Fatal(err)
	}
	g := egraph.New(l, egraph.WithExplanations())
	v, one := g.Add(g.Intern(leaf, "v")), g.Add(g.Intern(leaf, "one"))
	root, end := g.Add(g.Intern(dot, nil), v, one), g.Add(g.Intern(sum, nil), v)
	g.Union(g.Add(g.Intern(mul, nil), v, one), v)
	g.Rebuild()
	if _, err := g.Saturate(context.Background(), rules, egraph.Options{Limits: egraph.Limits{Laps: 1}}); err != nil {
		t.Fatal(err)
	}
	e, err := g.Explain(rules, root, end)
	if err != nil {
		t.Fatal(err)
	}
	want := "(dot v one)\n  => product\n(sum (mul v one))\n  => given at [0]\n(sum v)\n"
	if e.String() != want {
		t.Errorf("it is\n%vand not\n%v", e, want)
	}
}
