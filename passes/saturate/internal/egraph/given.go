package egraph

import (
	"math"
	"slices"
)

// given chooses the cheapest tree of each class among the nodes of the input, as they are now. It
// reports whether all roots have one.
func (x *extractor) given() ([]uint32, bool) {
	g := x.g
	node := make([]uint32, len(g.classes))
	for c := range node {
		node[c] = none
	}
	nodes := x.inputs()
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
	var h costHeap
	for i := range of {
		if of[i].left == 0 {
			h.offer(to, &of[i], uint32(i))
		}
	}
	for len(h) > 0 && !g.stopped() {
		c := h.pop().class
		if b := &to[c]; !b.done {
			b.done = true
			node[classes[c]] = nodes[b.node]
			for u := uint32(none); int(c) < len(first) && first[c] != none; first[c] = users[u].next {
				u = first[c]
				t := &of[users[u].node]
				t.sum += b.cost
				if t.left--; t.left == 0 {
					h.offer(to, t, users[u].node)
				}
			}
		}
	}
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
