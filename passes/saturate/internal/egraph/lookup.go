package egraph

import "slices"

// Lookup returns the class of an op applied to classes, if the graph has such a node.
func (g *Graph) Lookup(op Op, inputs ...Class) (Class, bool) {
	kids := make([]uint32, len(inputs))
	for i, c := range inputs {
		kids[i] = g.find(uint32(c))
	}
	if g.lang.sigs[g.ops[op].sym].Commutes {
		slices.Sort(kids)
	}
	n := g.lookup(op, kids)
	if n == none {
		return 0, false
	}
	return Class(g.find(g.nodes[n].class)), true
}

// lookup returns the live node of an op applied to classes, sorted if it commutes, or none.
func (g *Graph) lookup(op Op, kids []uint32) uint32 {
	head := uint32(op) | uint32(min(len(kids), wideShape))<<shapeBits
	if len(kids) >= wideShape {
		n, _ := g.lookupWide(hashWide(head, kids), head, kids)
		return n
	}
	var pair [2]uint32
	copy(pair[:], kids)
	n, _ := g.lookupSmall(hashSmall(head, pair[0], pair[1]), head, pair[0], pair[1])
	return n
}
