package egraph

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// A Cost says what a node costs by itself, without its inputs: at least 0, and infinity if it can't be
// had.
type Cost func(g *Graph, n Node) float64

// ErrCost means that a cost is negative or not a number, or that a class has no term of finite cost.
var ErrCost = errors.New("bad cost")

// A Choice chooses a node for each class that is needed to compute some roots.
type Choice struct {
	g    *Graph
	node []uint32 // by class
	// Cost is the sum over all nodes needed, each counted once.
	Cost float64
	// Optimal says that there is nothing cheaper, because the search was exhaustive.
	Optimal bool
}

// Node returns the node that is chosen for a class.
func (c *Choice) Node(k Class) Node { return Node(c.node[c.g.find(uint32(k))]) }

// Extract chooses the cheapest terms for roots, counting nodes once that the terms share. It starts with the
// cheapest trees, and with what was in the graph before the first saturation, so it is never dearer than
// that. It improves the cheaper of the two: by one class at a time, and by an exhaustive search as far as
// its bound allows. The result is the same in every run.
func (g *Graph) Extract(ctx context.Context, cost Cost, roots ...Class) (*Choice, error) {
	g.stop.Store(false)
	defer context.AfterFunc(ctx, func() { g.stop.Store(true) })()
	g.Rebuild()
	x := &extractor{g: g, own: make([]float64, len(g.nodes)), mark: make([]uint32, len(g.classes))}
	for n := range g.nodes {
		if n%pollEvery == 0 && g.stopped() {
			return nil, ctx.Err()
		}
		if g.nodes[n].dead() {
			continue
		}
		c := cost(g, Node(n))
		if !(c >= 0) {
			return nil, fmt.Errorf("%w: %s costs %v", ErrCost, g.Name(g.Op(Node(n))), c)
		}
		x.own[n] = c
	}
	for _, r := range roots {
		x.roots = append(x.roots, g.find(uint32(r)))
	}
	node, ok := x.trees()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: a root has no term of finite cost", ErrCost)
	}
	c := &Choice{g: g, node: node, Cost: x.total(node)}
	x.prefer(c)
	x.improve(c)
	x.exhaust(c)
	return c, ctx.Err()
}

type extractor struct {
	g     *Graph
	own   []float64 // by node
	roots []uint32
	mark  []uint32 // by class: the last round that reached it
	users []uint32 // by class, for cyclic: 0
	round uint32
	stack []uint32
	free  []uint32 // scratch
}

// prefer takes what was given where that is cheaper. Outside of its terms, the choice remains.
func (x *extractor) prefer(c *Choice) {
	given, ok := x.given()
	if !ok {
		return
	}
	total := x.total(given)
	if total >= c.Cost {
		return
	}
	for k, n := range given {
		if n != none && x.mark[k] == x.round {
			c.node[k] = n
		}
	}
	if !x.cyclic(c.node) {
		c.Cost = x.total(c.node)
	} else {
		c.node, c.Cost = given, total
	}
}

// total returns what the roots cost with a choice, and marks the classes needed.
func (x *extractor) total(node []uint32) float64 {
	g := x.g
	x.round++
	x.stack = x.stack[:0]
	total := 0.0
	reach := func(c uint32) {
		if x.mark[c] != x.round {
			x.mark[c] = x.round
			x.stack = append(x.stack, c)
		}
	}
	for _, r := range x.roots {
		reach(r)
	}
	for i := 0; i < len(x.stack); i++ {
		n := node[x.stack[i]]
		if n == none {
			return math.Inf(1)
		}
		total += x.own[n]
		for k := range g.arity(n) {
			reach(g.find(g.kid(n, k)))
		}
	}
	return total
}

// cyclic reports whether the roots depend on themselves with a choice.
func (x *extractor) cyclic(node []uint32) bool {
	g := x.g
	if x.users == nil {
		x.users = make([]uint32, len(g.classes))
	}
	need := x.needed(node)
	for _, c := range need {
		for k := range g.arity(node[c]) {
			x.users[g.find(g.kid(node[c], k))]++
		}
	}
	free := x.free[:0]
	for _, c := range need {
		if x.users[c] == 0 {
			free = append(free, c)
		}
	}
	for i := 0; i < len(free); i++ {
		n := node[free[i]]
		for k := range g.arity(n) {
			c := g.find(g.kid(n, k))
			if x.users[c]--; x.users[c] == 0 {
				free = append(free, c)
			}
		}
	}
	x.free = free
	if len(free) == len(need) {
		return false
	}
	for _, c := range need {
		x.users[c] = 0
	}
	return true
}

// needed returns the classes that the roots need with a choice. It is valid until the next call.
func (x *extractor) needed(node []uint32) []uint32 {
	x.total(node)
	return x.stack
}
