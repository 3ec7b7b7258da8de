package egraph

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/internal/heap"
)

// tree is what the search for the cheapest trees knows of a node.
type tree struct {
	sum   float64 // of the node and the inputs that are settled
	left  uint32  // inputs that are not settled
	class uint32
}

// best is what it knows of a class.
type best struct {
	cost float64
	node uint32
	done bool
}

// maxSweeps bounds the sweeps before a search in the order of costs. The graphs of
// docs/measurements.md need fewer, and a sweep takes a fraction of that search.
const maxSweeps = 16

// trees chooses the cheapest tree for each class, and reports whether all roots have one.
func (x *extractor) trees() ([]uint32, bool) {
	// Sweeps over all nodes in the order in which they were made are the fastest way where inputs
	// were made before what is computed from them, as in most graphs: nearly all costs are right
	// after the first one. Where they are not, a sweep may settle a single level, and Dijkstra's
	// order takes over.
	node, ok := x.sweep()
	if !ok {
		node = x.settle(x.live())
	}
	return node, x.complete(node)
}

// sweep goes over all nodes until no class gets cheaper. It reports false if that takes too many
// sweeps, as in graphs that are deeper than wide and were made from the root.
func (x *extractor) sweep() ([]uint32, bool) {
	g := x.g
	cost := make([]float64, len(g.classes))
	node := make([]uint32, len(g.classes))
	for c := range node {
		cost[c], node[c] = math.Inf(1), none
	}
	// The classes are found once, not in each sweep. Inputs need no find, because the graph is
	// congruent here.
	classes := make([]uint32, len(g.nodes))
	for n := range classes {
		if classes[n] = none; !g.nodes[n].dead() && !math.IsInf(x.own[n], 1) {
			classes[n] = g.find(g.nodes[n].class)
		}
	}
	for range maxSweeps {
		again := false
		for n, c := range classes {
			if n%pollEvery == 0 && g.stopped() {
				return nil, false
			}
			if c == none {
				continue
			}
			d := &g.nodes[n]
			total := x.own[n]
			switch d.shape() {
			case 0:
			case 1:
				total += cost[d.a]
			case 2:
				total += cost[d.a] + cost[d.b]
			default:
				for _, k := range g.wide.kids[d.a : d.a+d.b] {
					total += cost[k]
				}
			}
			// A cost of infinity means that there is no tree. A tree that is only too dear for a
			// float must not look like that.
			if total > math.MaxFloat64 && x.has(cost, uint32(n)) {
				total = math.MaxFloat64
			}
			// A node is taken only if it is cheaper than what is there, so of equals the first one
			// stays, the same in every run. If it were taken when it is as cheap, nodes without
			// cost of their own could make circles: each class would have its cost from the next.
			if total < cost[c] {
				cost[c], node[c], again = total, uint32(n), true
			}
		}
		if !again {
			return node, true
		}
	}
	return nil, false
}

// has reports whether all inputs of a node have a tree. The sum of their costs may be infinite all
// the same: a tree has no sharing, and doubles with each x + x.
func (x *extractor) has(cost []float64, n uint32) bool {
	for k := range x.g.arity(n) {
		if math.IsInf(cost[x.g.find(x.g.kid(n, k))], 1) {
			return false
		}
	}
	return true
}

// live returns the nodes that can be chosen.
func (x *extractor) live() []uint32 {
	var list []uint32
	for n := range x.g.nodes {
		if !x.g.nodes[n].dead() && !math.IsInf(x.own[n], 1) {
			list = append(list, uint32(n))
		}
	}
	return list
}

// settle chooses the cheapest tree for each class among some nodes, in the order of cost, as Dijkstra's algorithm
// does (Knuth, "A generalization of Dijkstra's algorithm", 1977). If it is cancelled, some classes have none.
func (x *extractor) settle(nodes []uint32) []uint32 {
	g := x.g
	node := slices.Repeat([]uint32{none}, len(g.classes))
	local := make([]uint32, len(g.classes)) // by class: the number + 1 that it has here
	var classes []uint32
	number := func(c uint32) uint32 {
		if local[c] == 0 {
			classes = append(classes, c)
			local[c] = uint32(len(classes))
		}
		return local[c] - 1
	}
	type user struct{ node, next uint32 }
	var users []user
	var first []uint32 // by class: its users
	of := make([]tree, len(nodes))
	for i, n := range nodes {
		of[i] = tree{x.own[n], uint32(g.arity(n)), number(g.find(g.nodes[n].class))}
		for k := range g.arity(n) {
			c := number(g.find(g.kid(n, k)))
			for int(c) >= len(first) {
				first = append(first, none)
			}
			users = append(users, user{uint32(i), first[c]})
			first[c] = uint32(len(users) - 1)
		}
	}
	to := make([]best, len(classes))
	for c := range to {
		to[c] = best{math.Inf(1), none, false}
	}
	var h heap.Heap[float64] // of classes
	for i := range of {
		if of[i].left == 0 {
			offer(&h, to, &of[i], uint32(i))
		}
	}
	for len(h) > 0 && !g.stopped() {
		c := h.Pop().N
		b := &to[c]
		// A class is in the heap once for each time that it got cheaper. The first that comes out
		// is the cheapest.
		if b.done {
			continue
		}
		// Costs are not negative, so what comes out of the heap now or later is not cheaper: the
		// tree of this class is final, and its users may count on it.
		b.done = true
		node[classes[c]] = nodes[b.node]
		for u := uint32(none); int(c) < len(first) && first[c] != none; first[c] = users[u].next {
			u = first[c]
			t := &of[users[u].node]
			t.sum += b.cost
			// A node has a cost as soon as its last input is settled, which is also its dearest.
			if t.left--; t.left == 0 {
				offer(&h, to, t, users[u].node)
			}
		}
	}
	return node
}

// complete reports whether all roots have a node.
func (x *extractor) complete(node []uint32) bool {
	return !slices.ContainsFunc(x.roots, func(r uint32) bool { return node[r] == none })
}

// offer queues a class if a node makes it cheaper.
func offer(h *heap.Heap[float64], to []best, t *tree, n uint32) {
	t.sum = min(t.sum, math.MaxFloat64) // all inputs have a tree, see extractor.has
	if b := &to[t.class]; t.sum < b.cost {
		b.cost, b.node = t.sum, n
		h.Push(t.sum, int32(t.class))
	}
}

// given chooses the cheapest tree of each class among the nodes of the input, as they are now. It
// reports whether all roots have one.
func (x *extractor) given() ([]uint32, bool) {
	node := x.settle(x.inputs())
	return node, x.complete(node)
}

// inputs returns the nodes of the input, or those that they are equal to.
func (x *extractor) inputs() []uint32 {
	g := x.g
	var list []uint32
	seen := make(map[uint32]bool)
	var kids []uint32
	for n := range uint32(g.inputs) {
		i := n
		if g.nodes[n].dead() {
			kids = kids[:0]
			for k := range g.arity(n) {
				kids = append(kids, g.find(g.kid(n, k)))
			}
			op := g.nodes[n].op()
			if g.lang.sigs[g.ops[op].sym].Commutes {
				slices.Sort(kids)
			}
			i = g.lookup(op, kids)
		}
		if i != none && !seen[i] && !math.IsInf(x.own[i], 1) {
			seen[i] = true
			list = append(list, i)
		}
	}
	return list
}
