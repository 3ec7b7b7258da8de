package rewrite

import "github.com/nnopt/nnopt/fgraph"

// queue is a FIFO queue of applies to be visited, without duplicates.
type queue struct {
	items []*fgraph.Apply
	head  int
	in    []bool // by number
}

func (q *queue) push(a *fgraph.Apply) {
	id := a.ID()
	for id >= len(q.in) {
		q.in = append(q.in, make([]bool, max(64, id+1-len(q.in), len(q.in)/4))...)
	}
	if q.in[id] {
		return
	}
	q.in[id] = true
	// What was popped is given back when it is the larger half, so moving costs less than the pops
	// that it follows.
	if q.head > 1024 && q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, a)
}

// fill queues all applies of order that are not queued yet. An empty queue takes ownership of
// the slice.
func (q *queue) fill(order []*fgraph.Apply, g *fgraph.FunctionGraph) {
	if n := g.NumApplyIDs(); n > len(q.in) {
		q.in = append(make([]bool, 0, n+n/8+64), q.in...)[:n+n/8+64]
	}
	if q.head < len(q.items) {
		for _, a := range order {
			q.push(a)
		}
		return
	}
	q.items, q.head = order, 0
	for _, a := range order {
		q.in[a.ID()] = true
	}
}

// pop removes and returns the next apply that is still in g, or returns nil.
func (q *queue) pop(g *fgraph.FunctionGraph) *fgraph.Apply {
	for q.head < len(q.items) {
		a := q.items[q.head]
		q.items[q.head] = nil
		q.head++
		if g.Contains(a) {
			q.in[a.ID()] = false
			return a
		}
	}
	q.items, q.head = q.items[:0], 0
	return nil
}

// drop frees the number of an apply that leaves the graph. pop skips the apply.
func (q *queue) drop(a *fgraph.Apply) {
	// The number may be given to a new apply at once, which must be able to join the queue. The old
	// one stays in items; it is in no graph, so pop passes over it.
	if id := a.ID(); id < len(q.in) {
		q.in[id] = false
	}
}
