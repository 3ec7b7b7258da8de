package egraph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrExplain means that a graph can't explain why two terms are equal: they are not, it was made
// without [WithExplanations], or there would be more than a million steps.
var ErrExplain = errors.New("no explanation")

// An Explanation is a chain of rewrites from one term to another.
type Explanation struct {
	Terms *Terms
	Start Term
	Steps []Step
}

// A Step replaces a part of a term by an instance of a rule.
type Step struct {
	// Rule is the name of the rule, and Case its rewrite. Other steps have no rewrite, and are
	// called "given" if [Graph.Union] said so, "fold" if an op has a value, and "commutes" if
	// arguments change places.
	Rule string
	Case int // of [Rules.Case], or -1
	// Backward says that the replacement of the rule became its pattern.
	Backward bool
	// Path is the place: numbers of arguments from the root on.
	Path []int
	// After is the whole term after the step.
	After Term
}

// End returns the last term.
func (e *Explanation) End() Term {
	if n := len(e.Steps); n > 0 {
		return e.Steps[n-1].After
	}
	return e.Start
}

// String returns the chain as text, a line a term.
func (e *Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", e.Terms.String(e.Start))
	for _, s := range e.Steps {
		arrow := "=>"
		if s.Backward {
			arrow = "<="
		}
		fmt.Fprintf(&b, "  %s %s", arrow, s.Rule)
		if len(s.Path) > 0 {
			fmt.Fprintf(&b, " at %v", s.Path)
		}
		fmt.Fprintf(&b, "\n%s\n", e.Terms.String(s.After))
	}
	return b.String()
}

// Case returns the text of a rewrite of a step.
func (r *Rules) Case(i int) string { return r.cases[i].text }

// Explain explains why the terms of two classes are equal: those of [Graph.First]. A class that Add
// returned while nothing had been united has the term that was added.
func (g *Graph) Explain(r *Rules, a, b Class) (*Explanation, error) {
	return g.explain(r, a, func(e *explainer) error {
		return e.nodes(g.classes[a].first, g.classes[b].first, nil, 0)
	})
}

// ExplainChoice explains why the term of a class equals the one that is chosen for it.
func (g *Graph) ExplainChoice(r *Rules, a Class, c *Choice) (*Explanation, error) {
	return g.explain(r, a, func(e *explainer) error { return e.choice(g.classes[a].first, c, nil, 0) })
}

func (g *Graph) explain(r *Rules, a Class, chain func(*explainer) error) (*Explanation, error) {
	if g.proof == nil {
		return nil, fmt.Errorf("%w: the graph does not keep reasons", ErrExplain)
	}
	e := newExplainer(g, r)
	if err := chain(e); err != nil {
		return nil, err
	}
	x := &Explanation{Terms: e.terms, Start: e.term(g.classes[a].first)}
	x.Steps = e.steps(x.Start)
	return x, nil
}

// steps returns the moves as steps from a term.
func (e *explainer) steps(now Term) []Step {
	var list []Step
	for _, m := range e.moves {
		now = e.terms.Replace(now, m.path, m.to)
		s := Step{Rule: m.name, Case: -1, Backward: m.back, Path: m.path, After: now}
		if m.id >= 0 {
			s.Rule, s.Case = e.r.rules[e.r.cases[m.id].rule].name, m.id
		}
		list = append(list, s)
	}
	return list
}

// explainer finds chains in a forest of edges.
type explainer struct {
	g      *Graph
	r      *Rules
	terms  *Terms
	termOf []Term // by node, + 1
	parent []uint32
	edge   []uint32 // to the parent
	depth  []uint32
	moves  []move
}

// move changes the term at a place.
type move struct {
	name     string
	id       int // case, or -1
	back     bool
	path     []int
	from, to Term
}

const (
	maxMoves  = 1 << 20
	maxNested = 1 << 12
)

func newExplainer(g *Graph, r *Rules) *explainer {
	n := len(g.nodes)
	e := &explainer{g: g, r: r, terms: newTerms(g), termOf: make([]Term, n), parent: make([]uint32, n), edge: make([]uint32, n), depth: make([]uint32, n)}
	// The edges form a forest over the nodes. It is stored as lists of edges by node, in one piece:
	// counted, added up, filled in. Then each tree gets a root, so that a way between two nodes is
	// found by going up from both.
	start := make([]uint32, n+2)
	for _, d := range g.proof.edges {
		start[d.a+2]++
		start[d.b+2]++
	}
	for i := 2; i < len(start); i++ {
		start[i] += start[i-1]
	}
	beside := make([]uint32, 2*len(g.proof.edges))
	for i, d := range g.proof.edges {
		beside[start[d.a+1]], beside[start[d.b+1]] = uint32(i), uint32(i)
		start[d.a+1]++
		start[d.b+1]++
	}
	for i := range e.parent {
		e.parent[i] = none
	}
	var queue []uint32
	for root := range uint32(n) {
		if e.parent[root] != none {
			continue
		}
		e.parent[root], e.edge[root] = root, none
		for queue = append(queue[:0], root); len(queue) > 0; {
			u := queue[len(queue)-1]
			queue = queue[:len(queue)-1]
			for _, i := range beside[start[u]:start[u+1]] {
				d := g.proof.edges[i]
				v := d.a ^ d.b ^ u
				if e.parent[v] == none {
					e.parent[v], e.edge[v], e.depth[v] = u, i, e.depth[u]+1
					queue = append(queue, v)
				}
			}
		}
	}
	return e
}

