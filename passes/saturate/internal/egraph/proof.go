package egraph

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
