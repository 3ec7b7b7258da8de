package egraph

import (
	"fmt"
	"slices"
)

// Parts explain a choice class by class, so that what terms share is explained once.
type Parts struct {
	Terms *Terms
	// List has a part for each node from which the explanation starts, and for the inputs of what
	// is chosen. All parts of a class come before those of the inputs of what is chosen for it, and
	// a part comes before those whose terms are in its term, unless both can't be.
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
	for i := range p.e.g.origin(uint32(n)) {
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
	made := 0
	for _, n := range p.e.order(c, from) {
		part, err := p.e.part(c, n, made)
		if err != nil {
			return nil, err
		}
		made += len(part.Steps)
		p.List = append(p.List, part)
	}
	return p, nil
}

// order returns the nodes that have parts. A node comes before the inputs of what is chosen for its
// class, and before nodes whose terms are in its term. If both can't be, the one that is met first
// in a walk counts.
func (e *explainer) order(c *Choice, from []Node) []uint32 {
	inputs := func(n uint32) []uint32 { return e.g.origin(uint32(c.Node(e.g.Class(Node(n))))) }
	seen := make([]bool, len(e.g.nodes))
	var nodes []uint32
	add := func(n uint32) {
		if !seen[n] {
			seen[n] = true
			nodes = append(nodes, n)
		}
	}
	for _, n := range from {
		add(uint32(n))
	}
	parts := make(map[Term][]uint32) // by term
	for i := 0; i < len(nodes); i++ {
		t := e.term(nodes[i])
		parts[t] = append(parts[t], nodes[i])
		for _, k := range inputs(nodes[i]) {
			add(k)
		}
	}
	type place struct {
		id   uint32 // a node that has a part, or a term
		term bool
	}
	list := nodes[:0:0] // each node after those that come later
	met := make(map[place]bool)
	type visit struct {
		at   place
		done bool
	}
	var todo []visit
	for _, n := range slices.Backward(nodes) {
		todo = append(todo, visit{at: place{id: n}})
	}
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if v.done {
			list = append(list, v.at.id)
			continue
		}
		if met[v.at] {
			continue
		}
		met[v.at] = true
		t := Term(v.at.id)
		if v.at.term {
			for _, n := range parts[t] {
				todo = append(todo, visit{at: place{id: n}})
			}
		} else {
			t = e.term(v.at.id)
			todo = append(todo, visit{at: v.at, done: true})
		}
		for _, arg := range e.terms.Args(t) {
			todo = append(todo, visit{at: place{uint32(arg), true}})
		}
		if !v.at.term {
			for _, k := range inputs(v.at.id) {
				todo = append(todo, visit{at: place{id: k}})
			}
		}
	}
	slices.Reverse(list)
	return list
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
