package compile

import "github.com/nnopt/nnopt/nnet3/index"

// builder makes the computation graph, segment after segment. It goes backward from the wanted
// outputs, one hop a round. It does not follow vertices that are not computable, nor those that
// only such vertices use. This ends a recurrence, whose earlier times lack inputs.
type builder struct {
	net    *network
	graph  *graph
	lanes  int // how many sequences a vertex stands for
	bounds bounds
	// frames says that all frames within the bounds of input-nodes are given.
	frames bool

	queue, nextQueue []int32 // vertices to expand in this round and in the next
	changed          []int32 // vertices whose new status their users don't know yet
	dirty, judging   []int32 // vertices to judge at the end of the round, and those being judged
	stack            []int32
	scratch          scratch
	lookups          []index.Index
	position         []int32 // of vertices in the rows being added

	// hasInput tells a component which inputs it has: the vertices of hasNode that are computable
	// or of status hasLeast. It is made once because it is needed often.
	hasInput func(index.Index) bool
	hasNode  int32
	hasLeast status

	limits    limits
	start     int     // the first vertex of the segment
	forgotten []int32 // vertices that earlier segments did not need
	interrupt interrupt
}

func newBuilder(net *network, lanes int, l limits, sizeHint int) *builder {
	b := &builder{net: net, lanes: lanes, graph: newGraph(sizeHint), bounds: newBounds(net), limits: l}
	b.hasInput = func(ix index.Index) bool {
		d := b.graph.find(b.hasNode, ix)
		if d < 0 {
			return false
		}
		s := b.graph.vertices[d].status
		return s == computable || s == b.hasLeast
	}
	return b
}

// addInput adds a vertex that the caller supplies. It reports whether that is new.
func (b *builder) addInput(node int32, ix index.Index) (int32, bool) {
	v, isNew := b.graph.vertex(node, ix)
	x := &b.graph.vertices[v]
	isNew = isNew || !x.given && !x.needed
	x.status, x.given = computable, true
	return v, isNew
}

// addOutput adds a vertex that the caller wants. It reports whether that is new.
func (b *builder) addOutput(node int32, ix index.Index) (int32, bool) {
	v, _ := b.graph.vertex(node, ix)
	x := &b.graph.vertices[v]
	if x.wanted {
		return v, false
	}
	x.wanted, x.usable = true, 1
	b.queue = append(b.queue, v)
	return v, true
}

// build follows the dependencies of the outputs until every status that matters is known.
func (b *builder) build() error {
	for len(b.queue) > 0 {
		// One hop a round: breadth first. Depth first, a recurrence would be followed into its
		// endless past before the inputs at its side tell that this can't be computed.
		for _, v := range b.queue {
			// Users learn of a new status at once and not at the end of the round: what turns out
			// not to be computable makes other vertices useless, which then need not be expanded at
			// all.
			if err := b.expand(v); err != nil {
				return err
			}
			b.tellUsers()
			if b.limits.reached(b.graph) {
				return b.unbounded()
			}
			if b.interrupt.came() {
				return b.interrupt.err
			}
		}
		b.judgeDirty()
		b.queue, b.nextQueue = b.nextQueue, b.queue[:0]
	}
	return b.interrupt.err
}

