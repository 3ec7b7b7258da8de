package egraph

import "slices"

// Add returns the class of an op applied to classes, and makes a node if there is none. The number
// of inputs must be one that the signature allows.
func (g *Graph) Add(op Op, inputs ...Class) Class {
	kids := g.kids[:0]
	for _, c := range inputs {
		kids = append(kids, g.find(uint32(c)))
	}
	g.kids = kids
	n := g.insert(op, kids, none)
	return Class(g.find(g.nodes[n].class))
}

// insert returns the node of an op applied to classes, which it may sort. A new node gets into the class
// into, or into a class of its own if into is none.
func (g *Graph) insert(op Op, kids []uint32, into uint32) uint32 {
	if len(kids) > 1 && g.lang.sigs[g.ops[op].sym].Commutes {
		slices.Sort(kids)
	}
	switch len(kids) {
	case 0:
		return g.insertSmall(uint32(op), 0, 0, into)
	case 1:
		return g.insertSmall(uint32(op)|1<<shapeBits, kids[0], 0, into)
	case 2:
		return g.insertSmall(uint32(op)|2<<shapeBits, kids[0], kids[1], into)
	}
	return g.insertWide(uint32(op)|wideShape<<shapeBits, kids, into)
}

func (g *Graph) insertSmall(head, a, b, into uint32) uint32 {
	if g.table.full() {
		g.grow()
	}
	h := hashSmall(head, a, b)
	n, slot := g.lookupSmall(h, head, a, b)
	if n != none {
		return n
	}
	n = uint32(len(g.nodes))
	g.table.put(slot, h, n)
	if len(g.nodes) == cap(g.nodes) {
		g.expand()
	}
	g.nodes = append(g.nodes, node{head, a, b, none})
	g.next = append(g.next, none, none)
	if g.proof != nil {
		kids := [2]uint32{a, b}
		g.proof.made(g, kids[:head>>shapeBits]...)
	}
	g.place(n, into)
	if head>>shapeBits > 0 {
		g.addParent(a, n<<1)
		if head>>shapeBits > 1 {
			g.addParent(b, n<<1|1)
		}
	}
	g.learn(n, into == none)
	return n
}

func (g *Graph) insertWide(head uint32, kids []uint32, into uint32) uint32 {
	if g.table.full() {
		g.grow()
	}
	h := hashWide(head, kids)
	n, slot := g.lookupWide(h, head, kids)
	if n != none {
		return n
	}
	n = uint32(len(g.nodes))
	g.table.put(slot, h, n)
	start := uint32(len(g.wide.kids))
	if len(g.nodes) == cap(g.nodes) {
		g.expand()
	}
	g.nodes = append(g.nodes, node{head, start, uint32(len(kids)), none})
	g.next = append(g.next, none, none)
	g.wide.kids = append(g.wide.kids, kids...)
	if g.proof != nil {
		g.proof.made(g, kids...)
	}
	for range kids {
		g.wide.next = append(g.wide.next, none)
		g.wide.owner = append(g.wide.owner, n)
	}
	g.place(n, into)
	for i, k := range kids {
		g.addParent(k, (start+uint32(i))|1<<31)
	}
	g.learn(n, into == none)
	return n
}

// place puts a new node into a class, or into a new class.
func (g *Graph) place(n, into uint32) {
	g.inClass = append(g.inClass, none)
	g.delta.made(g, n)
	if into != none {
		g.nodes[n].class = into
		c := &g.classes[into]
		g.inClass[c.lastNode] = n
		c.lastNode = n
		c.count++
		g.soil(into)
		return
	}
	id := uint32(len(g.classes))
	if len(g.classes) == cap(g.classes) {
		n := g.next2(len(g.classes), g.room*classShare/8)
		g.classes, g.up = slices.Grow(g.classes, n), slices.Grow(g.up, n)
	}
	g.classes = append(g.classes, class{parents: none, lastParent: none, nodes: n, lastNode: n, count: 1, first: n, dirty: none})
	g.up = append(g.up, id)
	g.roots++
	g.nodes[n].class = id
	g.soil(id)
}

// classShare is how many classes get room for eight nodes: of the runs in docs/measurements.md,
// those with bans make a class for 1.7 nodes, the others one for 2.9.
const classShare = 5

// expand makes room for more nodes.
func (g *Graph) expand() {
	n := g.next2(len(g.nodes), g.room)
	g.nodes, g.inClass, g.next = slices.Grow(g.nodes, n), slices.Grow(g.inClass, n), slices.Grow(g.next, 2*n)
	g.delta.touched = slices.Grow(g.delta.touched, n)
	if g.proof != nil {
		g.proof.orig = slices.Grow(g.proof.orig, 2*n)
	}
}

// next2 returns how many more elements a list gets room for: as many as it has, but once there are
// some thousands, as many as are expected (room).
func (g *Graph) next2(n, room int) int {
	if n >= 1<<12 && n < room {
		return room - n
	}
	return max(n, 16) / (1 + min(n>>16, 1)) // half as many once there are many
}
