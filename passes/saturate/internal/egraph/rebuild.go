package egraph

import "slices"

// Union says that two classes are equal, for a reason that explanations call "given". Nodes that
// become equal because of that are found by the next [Graph.Rebuild].
func (g *Graph) Union(a, b Class) bool {
	if g.Find(a) == g.Find(b) {
		return false
	}
	g.proof.given(g.classes[a].first, g.classes[b].first)
	return g.union(uint32(a), uint32(b))
}

// union unites two classes. The one with fewer nodes and parents gets stale.
func (g *Graph) union(a, b uint32) bool {
	a, b = g.find(a), g.find(b)
	if a == b {
		return false
	}
	// The larger class stays. So a node moves, or one of its inputs gets stale, at most log n
	// times. Ties are broken by number: the result must not depend on the order of arguments.
	x, y := &g.classes[a], &g.classes[b]
	if wx, wy := x.uses+x.count, y.uses+y.count; wx < wy || wx == wy && b < a {
		a, b, x, y = b, a, y, x
	}
	g.up[b] = a
	g.roots--
	// These nodes are in another class now. Above that class, they may complete matches with nodes
	// that were there. What was in x may do so under parents of b, which are touched when repair
	// renews them.
	for n := y.nodes; n != none; n = g.inClass[n] {
		g.delta.touch(n)
	}
	g.inClass[x.lastNode] = y.nodes
	x.lastNode = y.lastNode
	x.count += y.count
	x.flags |= y.flags & prunedFlag
	// The entries of both classes in the index are stale. Those of the class that stays are laid
	// anew, since it is soiled; the space of the others is waste until the index is laid anew as a
	// whole.
	g.index.pruned -= int(x.hidden + y.hidden)
	g.index.waste += int(y.size)
	x.hidden, y.hidden, y.size = 0, 0, 0
	// Only nodes with b as an input are stale. Those with a remain in the table under their hash.
	// They are looked for by Rebuild and not here, because many unions before one repair cost as
	// much as one (Willsey et al., "egg", 2021).
	g.pending = append(g.pending, b)
	g.soil(a)
	if g.analysis != nil {
		// Facts flow from inputs to what is computed from them. Parents of the class that stays
		// learn if b knew more. Parents of b learn if a did; they are visited by repair anyway, so
		// a flag is enough.
		news, outdone := g.analysis.Join(g, Class(a), Class(b))
		if news {
			g.news(a)
		}
		if outdone {
			g.classes[b].flags |= outdoneFlag
		}
	}
	return true
}

// Rebuild finds nodes that have become equal, until there are no more, and tells the analysis. It
// reports whether it came to an end: cancelling stops it.
func (g *Graph) Rebuild() bool {
	// Congruence comes first: facts that are computed from classes that are about to be united
	// would be computed twice. Facts may lead to unions in turn, so after each class the loop looks
	// for pending ones again. Unions make classes fewer, and facts only grow, so this ends unless
	// an analysis knows infinitely many facts.
	for done := 0; len(g.pending)+len(g.remake)+len(g.retry) > done; {
		for len(g.pending) > 0 {
			c := g.pending[len(g.pending)-1]
			g.pending = g.pending[:len(g.pending)-1]
			if !g.repair(c) {
				return false
			}
		}
		if done < len(g.remake) { // in order: a value before those that are computed from it
			done++
			if !g.relearn(g.remake[done-1]) {
				return false
			}
		}
		// Values that were not known to equal their leaves wait until everything else is done: what
		// they wait for may have been folded in the meantime.
		if done == len(g.remake) {
			g.remake, done = g.remake[:0], 0
			g.again()
		}
	}
	return true
}

// again modifies the classes whose values could not be folded, if other values have been folded
// since.
func (g *Graph) again() {
	list := g.retry
	g.retry = nil
	if g.folds > 0 {
		g.folds = 0
		for _, c := range list {
			g.analysis.Modify(g, Class(g.find(c)))
		}
	}
}