// expand finds the dependencies of v and, if they tell, its status.
func (b *builder) expand(v int32) error {
	g := b.graph
	x := &g.vertices[v]
	// The vertex was useful when it was queued. If all of its users have become hopeless since, its
	// status does not matter.
	if x.first >= 0 || x.given || x.usable == 0 || x.status == notComputable {
		return nil
	}
	c := x.Cindex
	first := int32(len(g.deps))
	n := &b.net.nodes[c.Node]
	switch n.kind {
	case inputNode:
		// Given rows of input-nodes never come here, so this one is missing.
		b.setStatus(v, notComputable)
		return nil
	case rangeNode:
		g.link(v, b.dependency(n.source, c.Index))
	case generalNode:
		b.lookups = n.general.InputIndexes(c.Index, b.lookups[:0])
		for _, ix := range b.lookups {
			g.link(v, b.dependency(n.source, ix))
		}
	default:
		for i := range n.terms.leaves {
			g.link(v, b.dependency(n.terms.resolve(&n.terms.leaves[i], c.Index)))
		}
	}
	x = &g.vertices[v] // it may have moved
	x.first, x.count = first, int32(len(g.deps))-first
	// A component such as a pooling of statistics may have very many dependencies a row. The first
	// row of a node shows that, and raises the limit on edges by as much as the wanted rows can
	// need.
	b.limits.expanded(c.Node, int(x.count))
	b.countUse(first)
	// Rows that need all of their dependencies have their status as soon as one is missing or the
	// last one is known: a counter suffices, and the others need not be examined. Rows with a
	// choice are judged as a whole later. waiting counts what is still unknown in both cases.
	switch missing := b.countWaiting(v); {
	case !n.allNeeded():
		if x.waiting < x.count || x.count == 0 || n.kind != generalNode {
			b.markDirty(v)
		}
	case missing:
		b.setStatus(v, notComputable)
	case x.waiting == 0:
		b.setStatus(v, computable)
	}
	return nil
}

// countWaiting counts the dependencies of v of unknown status. It reports whether any can't be
// computed.
func (b *builder) countWaiting(v int32) (missing bool) {
	waiting := int32(0)
	for _, d := range b.graph.dependencies(v) {
		switch b.graph.vertices[d].status {
		case unknown:
			waiting++
		case notComputable:
			missing = true
		}
	}
	b.graph.vertices[v].waiting = waiting
	return missing
}

// dependency returns the vertex for an index of a node. An input that is not supplied is not
// computable, nor is a vertex outside the bounds of its node or without a time.
func (b *builder) dependency(node int32, ix index.Index) int32 {
	d, isNew := b.graph.vertex(node, ix)
	switch x := &b.graph.vertices[d]; {
	case !isNew:
	// Without the bounds a row far outside of the input would be found missing only after all hops
	// down to the input, with rows at each of them. And a recurrence with its inputs at one side
	// would never end at the other.
	case !b.bounds.spans[node].has(ix.T) || ix.T == index.NoTime:
		x.status = notComputable
	case b.net.nodes[node].kind != inputNode:
	case b.frames && ix.X == 0:
		x.status, x.given = computable, true
	default:
		x.status = notComputable
	}
	return d
}

// countUse counts the edges of a usable vertex, the last ones, from edge first on.
func (b *builder) countUse(first int32) {
	g := b.graph
	for _, d := range g.deps[first:] {
		x := &g.vertices[d]
		// An edge counts once, from the moment its owner is expanded. A vertex is expanded when the
		// first usable edge leads to it.
		if x.usable++; x.usable == 1 {
			b.becameUsable(d)
		}
	}
}

// becameUsable queues v, or, if its dependencies are known already, counts its use of them.
func (b *builder) becameUsable(v int32) {
	g := b.graph
	// With a stack, because chains of users are as long as a recurrence, where recursion would
	// overflow.
	for b.stack = append(b.stack[:0], v); len(b.stack) > 0; {
		v := b.pop()
		switch x := &g.vertices[v]; {
		case x.given || x.status == notComputable:
		case x.first < 0:
			b.nextQueue = append(b.nextQueue, v)
		default:
			b.addUses(v, 1)
		}
	}
}

// becameUseless removes v's uses of its dependencies, and theirs if nothing else uses them.
func (b *builder) becameUseless(v int32) {
	for b.stack = append(b.stack[:0], v); len(b.stack) > 0; {
		b.addUses(b.pop(), -1)
	}
}

// pop takes a vertex off the stack. Looking at its dependencies again counts as work.
func (b *builder) pop() int32 {
	v := b.stack[len(b.stack)-1]
	b.stack = b.stack[:len(b.stack)-1]
	b.limits.steps += int(b.graph.vertices[v].count)
	return v
}

