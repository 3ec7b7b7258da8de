package egraph

import (
	"container/heap"
	"fmt"
)

// Parts explain a choice class by class, so that what terms share is explained once.
type Parts struct {
	Terms *Terms
	// List has a part for each node from which the explanation starts, and for the inputs of what is
	// chosen. A part comes before those of its inputs, and before those whose terms are in its term.
	List []Part

	e *explainer
}

// A Part is how the term of a node becomes the node that is chosen for its class.
type Part struct {
	From  Node
	Start Term   // of From
	Steps []Step // the last leads to the term of Chosen
	// Chosen is the node that is chosen for the class. Its inputs have parts of their own; see
	// [Parts.Inputs].
	Chosen Node
}

// Term returns the term of a node: that which it was added with.
func (p *Parts) Term(n Node) Term { return p.e.term(uint32(n)) }

// Inputs returns the nodes whose terms are the arguments of the term of a node.
func (p *Parts) Inputs(n Node) []Node {
	var list []Node
	for i := range p.e.origin(uint32(n)) {
		list = append(list, Node(p.e.input(uint32(n), i)))
	}
	return list
}

// ExplainParts explains why the terms of nodes equal those that are chosen for their classes.
func (g *Graph) ExplainParts(r *Rules, c *Choice, from ...Node) (*Parts, error) {
	if g.proof == nil {
		return nil, fmt.Errorf("%w: the graph does not keep reasons", ErrExplain)
	}
	p := &Parts{e: newExplainer(g, r)}
	p.Terms = p.e.terms
	q := &partQueue{e: p.e, seen: make([]bool, len(g.nodes))}
	for _, n := range from {
		q.add(uint32(n))
	}
	made := 0
	for len(q.nodes) > 0 {
		part, err := p.e.part(c, heap.Pop(q).(uint32), made)
		if err != nil {
			return nil, err
		}
		for _, n := range p.Inputs(part.Chosen) {
			q.add(uint32(n))
		}
		made += len(part.Steps)
		p.List = append(p.List, part)
	}
	return p, nil
}

// part explains a part, given how many steps there are already.
func (e *explainer) part(c *Choice, m uint32, made int) (Part, error) {
	n := uint32(c.Node(e.g.Class(Node(m))))
	e.moves = e.moves[:0]
	if err := e.nodes(m, n, nil, 0); err != nil {
		return Part{}, err
	}
	if made+len(e.moves) > maxMoves {
		return Part{}, fmt.Errorf("%w: more than %d steps", ErrExplain, maxMoves)
	}
	p := Part{From: Node(m), Start: e.term(m), Steps: e.steps(e.term(m)), Chosen: Node(n)}
	return p, nil
}

// partQueue orders nodes by their terms. A term has a greater number than those in it.
type partQueue struct {
	e     *explainer
	nodes []uint32
	seen  []bool
}

func (q *partQueue) add(n uint32) {
	if !q.seen[n] {
		q.seen[n] = true
		heap.Push(q, n)
	}
}

// Len is part of [heap.Interface].
func (q *partQueue) Len() int { return len(q.nodes) }

// Less is part of [heap.Interface].
func (q *partQueue) Less(i, j int) bool { return q.e.term(q.nodes[i]) > q.e.term(q.nodes[j]) }

// Swap is part of [heap.Interface].
func (q *partQueue) Swap(i, j int) { q.nodes[i], q.nodes[j] = q.nodes[j], q.nodes[i] }

// Push is part of [heap.Interface].
func (q *partQueue) Push(x any) { q.nodes = append(q.nodes, x.(uint32)) }

// Pop is part of [heap.Interface].
func (q *partQueue) Pop() any {
	n := q.nodes[len(q.nodes)-1]
	q.nodes = q.nodes[:len(q.nodes)-1]
	return n
}
