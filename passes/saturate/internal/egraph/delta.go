package egraph

import "slices"

// delta knows what is new, so that rules need not be matched with what they have seen. Times are
// laps.
//
// A node is touched when it is made, when its inputs are united with other classes, and when its
// class loses a union. A match is new for a rule if one of its nodes was touched since the rule
// was last applied. The root of such a match is a touched node, or is a few levels above one.
// Level k lists the nodes from which a touched node, or a class with new facts, can be reached in
// up to k steps that occur in patterns.
type delta struct {
	now       uint32
	touched   []uint32   // time by node
	changed   []uint32   // nodes touched now
	old       int        // nodes made before
	rootFacts bool       // new facts touch all nodes of a class
	facts     []uint32   // classes with new facts
	factAt    []uint32   // time by class
	stamps    [][]uint32 // from level 1: the last time by node
	logs      []levelLog // born, level 0, level 1, …
	steps     []uint32   // by symbol of a node: the symbols of inputs that patterns look at
	heights   []uint32   // scratch, by class: symbols of changed nodes
	reached   []uint32   // scratch: classes with heights
	above     []uint32   // scratch
	masks     []uint32   // scratch
}

// levelLog lists nodes by symbol in the order of time.
type levelLog struct {
	wanted []bool // by symbol: whether a pattern asks for it
	nodes  [][]uint32
	starts [][]int32 // by symbol and time
	packed []int     // by symbol: the nodes that were left when it was packed
}

const (
	bornLog  = 0
	touchLog = 1
)

func (d *delta) made(_ *Graph, n uint32) {
	d.touched = append(d.touched, d.now)
	d.changed = append(roomy(d.changed, 1), n)
}

func (d *delta) touch(n uint32) {
	if d.touched[n] != d.now {
		d.touched[n] = d.now
		d.changed = append(roomy(d.changed, 1), n)
	}
}

func (d *delta) learned(c uint32) { d.facts = append(d.facts, c) }

// begin forgets all times: everything is new.
func (d *delta) begin(g *Graph, r *Rules) {
	// Rules have been applied up to time 0, and everything is touched at time 1. So the first lap
	// finds all matches in the way in which later laps find new ones, and what other rules have
	// saturated before is new to these.
	d.steps, d.rootFacts = r.steps, r.facts
	d.now = 1
	d.stamps = make([][]uint32, r.levels)
	d.logs = make([]levelLog, r.levels+2)
	for i := range d.logs {
		k := len(g.lang.sigs)
		d.logs[i] = levelLog{r.logs[i], make([][]uint32, k), make([][]int32, k), make([]int, k)}
		for s := range d.logs[i].starts {
			d.logs[i].starts[s] = []int32{0}
		}
	}
	d.old = 0
	d.changed = d.changed[:0]
	for n := range d.touched {
		d.touched[n] = 1
		d.changed = append(d.changed, uint32(n))
	}
	for c := range d.factAt {
		d.factAt[c] = 1
	}
	for c := range g.classes {
		// Times start anew, so a class that was queued for the index at a time with the same number
		// in a former saturation would be taken for queued.
		g.classes[c].dirty = none
		g.soil(uint32(c))
	}
}

// advance ends a time: it lists what was touched in it.
func (d *delta) advance(g *Graph) bool {
	for i := range d.logs {
		l := &d.logs[i]
		for s, wanted := range l.wanted {
			// Packing moves what a log holds, so it comes before the log of this time begins.
			if wanted {
				if d.pack(g, i, s); g.stopped() {
					return false
				}
				l.starts[s] = append(l.starts[s], int32(len(l.nodes[s])))
			}
		}
	}
	// Between calls all heights are 0. During the climb, they are not 0 exactly for the classes in
	// reached, which therefore has none of them twice.
	d.heights = extended(d.heights, len(g.classes), cap(g.classes))
	d.factAt = extended(d.factAt, len(g.classes), cap(g.classes))
	for k := range d.stamps {
		d.stamps[k] = extended(d.stamps[k], len(g.nodes), cap(g.nodes))
	}
	reached := d.reached[:0]
	for _, c := range d.facts {
		c = g.find(c)
		// Facts matter to patterns with guards, which look for factBit where others look for
		// symbols. The climb from here finds the roots above. A guard that asks about the root
		// itself needs no climb: there, the nodes of the class are roots of new matches, and count
		// as touched.
		d.factAt[c] = d.now
		if d.rootFacts {
			for n := g.classes[c].nodes; n != none; n = g.inClass[n] {
				d.touch(n)
			}
		}
		if d.heights[c] == 0 {
			reached = append(roomy(reached, 1), c)
		}
		d.heights[c] |= factBit
	}
	for i, n := range d.changed {
		if i%pollEvery == 0 && g.stopped() {
			return false
		}
		nd := &g.nodes[n]
		if nd.dead() {
			continue
		}
		s := g.ops[nd.op()].sym
		c := g.find(nd.class)
		if nd.shape() != 0 && g.classes[c].flags&prunedFlag != 0 {
			continue // rules don't see it
		}
		// A new match has a touched node. For a pattern that is a single op, it is the root, and
		// nothing but the node being new matters if its arguments are distinct names: those cases
		// ask for the log of births, which leaves out nodes whose inputs were united. For deeper
		// patterns the node may be the root or lie below it, so it is in the lists of all levels.
		if l := &d.logs[bornLog]; l.wanted[s] && int(n) >= d.old {
			l.nodes[s] = append(roomy(l.nodes[s], 1), n)
		}
		if l := &d.logs[touchLog]; l.wanted[s] {
			l.nodes[s] = append(roomy(l.nodes[s], 1), n)
		}
		for k := range d.stamps {
			d.stamp(k, n, s)
		}
		if d.heights[c] == 0 {
			reached = append(roomy(reached, 1), c)
		}
		d.heights[c] |= symBit(s)
	}
	d.reached = reached
	for k := range d.stamps {
		// Each round takes the climb one level up. After round k, the classes reached are those k+1
		// steps above what changed, and everything that patterns of that depth can see from above
		// is listed.
		if !d.climb(g, k) {
			return false
		}
	}
	for _, c := range d.reached {
		d.heights[c] = 0
	}
	d.changed, d.facts = d.changed[:0], d.facts[:0]
	d.old = len(g.nodes)
	d.now++
	return true
}

