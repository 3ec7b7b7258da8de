package egraph

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestTrees compares the two ways to find the cheapest trees: for all classes, they have the same
// costs.
func TestTrees(t *testing.T) {
	g, rules := big(t)
	if _, err := g.Saturate(t.Context(), rules, Options{Limits: Limits{Nodes: 20000}, Backoff: Backoff{1000, 5}}); err != nil {
		t.Fatal(err)
	}
	g.Rebuild()
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 10 {
		x := &extractor{g: g, own: make([]float64, len(g.nodes))}
		for n := range x.own {
			if x.own[n] = float64(rnd.IntN(50)); rnd.IntN(20) == 0 {
				x.own[n] = math.Inf(1)
			}
		}
		a, ok := x.sweep()
		if !ok {
			t.Fatal("too many sweeps")
		}
		b := x.settle(x.live())
		p, q := x.treeCosts(t, a), x.treeCosts(t, b)
		for c := range p {
			if p[c] != q[c] {
				t.Fatalf("class %d costs %v or %v", c, p[c], q[c])
			}
		}
	}
}

// treeCosts returns what the trees of classes cost, or infinity.
func (x *extractor) treeCosts(t *testing.T, node []uint32) []float64 {
	g := x.g
	cost := make([]float64, len(node))
	for c := range cost {
		cost[c] = -1
	}
	for c := range cost {
		stack := []uint32{uint32(c)}
		for len(stack) > 0 {
			if len(stack) > len(node) {
				t.Fatal("a tree is endless")
			}
			top := stack[len(stack)-1]
			n := node[top]
			if n == none {
				cost[top] = math.Inf(1)
			}
			if cost[top] >= 0 {
				stack = stack[:len(stack)-1]
				continue
			}
			sum, ready := x.own[n], true
			for k := range g.arity(n) {
				if d := g.find(g.kid(n, k)); cost[d] < 0 {
					stack, ready = append(stack, d), false
				} else {
					sum += cost[d]
				}
			}
			if ready {
				cost[top] = sum
				stack = stack[:len(stack)-1]
			}
		}
	}
	return cost
}

// TestManySweeps extracts from a graph in which what makes a class cheaper is always found behind
// it, so that a sweep carries it on by one class only.
func TestManySweeps(t *testing.T) {
	s := newSums(t)
	rules := s.rules(t, "")
	g := New(s.lang)
	const depth = 200
	x := make([]Class, depth+1)
	for i := range x {
		x[i] = s.add(t, g, "x"+string(rune('a'+i%26))+string(rune('a'+i/26)))
	}
	neg, _ := s.lang.Symbol("neg")
	for i := depth; i > 0; i-- {
		g.Union(x[i], g.Add(g.Intern(neg, nil), x[i-1]))
	}
	if _, err := g.Saturate(t.Context(), rules, Options{}); err != nil {
		t.Fatal(err)
	}
	cost := func(g *Graph, n Node) float64 {
		switch {
		case g.Symbol(g.Op(n)) == neg:
			return 1
		case g.Class(n) == g.Find(x[0]):
			return 0
		}
		return 1000
	}
	c, err := g.Extract(t.Context(), cost, x[depth])
	if err != nil || c.Cost != depth {
		t.Errorf("%v instead of %d: %v", c.Cost, depth, err)
	}
	e := &extractor{g: g, own: make([]float64, len(g.nodes))}
	for n := range e.own {
		e.own[n] = cost(g, Node(n))
	}
	if _, ok := e.sweep(); ok {
		t.Error("a few sweeps are enough")
	}
}

// TestHugeTrees: a term whose tree costs more than the largest number has a choice.
func TestHugeTrees(t *testing.T) {
	l := NewLanguage()
	leaf, _ := l.Declare(Signature{Name: "leaf"})
	pair, _ := l.Declare(Signature{Name: "pair", Inputs: [2]int{2, 2}})
	for _, upward := range []bool{false, true} {
		g := New(l)
		top := g.Add(g.Intern(leaf, nil))
		for range 3000 {
			top = g.Add(g.Intern(pair, nil), top, top)
		}
		if upward { // a cheap alternative in the middle, known last
			g.Union(top, g.Add(g.Intern(pair, 1), g.Add(g.Intern(leaf, 2)), g.Add(g.Intern(leaf, 2))))
		}
		c, err := g.Extract(t.Context(), func(*Graph, Node) float64 { return 1e9 }, top)
		if err != nil {
			t.Fatal(err)
		}
		want := 3001e9
		if upward {
			want = 2e9
		}
		if c.Cost != want {
			t.Errorf("it costs %v, not %v", c.Cost, want)
		}
		x := &extractor{g: g, own: make([]float64, len(g.nodes)), roots: []uint32{uint32(g.Find(top))}}
		for n := range x.own {
			x.own[n] = 1e9
		}
		if node := x.settle(x.live()); !x.complete(node) {
			t.Error("no tree in the order of costs")
		}
	}
}
