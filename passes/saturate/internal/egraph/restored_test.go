package egraph_test

import (
	"errors"
	"testing"

	"github.com/nnopt/nnopt/passes/saturate/internal/egraph"
	"github.com/nnopt/nnopt/pattern"
)

// TestRestored: a choice can have what was given for some classes, unless that is in itself.
func TestRestored(t *testing.T) {
	l := egraph.NewLanguage()
	declare := func(name string, inputs int) egraph.Op {
		s, err := l.Declare(egraph.Signature{Name: name, Inputs: [2]int{inputs, inputs}})
		if err != nil {
			t.Fatal(err)
		}
		return l.Intern(s, nil)
	}
	x, f, g, k, pair := declare("x", 0), declare("f", 1), declare("g", 1), declare("k", 1), declare("pair", 2)
	list, err := pattern.ParseRules("test", "cheap:\n    (f x) => (g x)\ninside:\n    (k (k x)) => x\n")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := egraph.Compile(l, list)
	if err != nil {
		t.Fatal(err)
	}
	graph := egraph.New(l)
	leaf := graph.Add(x)
	inner := graph.Add(f, leaf)
	outer := graph.Add(f, inner)
	twice := graph.Add(k, graph.Add(k, outer))
	root := graph.Add(pair, outer, twice)
	if _, err := graph.Saturate(t.Context(), rules, egraph.Options{}); err != nil {
		t.Fatal(err)
	}
	costs := map[egraph.Op]float64{x: 1, f: 10, g: 2, k: 1, pair: 1}
	cost := func(g *egraph.Graph, n egraph.Node) float64 { return costs[g.Op(n)] }
	choice, err := graph.Extract(t.Context(), cost, root)
	if err != nil || choice.Cost != 6 {
		t.Fatal(choice.Cost, err)
	}
	if most, err := graph.Estimate(cost, root); err != nil || most < choice.Cost || most > 22 {
		t.Errorf("at most %v, %v", most, err)
	}
	if _, err := graph.Estimate(func(*egraph.Graph, egraph.Node) float64 { return -1 }, root); !errors.Is(err, egraph.ErrCost) {
		t.Error(err)
	}
	for _, c := range []struct {
		classes []egraph.Class
		want    float64
	}{{nil, 6}, {[]egraph.Class{inner}, 14}, {[]egraph.Class{outer}, 14}, {[]egraph.Class{outer, inner}, 22}, {[]egraph.Class{twice, leaf}, 14}} {
		got, ok := choice.Restored(c.classes)
		if !ok || got.Cost != c.want {
			t.Errorf("%v: %v, %t, not %v", c.classes, got, ok, c.want)
		}
	}
	if choice.Cost != 6 {
		t.Error("the choice has changed")
	}
	if n, ok := choice.Given(inner); !ok || graph.Op(n) != f {
		t.Error(n, ok)
	}
	made := graph.Add(g, root)
	choice, err = graph.Extract(t.Context(), cost, made)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := choice.Given(made); ok {
		t.Error("it was not given")
	}
	if _, ok := choice.Restored([]egraph.Class{made}); ok {
		t.Error("it can't be restored")
	}
}