// roomy returns a list with room for n elements more. It doubles, which leaves less garbage than
// append does.
func roomy(s []uint32, n int) []uint32 {
	if len(s)+n > cap(s) {
		s = slices.Grow(s, max(len(s), n, 16))
	}
	return s
}

// extended returns a list with zeros up to a length, and with some capacity.
func extended(s []uint32, n, room int) []uint32 {
	if cap(s) < n {
		s = append(make([]uint32, 0, room), s...)
	}
	return s[:n]
}

// stamp lists a node at level k+1.
func (d *delta) stamp(k int, n uint32, s Symbol) {
	if l := &d.logs[k+2]; d.stamps[k][n] != d.now && l.wanted[s] {
		d.stamps[k][n] = d.now
		l.nodes[s] = append(roomy(l.nodes[s], 1), n)
	}
}

// at reports whether a log lists a node last at a time, and the node is not dead.
func (d *delta) at(g *Graph, log int, n, t uint32) bool {
	switch {
	case g.nodes[n].dead():
		return false
	case log == bornLog:
		return true
	// A node may be in a list several times. Only the last place counts, so a root is matched once
	// however often it was touched, and the others may be dropped.
	case log == touchLog:
		return d.touched[n] == t
	}
	return d.stamps[log-2][n] == t
}

// pack drops nodes from a log that it lists again later, once it has doubled.
func (d *delta) pack(g *Graph, log, s int) {
	l := &d.logs[log]
	nodes, starts := l.nodes[s], l.starts[s]
	// Packing looks at the whole list. It waits until the list has doubled, so that its cost per
	// node is constant.
	if len(nodes) < 2*l.packed[s]+256 {
		return
	}
	kept := 0
	for t := range starts {
		begin, end := int(starts[t]), len(nodes)
		if t+1 < len(starts) {
			end = int(starts[t+1])
		}
		starts[t] = int32(kept)
		for i, n := range nodes[begin:end] {
			if i%pollEvery == pollEvery-1 && g.stopped() {
				return
			}
			if d.at(g, log, n, uint32(t)) {
				nodes[kept] = n
				kept++
			}
		}
	}
	l.nodes[s], l.packed[s] = nodes[:kept], kept
}

// climb stamps the parents of the classes reached, from level k+1 on, and goes on to their classes.
// It returns false if it was stopped.
func (d *delta) climb(g *Graph, k int) bool {
	// The heights of this level are copied, since those of the next level are written while these
	// are read: a class may be above itself.
	above, masks := d.above[:0], slices.Grow(d.masks[:0], len(d.reached))
	for _, c := range d.reached {
		masks = append(masks, d.heights[c])
		d.heights[c] = 0
	}
	for i, c := range d.reached {
		for slot := g.classes[c].parents; slot != none; slot = g.slotNext(slot) {
			n := g.slotNode(slot)
			nd := &g.nodes[n]
			s := g.ops[nd.op()].sym
			// Without this test, every ancestor of a change would be listed, and most laps would
			// match everything. A parent is listed only if some pattern looks from its symbol at an
			// input with one of the symbols that changed. Symbols share bits, so this may list a
			// few in vain.
			if d.steps[s]&masks[i] == 0 || nd.dead() {
				continue
			}
			// Deeper patterns see what is nearer as well.
			for j := k; j < len(d.stamps); j++ {
				d.stamp(j, n, s)
			}
			p := g.find(nd.class)
			if d.heights[p] == 0 {
				above = append(roomy(above, 1), p)
			}
			d.heights[p] |= symBit(s)
		}
		if g.stopped() {
			return false
		}
	}
	d.reached, d.above, d.masks = above, d.reached, masks
	return true
}
