package egraph

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/pattern"
)

// TestChains compares the cheapest order of random products of matrices with what dynamic
// programming finds. Shapes are facts of classes, and the cost of a product follows from them.
func TestChains(t *testing.T) {
	l := NewLanguage()
	matrix, err := l.Declare(Signature{Name: "matrix"})
	if err != nil {
		t.Fatal(err)
	}
	dot, err := l.Declare(Signature{Name: "dot", Inputs: [2]int{2, 2}})
	if err != nil {
		t.Fatal(err)
	}
	list, err := pattern.ParseRules("chains", "associate:\n    (dot a (dot b c)) => (dot (dot a b) c)\n    (dot (dot a b) c) => (dot a (dot b c))\n")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := Compile(l, list)
	if err != nil {
		t.Fatal(err)
	}
	type leaf struct{ id, rows, cols int }
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		n := 3 + rnd.IntN(6)
		sizes := make([]int, n+1)
		for i := range sizes {
			sizes[i] = 1 + rnd.IntN(30)
		}
		facts := &Facts[[2]int]{Merge: func(a, _ [2]int) ([2]int, bool, bool) { return a, false, false }}
		facts.Of = func(g *Graph, n Node) [2]int {
			if m, ok := g.Param(g.Op(n)).(leaf); ok {
				return [2]int{m.rows, m.cols}
			}
			return [2]int{facts.Get(g, g.Input(n, 0))[0], facts.Get(g, g.Input(n, 1))[1]}
		}
		g := New(l, WithAnalysis(facts), WithExplanations())
		op := g.Intern(dot, nil)
		root := g.Add(g.Intern(matrix, leaf{0, sizes[0], sizes[1]}))
		for i := 1; i < n; i++ {
			root = g.Add(op, root, g.Add(g.Intern(matrix, leaf{i, sizes[i], sizes[i+1]})))
		}
		report, err := g.Saturate(t.Context(), rules, Options{})
		if err != nil || report.Reason != Saturated {
			t.Fatal(err, report)
		}
		choice, err := g.Extract(t.Context(), func(g *Graph, n Node) float64 {
			if g.Arity(n) == 0 {
				return 0
			}
			a, b := facts.Get(g, g.Input(n, 0)), facts.Get(g, g.Input(n, 1))
			return float64(a[0] * a[1] * b[1])
		}, root)
		if err != nil {
			t.Fatal(err)
		}
		if want := cheapestChain(sizes); choice.Cost != want {
			t.Errorf("%v: %v operations, not %v", sizes, choice.Cost, want)
		}
		e, err := g.ExplainChoice(rules, root, choice)
		if err != nil {
			t.Fatal(err)
		}
		(&replayer{r: rules}).check(t, e)
	}
}

// cheapestChain returns the operations of the cheapest order of a chain of products, where matrix i
// is sizes[i] by sizes[i+1].
func cheapestChain(sizes []int) float64 {
	n := len(sizes) - 1
	least := make([][]float64, n)
	for i := n - 1; i >= 0; i-- {
		least[i] = make([]float64, n)
		for j := i + 1; j < n; j++ {
			least[i][j] = math.Inf(1)
			for k := i; k < j; k++ {
				least[i][j] = min(least[i][j], least[i][k]+least[k+1][j]+float64(sizes[i]*sizes[k+1]*sizes[j+1]))
			}
		}
	}
	return least[0][n-1]
}