// repair brings the parents of a class that lost a union up to date.
func (g *Graph) repair(c uint32) bool {
	d := &g.classes[c]
	slot := d.parents
	outdone := d.flags&outdoneFlag != 0
	// The list is taken off the class before its slots are looked at. Renewing a parent may unite
	// classes, this one among them, and append to lists. So each slot goes to the class that its
	// input is in afterwards; slots of nodes that died go nowhere.
	d.parents, d.lastParent = none, none
	for slot != none {
		next := g.slotNext(slot)
		n := g.slotNode(slot)
		if !g.nodes[n].dead() && g.renew(n) {
			g.addParent(g.find(c), slot)
			if outdone {
				if k := g.find(g.nodes[n].class); g.analysis.Make(g, Node(n), Class(k)) {
					g.news(k)
				}
			}
		}
		slot = next
		if g.stopped() {
			return false
		}
	}
	return true
}

// renew replaces the inputs of a node by the classes that represent them. If there is such a node
// already, the two are united, and n is dead.
func (g *Graph) renew(n uint32) bool {
	// The table grows before the lookup, because the free slot that the lookup returns would be one
	// of the old table.
	if g.table.full() {
		g.grow()
	}
	d := &g.nodes[n]
	var twin uint32
	var slot int
	var h uint64
	if d.shape() == wideShape {
		if !g.renewWide(n) {
			return true
		}
		kids := g.wide.kids[d.a : d.a+d.b]
		h = hashWide(d.head, kids)
		twin, slot = g.lookupWide(h, d.head, kids)
	} else {
		a, b := g.find(d.a), d.b
		if d.shape() == 2 {
			if b = g.find(b); b < a && g.lang.sigs[g.ops[d.op()].sym].Commutes {
				a, b = b, a
			}
		}
		if a == d.a && b == d.b {
			return true
		}
		d.a, d.b = a, b
		h = hashSmall(d.head, a, b)
		twin, slot = g.lookupSmall(h, d.head, a, b)
	}
	g.delta.touch(n)
	// The node has changed in place, and lookups compare with it as it is. So its old entry in the
	// table need not be deleted, and it may be the one that was found.
	if twin == n {
		return true
	}
	g.soil(g.find(d.class))
	if twin == none {
		g.table.put(slot, h, n)
		return true
	}
	// Two nodes are the same computation now: congruence. One of them dies, also if they are in one
	// class already; otherwise matches and costs would count it twice.
	d.head |= deadFlag
	g.dead++
	if g.find(d.class) != g.find(g.nodes[twin].class) {
		g.proof.congruent(n, twin)
		g.union(d.class, g.nodes[twin].class)
	}
	return false
}

// renewWide replaces the inputs of a node with many inputs, and reports whether they change.
func (g *Graph) renewWide(n uint32) bool {
	d := &g.nodes[n]
	kids := g.wide.kids[d.a : d.a+d.b]
	changed := false
	for i, k := range kids {
		if c := g.find(k); c != k {
			kids[i] = c
			changed = true
		}
	}
	if changed && g.lang.sigs[g.ops[d.op()].sym].Commutes {
		slices.Sort(kids)
	}
	return changed
}

// relearn tells the analysis, and the parents of a class, that facts about the class are new.
func (g *Graph) relearn(c uint32) bool {
	fresh := g.classes[c].flags&freshFlag != 0
	g.classes[c].flags &^= remakeFlag | freshFlag
	// A new class has no parents that could know less than it says. So only the call of Modify is
	// left.
	if c = g.find(c); fresh {
		g.analysis.Modify(g, Class(c))
		return true
	}
	g.delta.learned(c)
	for slot := g.classes[c].parents; slot != none; slot = g.slotNext(slot) {
		n := g.slotNode(slot)
		if g.nodes[n].dead() {
			continue
		}
		if k := g.find(g.nodes[n].class); g.analysis.Make(g, Node(n), Class(k)) {
			g.news(k)
		}
		if g.stopped() {
			return false
		}
	}
	g.analysis.Modify(g, Class(c))
	return true
}

// soil queues a class for the index.
func (g *Graph) soil(c uint32) {
	if d := &g.classes[c]; d.dirty != g.delta.now {
		d.dirty = g.delta.now
		g.index.dirty = append(g.index.dirty, c)
	}
}