// way returns the edges from a to b, and false if there is no way.
func (e *explainer) way(a, b uint32) (up, down []uint32, ok bool) {
	for a != b {
		// The deeper end goes up, so both meet at their lowest common ancestor. In different trees,
		// both end at roots.
		if e.depth[a] >= e.depth[b] && e.parent[a] != a {
			up = append(up, a)
			a = e.parent[a]
		} else if e.parent[b] != b {
			down = append(down, b)
			b = e.parent[b]
		} else {
			return nil, nil, false
		}
	}
	slices.Reverse(down)
	return up, down, true
}

// joined reports whether two nodes were known to be equal before an edge.
func (e *explainer) joined(a, b, before uint32) bool {
	up, down, ok := e.way(a, b)
	for _, n := range append(up, down...) {
		// Edges have numbers in the order in which equalities were found. An explanation that uses
		// only smaller numbers than its own can't go round in circles.
		ok = ok && e.edge[n] < before
	}
	return ok
}

// term returns the term of a node.
func (e *explainer) term(n uint32) Term {
	stack := []uint32{n}
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		var args []Term
		ready := e.termOf[top] == 0
		for _, f := range e.g.origin(top) {
			// Terms may be as deep as the graph, so this is a loop with a stack: a node stays on it
			// until all nodes that it was made with have terms.
			if e.termOf[f] == 0 && e.termOf[top] == 0 {
				stack, ready = append(stack, f), false
			} else {
				args = append(args, e.termOf[f]-1)
			}
		}
		if ready {
			e.termOf[top] = e.terms.Make(e.g.Op(Node(top)), args...) + 1
		}
		if e.termOf[top] != 0 {
			stack = stack[:len(stack)-1]
		}
	}
	return e.termOf[n] - 1
}

// input returns the node whose term is input i of the term of a node.
func (e *explainer) input(n uint32, i int) uint32 { return e.g.origin(n)[i] }

func (e *explainer) add(m move) error {
	if m.from == m.to {
		return nil
	}
	if len(e.moves) >= maxMoves {
		return fmt.Errorf("%w: more than %d steps", ErrExplain, maxMoves)
	}
	// Callers append to paths in place.
	m.path = slices.Clone(m.path)
	e.moves = append(e.moves, m)
	return nil
}

// reverse turns the moves from a place on around.
func (e *explainer) reverse(from int) {
	list := e.moves[from:]
	slices.Reverse(list)
	for i := range list {
		m := &list[i]
		m.from, m.to, m.back = m.to, m.from, !m.back
	}
}

// proof remembers why nodes are in one class, while a graph grows; see [Graph.Explain]. A node is a
// term: its op applied to the terms of the nodes that it was made with, or of the first nodes of
// classes. Terms are vertices, and an edge is added whenever classes are united, or a node gets
// into a class that exists. So the edges form a forest, in which the path between two equal terms
// consists of edges that were there when they became equal.
type proof struct {
	orig  []uint32 // 2 a node: the nodes that it was made with, or where they are in wide and their number
	wide  []uint32
	edges []edge
	why   []uint32
}

// edge says that two terms are equal. why is one of the constants below, or says where the record
// of a rule begins: case, number of slots, slots, and the length and contents of the trail that a
// derivation follows.
type edge struct {
	a, b, why uint32
}

const (
	whyGiven = iota
	whyCongruent
	whyRecord
)

// made adds the origin of a new node: the first nodes of its inputs.
func (p *proof) made(g *Graph, kids ...uint32) {
	if len(kids) > 2 {
		p.orig = append(p.orig, uint32(len(p.wide)), uint32(len(kids)))
		for _, k := range kids {
			p.wide = append(p.wide, g.classes[k].first)
		}
		return
	}
	d := [2]uint32{}
	for i, k := range kids {
		d[i] = g.classes[k].first
	}
	p.orig = append(p.orig, d[0], d[1])
}

// origin returns the nodes that a node was made with.
func (g *Graph) origin(n uint32) []uint32 {
	p := g.proof
	d := p.orig[2*n : 2*n+2]
	if shape := g.nodes[n].shape(); shape != wideShape {
		return d[:shape]
	}
	return p.wide[d[0] : d[0]+d[1]]
}

func (p *proof) given(a, b uint32) { p.add(a, b, whyGiven) }

func (p *proof) congruent(a, b uint32) { p.add(a, b, whyCongruent) }

// fold adds an edge from a node to its value. The record is that of case none: the leaves that the
// inputs equal.
func (p *proof) fold(a, b uint32, inputs []uint32) {
	if p == nil {
		return
	}
	p.edges = append(p.edges, edge{a, b, uint32(len(p.why)) + whyRecord})
	p.why = append(p.why, none, uint32(len(inputs)))
	p.why = append(p.why, inputs...)
}

func (p *proof) add(a, b, why uint32) {
	if p != nil {
		p.edges = append(p.edges, edge{a, b, why})
	}
}

// rule adds an edge by a rule: the term of root is an instance of the pattern of a case, and that
// of made, which may be none if the replacement is a slot, one of its replacement.
func (p *proof) rule(root, made uint32, c int, slots, trail []uint32) {
	if p == nil {
		return
	}
	p.edges = append(p.edges, edge{root, made, uint32(len(p.why)) + whyRecord})
	p.why = append(p.why, uint32(c), uint32(len(slots)))
	p.why = append(p.why, slots...)
	p.why = append(p.why, uint32(len(trail)))
	p.why = append(p.why, trail...)
}
