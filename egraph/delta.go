package egraph

// delta knows what is new, so that rules need not be matched with what they have seen. Times are laps.
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
	rootFacts bool       // new facts touch all nodes of a class
	facts     []uint32   // classes with new facts
	factAt    []uint32   // time by class
	stamps    [][]uint32 // from level 1: the last time by node
	logs      []levelLog // born, level 0, level 1, …
	steps     []uint32   // by symbol of a node: the symbols of inputs that patterns look at
	heights   []uint32   // scratch, by class: symbols of changed nodes
}

// levelLog lists nodes by symbol in the order of time.
type levelLog struct {
	nodes  [][]uint32
	starts [][]int32 // by symbol and time
}

const (
	bornLog  = 0
	touchLog = 1
)

func (d *delta) bytes() int64 {
	n := cap(d.touched) + cap(d.changed) + cap(d.facts) + cap(d.factAt) + cap(d.heights)
	for _, s := range d.stamps {
		n += cap(s)
	}
	for _, l := range d.logs {
		for _, s := range l.nodes {
			n += cap(s)
		}
	}
	return int64(4 * n)
}

func (d *delta) made(_ *Graph, n uint32) {
	d.touched = append(d.touched, d.now)
	d.changed = append(d.changed, n)
}

func (d *delta) touch(n uint32) {
	if d.touched[n] != d.now {
		d.touched[n] = d.now
		d.changed = append(d.changed, n)
	}
}

func (d *delta) learned(c uint32) { d.facts = append(d.facts, c) }

// begin forgets all times: everything is new.
func (d *delta) begin(g *Graph, r *Rules) {
	d.steps, d.rootFacts = r.steps, r.facts
	d.now = 1
	d.stamps = make([][]uint32, r.levels)
	d.logs = make([]levelLog, r.levels+2)
	for i := range d.logs {
		d.logs[i] = levelLog{make([][]uint32, len(g.lang.sigs)), make([][]int32, len(g.lang.sigs))}
		for s := range d.logs[i].starts {
			d.logs[i].starts[s] = []int32{0}
		}
	}
	d.changed = d.changed[:0]
	for n := range d.touched {
		d.touched[n] = 1
		d.changed = append(d.changed, uint32(n))
	}
	for c := range d.factAt {
		d.factAt[c] = 1
	}
	for c := range g.classes {
		g.classes[c].dirty = none
		g.soil(uint32(c))
	}
}

// advance ends a time: it lists what was touched in it.
func (d *delta) advance(g *Graph) bool {
	for i := range d.logs {
		for s := range d.logs[i].starts {
			d.logs[i].starts[s] = append(d.logs[i].starts[s], int32(len(d.logs[i].nodes[s])))
		}
	}
	d.heights = append(d.heights, make([]uint32, len(g.classes)-len(d.heights))...)
	d.factAt = append(d.factAt, make([]uint32, len(g.classes)-len(d.factAt))...)
	for k := range d.stamps {
		d.stamps[k] = append(d.stamps[k], make([]uint32, len(g.nodes)-len(d.stamps[k]))...)
	}
	var reached []uint32
	for _, c := range d.facts {
		c = g.find(c)
		d.factAt[c] = d.now
		if d.rootFacts {
			for n := g.classes[c].nodes; n != none; n = g.inClass[n] {
				d.touch(n)
			}
		}
		if d.heights[c] == 0 {
			reached = append(reached, c)
		}
		d.heights[c] |= factBit
	}
	for i, n := range d.changed {
		if i%1024 == 0 && g.stop.Load() {
			return false
		}
		nd := &g.nodes[n]
		if nd.dead() {
			continue
		}
		s := g.ops[nd.op()].sym
		if d.isBorn(n, s) {
			d.logs[bornLog].nodes[s] = append(d.logs[bornLog].nodes[s], n)
		}
		d.logs[touchLog].nodes[s] = append(d.logs[touchLog].nodes[s], n)
		for k := range d.stamps {
			d.stamp(k, n, s)
		}
		c := g.find(nd.class)
		if d.heights[c] == 0 {
			reached = append(reached, c)
		}
		d.heights[c] |= symBit(s)
	}
	for k := range d.stamps {
		if reached = d.climb(g, k, reached); reached == nil {
			return false
		}
	}
	for _, c := range reached {
		d.heights[c] = 0
	}
	d.changed, d.facts = d.changed[:0], d.facts[:0]
	d.now++
	return true
}

// isBorn reports whether a changed node is new. Nodes are born in the order of their numbers.
func (d *delta) isBorn(n uint32, s Symbol) bool {
	l := d.logs[bornLog].nodes[s]
	return len(l) == 0 || n > l[len(l)-1]
}

func (d *delta) stamp(k int, n uint32, s Symbol) bool {
	if d.stamps[k][n] == d.now {
		return false
	}
	d.stamps[k][n] = d.now
	l := &d.logs[k+2].nodes[s]
	*l = append(*l, n)
	return true
}

// climb stamps the parents of reached classes, from level k+1 on, and returns their classes. It
// returns nil if it was stopped.
func (d *delta) climb(g *Graph, k int, reached []uint32) []uint32 {
	above := make([]uint32, 0, len(reached))
	masks := make([]uint32, len(reached))
	for i, c := range reached {
		masks[i] = d.heights[c]
		d.heights[c] = 0
	}
	for i, c := range reached {
		for slot := g.classes[c].parents; slot != none; slot = g.slotNext(slot) {
			n := g.slotNode(slot)
			nd := &g.nodes[n]
			s := g.ops[nd.op()].sym
			if d.steps[s]&masks[i] == 0 || nd.dead() {
				continue
			}
			for j := k; j < len(d.stamps); j++ {
				d.stamp(j, n, s)
			}
			p := g.find(nd.class)
			if d.heights[p] == 0 {
				above = append(above, p)
			}
			d.heights[p] |= symBit(s)
		}
		if g.stop.Load() {
			return nil
		}
	}
	return above
}