// addUses adds delta, 1 or -1, to the uses of v's dependencies, and pushes those that this affects.
func (b *builder) addUses(v, delta int32) {
	g := b.graph
	for _, d := range g.dependencies(v) {
		if d < 0 {
			continue
		}
		x := &g.vertices[d]
		x.usable += delta
		if delta > 0 && x.usable == 1 || delta < 0 && x.usable == 0 && x.status != notComputable {
			b.stack = append(b.stack, d)
		}
	}
}

// setStatus sets the status of v. tellUsers tells its users.
func (b *builder) setStatus(v int32, s status) {
	// A status is set once: from unknown to one of the others. That is why the loops over users
	// end.
	x := &b.graph.vertices[v]
	x.status = s
	b.changed = append(b.changed, v)
	if s == notComputable && x.usable > 0 {
		b.becameUseless(v)
	}
}

// tellUsers updates the users of all vertices whose status has changed.
func (b *builder) tellUsers() {
	g := b.graph
	for len(b.changed) > 0 {
		v := b.changed[len(b.changed)-1]
		b.changed = b.changed[:len(b.changed)-1]
		s := g.vertices[v].status
		for e := g.vertices[v].users; e >= 0; e = g.next[e] {
			u := g.owner[e]
			x := &g.vertices[u]
			switch {
			// Edges of forgotten vertices stay in these lists.
			case x.status != unknown || !g.live(e):
			case !b.net.nodes[x.Node].allNeeded():
				x.waiting--
				b.markDirty(u)
			case s == notComputable:
				b.setStatus(u, notComputable)
			default:
				if x.waiting--; x.waiting == 0 {
					b.setStatus(u, computable)
				}
			}
		}
	}
}

func (b *builder) markDirty(v int32) {
	if x := &b.graph.vertices[v]; !x.queued {
		x.queued = true
		b.dirty = append(b.dirty, v)
	}
}

// judgeDirty determines the status of vertices that may be computable without some of their
// dependencies. Judging takes time in proportion to the dependencies, so it happens once a round,
// and again after all changes that this causes, not at every change.
func (b *builder) judgeDirty() {
	for len(b.dirty) > 0 {
		b.dirty, b.judging = b.judging[:0], b.dirty
		for _, v := range b.judging {
			x := &b.graph.vertices[v]
			x.queued = false
			if x.status != unknown {
				continue
			}
			if b.interrupt.came() {
				return
			}
			if s := b.judge(v); s != unknown {
				b.setStatus(v, s)
				b.tellUsers()
			}
		}
	}
}

// judge returns the status of v as far as its dependencies determine it.
func (b *builder) judge(v int32) status {
	g := b.graph
	x := &g.vertices[v]
	n := &b.net.nodes[x.Node]
	b.limits.steps += int(x.count)
	if n.kind != generalNode {
		return n.terms.judge(g, g.dependencies(v), &b.scratch)
	}
	// Ask twice: with what is known to be computable, and with what may still become so. If even
	// the latter is not enough, the row is hopeless; between the two answers it must wait.
	if b.isComputable(n, v, computable, nil) {
		return computable
	}
	if x.waiting == 0 || !b.isComputable(n, v, unknown, nil) {
		return notComputable
	}
	return unknown
}

// isComputable asks a component whether it can compute row v from inputs that are computable or of
// status least.
func (b *builder) isComputable(n *node, v int32, least status, used *[]index.Index) bool {
	x := &b.graph.vertices[v]
	for _, d := range b.graph.dependencies(v) {
		if d < 0 {
			continue
		}
		// Only if something is missing does the component look at its inputs one by one, each with
		// a search in the table. Mostly nothing is.
		if s := b.graph.vertices[d].status; s != computable && s != least {
			b.hasNode, b.hasLeast = n.source, least
			return n.general.IsComputable(x.Index, b.hasInput, used)
		}
	}
	return n.general.IsComputable(x.Index, hasAll, used)
}

// hasAll reports that a component has every input.
func hasAll(index.Index) bool { return true }
