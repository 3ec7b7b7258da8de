package egraph

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// A Cost says what a node costs by itself, without its inputs: at least 0, and infinity if it can't
// be had.
type Cost func(g *Graph, n Node) float64

// ErrCost means that a cost is negative or not a number, or that a class has no term of finite
// cost.
var ErrCost = errors.New("bad cost")

// A Choice chooses a node for each class that is needed to compute some roots.
type Choice struct {
	x     *extractor
	node  []uint32 // by class
	given []uint32 // by class: what was there before the first saturation; nil if there is nothing for a root
	// Cost is the sum over all nodes needed, each counted once.
	Cost float64
	// Optimal says that there is nothing cheaper, because the search was exhaustive.
	Optimal bool
}

// Node returns the node that is chosen for a class.
func (c *Choice) Node(k Class) Node { return Node(c.node[c.x.g.find(uint32(k))]) }

// Given returns the node that a class had before the first saturation: of several that of the
// cheapest tree. It returns false if it had none.
func (c *Choice) Given(k Class) (Node, bool) {
	if c.given == nil {
		return 0, false
	}
	n := c.given[c.x.g.find(uint32(k))]
	return Node(n), n != none
}

// Restored returns the choice with the given nodes for some classes. It returns false if one of
// them has none, or the roots depended on themselves then. The graph must not have changed since.
func (c *Choice) Restored(classes []Class) (*Choice, bool) {
	r := &Choice{x: c.x, node: slices.Clone(c.node), given: c.given}
	for _, k := range classes {
		n, ok := c.Given(k)
		if !ok {
			return nil, false
		}
		r.node[c.x.g.find(uint32(k))] = uint32(n)
	}
	// What a given node takes may not have been needed before.
	for {
		// A given node may need classes for which there is no choice yet. They get their given
		// nodes, which may need further ones; each round fills at least one class.
		total := c.x.total(r.node)
		if !math.IsInf(total, 1) {
			r.Cost = total
			return r, !c.x.cyclic(r.node)
		}
		if !c.x.fill(r.node, c.given) {
			return nil, false
		}
	}
}

// Extract chooses the cheapest terms for roots, counting nodes once that the terms share. It starts
// with the cheapest trees, and with what was in the graph before the first saturation, so it is
// never dearer than that. It improves the cheaper of the two: by one class at a time, and by an
// exhaustive search as far as its bound allows. The result is the same in every run.
func (g *Graph) Extract(ctx context.Context, cost Cost, roots ...Class) (*Choice, error) {
	defer g.brake(ctx)()
	// Costs and trees are found for canonical inputs; see sweep.
	g.Rebuild()
	c, err := g.start(cost, roots)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	// Choosing the cheapest terms with sharing is NP-hard. The cheapest trees are found exactly,
	// but count what is shared each time; from there on, the search is local. The exhaustive one
	// comes last: the cheaper the choice is that it has to beat, the more it may leave out.
	c.x.improve(c, improveWork)
	c.x.exhaust(c)
	return c, ctx.Err()
}

// Estimate returns what the roots cost at most, and takes a fraction of the time of Extract. It may
// be called where a saturation asks whether it is done, and returns infinity if that is cancelled.
func (g *Graph) Estimate(cost Cost, roots ...Class) (float64, error) {
	c, err := g.start(cost, roots)
	if g.stopped() {
		return math.Inf(1), nil
	}
	if err != nil {
		return 0, err
	}
	c.x.improve(c, estimateWork)
	return c.Cost, nil
}

// start chooses the cheapest trees, or what was given where that is cheaper.
func (g *Graph) start(cost Cost, roots []Class) (*Choice, error) {
	x := &extractor{g: g, own: make([]float64, len(g.nodes)), mark: make([]uint32, len(g.classes))}
	for n := range g.nodes {
		if n%pollEvery == 0 && g.stopped() {
			return nil, nil
		}
		if g.nodes[n].dead() {
			continue
		}
		c := cost(g, Node(n))
		// Written so that it catches NaNs, too. Both algorithms for trees rely on costs that are
		// not negative.
		if !(c >= 0) {
			return nil, fmt.Errorf("%w: %s costs %v", ErrCost, g.Name(g.Op(Node(n))), c)
		}
		x.own[n] = c
	}
	for _, r := range roots {
		x.roots = append(x.roots, g.find(uint32(r)))
	}
	node, ok := x.trees()
	if !ok {
		return nil, fmt.Errorf("%w: a root has no term of finite cost", ErrCost)
	}
	c := &Choice{x: x, node: node, Cost: x.total(node)}
	x.prefer(c)
	return c, nil
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
	c.given = given
	total := x.total(given)
	// Trees that share little may be dearer as a whole than what was there before, although each of
	// them is cheaper.
	if total >= c.Cost {
		return
	}
	for k, n := range given {
		// The marks are those of the call of total for what was given: just the classes that it
		// needs. For the others, the choice remains, so that improvements find a node there.
		if n != none && x.mark[k] == x.round {
			c.node[k] = n
		}
	}
	// Each of the two choices is without circles, but a mixture may have some where given terms
	// need a class for which something else was chosen.
	if !x.cyclic(c.node) {
		c.Cost = x.total(c.node)
	} else {
		c.node, c.Cost = slices.Clone(given), total
	}
}

// total returns what the roots cost with a choice, and marks the classes needed.
func (x *extractor) total(node []uint32) float64 {
	g := x.g
	// A new round makes all marks stale at once, which is cheaper than clearing them.
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

// fill chooses given nodes for classes that are needed and have no node. It returns false if it
// can't, or there are none.
func (x *extractor) fill(node, given []uint32) bool {
	filled := false
	for _, c := range x.stack {
		if node[c] == none {
			if node[c] = given[c]; node[c] == none {
				return false
			}
			filled = true
		}
	}
	return filled
}

// cyclic reports whether the roots depend on themselves with a choice.
func (x *extractor) cyclic(node []uint32) bool {
	g := x.g
	if x.users == nil {
		x.users = make([]uint32, len(g.classes))
	}
	// Topological sorting (Kahn, 1962): classes that no other needed one uses are taken away, until
	// none is left or those that are left use each other. The counters are 0 between calls: without
	// a circle each increment is taken back, and otherwise they are cleared.
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
