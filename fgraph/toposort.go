package fgraph

import (
	"fmt"
	"math/bits"
	"slices"
)

// Toposort returns the applies in an order in which each comes after everything it depends on,
// and after everything that a feature puts before it. Among the applies that could come next it
// picks the one with the smallest number, so the order is a function of the graph. The error
// wraps [ErrCycle]; only orderings of features can cause it.
func (g *FunctionGraph) Toposort() ([]*Apply, error) {
	if g.busy || len(g.on.orderers) > 0 {
		return g.kahn()
	}
	// Most passes change nothing, so the next one asks for the same order.
	if g.sorted == nil || g.sortedAt != g.commits {
		sorted, err := g.kahn()
		if err != nil {
			return nil, err
		}
		g.sorted, g.sortedAt = sorted, g.commits
	}
	return slices.Clone(g.sorted), nil
}

// kahn sorts by Kahn's algorithm.
func (g *FunctionGraph) kahn() ([]*Apply, error) {
	extra := g.extraEdges()
	// Edges are counted with multiplicity, once for each use of a value, and are taken off in the
	// same way below. So no edge need be told from its copies.
	waits := slices.Grow(g.waits[:0], len(g.applies))[:len(g.applies)]
	clear(waits)
	g.waits = waits
	for id, a := range g.applies {
		if a == nil {
			continue
		}
		for _, v := range a.inputs {
			if v.owner != nil {
				waits[id]++
			}
		}
	}
	for _, to := range extra.to {
		waits[to]++
	}
	// The smallest number first: a heap would do, but numbers are dense, and a tree of bits needs
	// no comparison and no memory for each entry.
	ready := newBitQueue(len(g.applies))
	for id, a := range g.applies {
		if a != nil && waits[id] == 0 {
			ready.push(int32(id))
		}
	}
	sorted := make([]*Apply, 0, g.live)
	for !ready.empty() {
		a := g.applies[ready.pop()]
		sorted = append(sorted, a)
		for _, v := range a.outputs {
			for _, c := range v.clients {
				if c.Apply != nil && dec(waits, c.Apply.id) {
					ready.push(c.Apply.id)
				}
			}
		}
		for _, n := range extra.of(a.id) {
			if dec(waits, n) {
				ready.push(n)
			}
		}
	}
	// Some apply waits for itself. Data edges have no cycle, which the graph guarantees, so an
	// ordering of a feature takes part.
	if len(sorted) < g.live {
		waiting := slices.IndexFunc(waits, func(w int32) bool { return w > 0 })
		return nil, fmt.Errorf("toposort: %w through the orderings of features among %d applies, such as %v",
			ErrCycle, g.live-len(sorted), g.applies[waiting])
	}
	return sorted, nil
}

func dec(waits []int32, id int32) bool {
	waits[id]--
	return waits[id] == 0
}

// adjacency holds edges by source: those of id are to[start[id]:start[id+1]].
type adjacency struct {
	start []int32
	to    []int32
}

func (e adjacency) of(id int32) []int32 {
	if e.start == nil {
		return nil
	}
	return e.to[e.start[id]:e.start[id+1]]
}

// Orderings yields the pairs of applies that features order: the first must come before the second.
func (g *FunctionGraph) Orderings(yield func(before, after *Apply)) {
	for _, f := range g.on.orderers {
		f.Orderings(g, func(before, after *Apply) {
			if before.graph == g && after.graph == g {
				yield(before, after)
			}
		})
	}
}

// extraEdges collects the orderings that features add.
func (g *FunctionGraph) extraEdges() adjacency {
	if len(g.on.orderers) == 0 {
		return adjacency{}
	}
	var from, to []int32
	g.Orderings(func(before, after *Apply) { from, to = append(from, before.id), append(to, after.id) })
	if len(from) == 0 {
		return adjacency{}
	}
	// A counting sort by source: three passes over the edges and no map.
	e := adjacency{start: make([]int32, len(g.applies)+1), to: make([]int32, len(to))}
	for _, id := range from {
		e.start[id+1]++
	}
	for i := 1; i < len(e.start); i++ {
		e.start[i] += e.start[i-1]
	}
	next := slices.Clone(e.start)
	for i, id := range from {
		e.to[next[id]] = to[i]
		next[id]++
	}
	return e
}

// A bitQueue is a priority queue of numbers below a bound: pop returns the smallest. Each level
// has a bit for every non-zero word of the level below. Six levels hold 2^36 numbers, so push
// and pop take constant time in practice.
type bitQueue struct {
	levels [][]uint64
	size   int
}

func newBitQueue(n int) *bitQueue {
	q := &bitQueue{}
	for {
		n = (n + 63) / 64
		q.levels = append(q.levels, make([]uint64, max(n, 1)))
		if n <= 1 {
			return q
		}
	}
}

func (q *bitQueue) empty() bool { return q.size == 0 }

func (q *bitQueue) push(x int32) {
	q.size++
	i := uint(x)
	for _, l := range q.levels {
		w := &l[i/64]
		// If the word had a bit, the levels above know already that something is below.
		had := *w != 0
		*w |= 1 << (i % 64)
		if had {
			return
		}
		i /= 64
	}
}

// pop removes and returns the smallest number. The queue must not be empty.
func (q *bitQueue) pop() int32 {
	q.size--
	i := uint(0)
	for k := len(q.levels) - 1; k >= 0; k-- {
		i = i*64 + uint(bits.TrailingZeros64(q.levels[k][i]))
	}
	for j, l := 0, i; j < len(q.levels); j++ {
		w := &q.levels[j][l/64]
		*w &^= 1 << (l % 64)
		if *w != 0 {
			break
		}
		l /= 64
	}
	return int32(i)
}
