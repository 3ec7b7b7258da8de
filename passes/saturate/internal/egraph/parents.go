package egraph

// slotNode returns the node of a slot of a list of parents.
func (g *Graph) slotNode(s uint32) uint32 {
	if s>>31 != 0 {
		return g.wide.owner[s&^(1<<31)]
	}
	return s >> 1
}

func (g *Graph) slotNext(s uint32) uint32 {
	if s>>31 != 0 {
		return g.wide.next[s&^(1<<31)]
	}
	return g.next[s]
}

func (g *Graph) addParent(c, slot uint32) {
	if slot>>31 != 0 {
		g.wide.next[slot&^(1<<31)] = none
	} else {
		g.next[slot] = none
	}
	d := &g.classes[c]
	if d.parents == none {
		d.parents = slot
	} else {
		g.setNext(d.lastParent, slot)
	}
	d.lastParent = slot
	d.uses++
}

func (g *Graph) setNext(slot, next uint32) {
	if slot>>31 != 0 {
		g.wide.next[slot&^(1<<31)] = next
	} else {
		g.next[slot] = next
	}
}
