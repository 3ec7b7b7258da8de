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
	best, ok := x.trees(nil)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: a root has no term of finite cost", ErrCost)
	}
	c := &Choice{g: g, node: best, Cost: x.total(best)}
	if given, ok := x.trees(x.given()); ok {
		if total := x.total(given); total < c.Cost {
			for k, n := range given { // outside of the terms, the cheapest trees remain
				if n != none && x.mark[k] == x.round {
					best[k] = n
				}
			}
			if !x.cyclic(best) {
				c.Cost = x.total(best)
			} else {
				c.node, c.Cost = given, total
			}
		}
	}
	x.improve(c)
	x.exhaust(c)
	return c, ctx.Err()
}

type extractor struct {
	g     *Graph
	own   []float64 // by node
	roots []uint32
	mark  []uint32 // by class: the last round that reached it
	round uint32
	stack []uint32
}

// given returns which nodes are those of the input, as they are now.
func (x *extractor) given() []bool {
	g := x.g
	list := make([]bool, len(g.nodes))
	for n := range g.inputs {
		i := uint32(n)
		if g.nodes[n].dead() {
			kids := g.Inputs(Node(n), nil)
			bare := make([]uint32, len(kids))
			for k, c := range kids {
				bare[k] = uint32(c)
			}
			op := g.nodes[n].op()
			if g.lang.sigs[g.ops[op].sym].Commutes {
				sortIDs(bare)
			}
			if i = g.lookup(op, bare); i == none {
				continue
			}
		}
		list[i] = true
	}
	return list
}

// trees chooses the cheapest tree for each class, among the nodes allowed if there is a list. It settles
// classes in the order of cost, as Dijkstra's algorithm does (Knuth, "A generalization of Dijkstra's
// algorithm", 1977). It reports whether all roots have one.
func (x *extractor) trees(allowed []bool) ([]uint32, bool) {
	g := x.g
	sum := make([]float64, len(g.nodes))
	left := make([]uint32, len(g.nodes))
	best := make([]float64, len(g.classes))
	node := make([]uint32, len(g.classes))
	var h heap
	for c := range node {
		node[c], best[c] = none, math.Inf(1)
	}
	offer := func(n uint32) {
		c := g.find(g.nodes[n].class)
		if total := x.own[n] + sum[n]; total < best[c] {
			best[c], node[c] = total, n
			h.push(item{total, c})
		}
	}
	for n := range g.nodes {
		if d := &g.nodes[n]; !d.dead() && (allowed == nil || allowed[n]) {
			if left[n] = uint32(g.arity(uint32(n))); left[n] == 0 {
				offer(uint32(n))
			}
		}
	}
	settled := make([]bool, len(g.classes))
	for len(h) > 0 && !g.stop.Load() {
		c := h.pop().class
		if settled[c] {
			continue
		}
		settled[c] = true
		for slot := g.classes[c].parents; slot != none; slot = g.slotNext(slot) {
			n := g.slotNode(slot)
			if left[n] == 0 {
				continue
			}
			sum[n] += best[c]
			if left[n]--; left[n] == 0 && !g.nodes[n].dead() {
				offer(n)
			}
		}
	}
	for _, r := range x.roots {
		if node[r] == none {
			return node, false
		}
	}
	return node, true
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
	need := append([]uint32(nil), x.needed(node)...)
	users := make(map[uint32]int, len(need))
	for _, c := range need {
		for k := range g.arity(node[c]) {
			users[g.find(g.kid(node[c], k))]++
		}
	}
	var free []uint32
	for _, c := range need {
		if users[c] == 0 {
			free = append(free, c)
		}
	}
	seen := 0
	for ; len(free) > 0; seen++ {
		n := node[free[len(free)-1]]
		free = free[:len(free)-1]
		for k := range g.arity(n) {
			c := g.find(g.kid(n, k))
			if users[c]--; users[c] == 0 {
				free = append(free, c)
			}
		}
	}
	return seen < len(need)
}

// needed returns the classes that the roots need with a choice. It is valid until the next call.
func (x *extractor) needed(node []uint32) []uint32 {
	x.total(node)
	return x.stack
}

// item is a class that could cost so much.
type item struct {
	cost  float64
	class uint32
}

// heap is a heap with four children a node, the cheapest on top; equals are ordered by class.
type heap []item

func (a item) less(b item) bool { return a.cost < b.cost || a.cost == b.cost && a.class < b.class }

func (h *heap) push(x item) {
	s := append(*h, x)
	i := len(s) - 1
	for i > 0 {
		p := (i - 1) / 4
		if !x.less(s[p]) {
			break
		}
		s[i] = s[p]
		i = p
	}
	s[i] = x
	*h = s
}

func (h *heap) pop() item {
	s := *h
	top, x := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	if len(s) == 0 {
		return top
	}
	i := 0
	for {
		k := 4*i + 1
		if k >= len(s) {
			break
		}
		least := k
		for j := k + 1; j < min(k+4, len(s)); j++ {
			if s[j].less(s[least]) {
				least = j
			}
		}
		if !s[least].less(x) {
			break
		}
		s[i] = s[least]
		i = least
	}
	s[i] = x
	return top
}
