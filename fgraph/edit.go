package fgraph

// The journal records every step of the current change, and of all changes since the oldest open
// checkpoint. Steps are undone newest first. This restores everything: the order of clients, the
// numbers, and the numbers assigned next.

type editKind uint8

const (
	editImport    editKind = iota // a joined the graph
	editDoom                      // features were told that a is about to leave
	editPrune                     // a left the graph, after an editDrop per input
	editDrop                      // a ceased to be client pos of its input i
	editChange                    // input i of a (output i of the graph if a is nil) ceased to be client pos of v
	editOutput                    // output i was appended
	editCut                       // output i ceased to be client pos of v, and was removed
	editUndeclare                 // input i, which was v, was removed
)

type edit struct {
	a    *Apply
	v    *Variable
	i    int32
	pos  int32
	kind editKind
}

// note adds a step to the journal. A graph that can't be built is given up as a whole.
func (g *FunctionGraph) note(e edit) {
	if !g.building {
		g.journal = append(g.journal, e)
	}
}

// forget truncates the journal at mark, unless a checkpoint is open.
func (g *FunctionGraph) forget(mark int) {
	if g.open == 0 {
		clear(g.journal[mark:])
		g.journal = g.journal[:mark]
	}
}

// position returns where the index of c among the clients of its variable is stored.
func (g *FunctionGraph) position(c Client) *int32 {
	if c.Apply == nil {
		return &g.outPos[c.Index]
	}
	return c.Apply.place(c.Index)
}

// read returns the variable that c reads.
func (g *FunctionGraph) read(c Client) *Variable {
	if c.Apply == nil {
		return g.outputs[c.Index]
	}
	return c.Apply.inputs[c.Index]
}

func (g *FunctionGraph) setRead(c Client, v *Variable) {
	if c.Apply == nil {
		g.outputs[c.Index] = v
	} else {
		c.Apply.inputs[c.Index] = v
	}
}

// adopt adds a constant to the graph before its first client.
func (g *FunctionGraph) adopt(v *Variable) {
	if v.owner == nil && v.leaf.graph == nil {
		v.leaf.graph = g
		v.id = g.newVariable(v)
	}
}

// release removes a constant from the graph after its last client.
func (g *FunctionGraph) release(v *Variable) {
	if len(v.clients) == 0 && v.owner == nil && v.leaf.constant {
		g.releaseVariable(v.id)
		v.leaf.graph, v.id = nil, outside
	}
}

func (g *FunctionGraph) addClient(v *Variable, c Client) {
	g.adopt(v)
	*g.position(c) = int32(len(v.clients))
	v.clients = append(v.clients, c)
}

// dropClient removes c from the clients of v and returns its position, which the last client
// takes.
func (g *FunctionGraph) dropClient(v *Variable, c Client) int32 {
	pos := *g.position(c)
	last := len(v.clients) - 1
	// The last client moves into the gap: constant time, and undoing puts both back, so that the
	// order of clients, which passes may see, is what it was.
	if int(pos) != last {
		moved := v.clients[last]
		v.clients[pos] = moved
		*g.position(moved) = pos
	}
	v.clients[last] = Client{}
	v.clients = v.clients[:last]
	g.release(v)
	return pos
}

// restoreClient undoes dropClient.
func (g *FunctionGraph) restoreClient(v *Variable, c Client, pos int32) {
	g.adopt(v)
	if int(pos) == len(v.clients) {
		v.clients = append(v.clients, c)
	} else {
		moved := v.clients[pos]
		*g.position(moved) = int32(len(v.clients))
		v.clients = append(v.clients, moved)
		v.clients[pos] = c
	}
	*g.position(c) = pos
}

// change makes c read v, which is in the graph or a constant.
func (g *FunctionGraph) change(c Client, v *Variable, why Reason) {
	old := g.read(c)
	pos := *g.position(c)
	// Adopt v before dropping the old variable, because undoing restores the old one first:
	// numbers of constants are freed in reverse order.
	g.adopt(v)
	g.dropClient(old, c)
	g.addClient(v, c)
	g.setRead(c, v)
	g.note(edit{kind: editChange, a: c.Apply, i: int32(c.Index), v: old, pos: pos})
	// Features hear of the change last, when clients, journal and order agree with it. A callback
	// that looks at the graph sees it as it will be.
	if c.Apply != nil && v.owner != nil {
		g.require(v.owner, c.Apply)
	}
	g.fireChange(c, old, v, why)
}

// require moves before ahead of after in the order. If that is impossible it remembers the edge:
// a later step of the same change may break the cycle.
func (g *FunctionGraph) require(before, after *Apply) {
	if !g.order.require(before.id, after.id) {
		g.late = append(g.late, edge{before, after})
	}
}

// settle retries the remembered edges at the end of a change. It returns an edge that closes a
// cycle and false if there is one.
func (g *FunctionGraph) settle() (edge, bool) {
	var bad edge
	ok := true
	// An edge that contradicted the order when it was made need not close a cycle: replacing x by
	// f(x) in several places passes through states with cycles. Now the change is complete. An edge
	// that is still there and still does not fit is a cycle, because all others do fit.
	for _, e := range g.late {
		if e.before.graph == g && e.after.graph == g && g.reads(e.after, e.before) &&
			!g.order.require(e.before.id, e.after.id) {
			bad, ok = e, false
			break
		}
	}
	clear(g.late)
	g.late = g.late[:0]
	return bad, ok
}

// reads reports whether a reads an output of b.
func (g *FunctionGraph) reads(a, b *Apply) bool {
	for _, v := range a.inputs {
		if v.owner == b {
			return true
		}
	}
	return false
}

// prune removes a, which is unused, and everything that becomes unused.
func (g *FunctionGraph) prune(a *Apply, why Reason) {
	// A list of what to remove instead of recursion: chains of a million applies die as one.
	dead := append(g.dead[:0], a)
	for len(dead) > 0 {
		a := dead[len(dead)-1]
		dead = dead[:len(dead)-1]
		// Features are told while the apply is still whole, and undone in the opposite order: first
		// the apply is linked again, then they hear of its import. The two entries of the journal
		// around the edits keep that symmetry.
		g.note(edit{kind: editDoom, a: a})
		g.firePrune(a, why)
		for i, v := range a.inputs {
			pos := g.dropClient(v, Client{a, i})
			g.note(edit{kind: editDrop, a: a, i: int32(i), pos: pos})
			if len(v.clients) == 0 && v.owner != nil && v.owner.unused(v.index) {
				dead = append(dead, v.owner)
			}
		}
		g.unlink(a)
		g.note(edit{kind: editPrune, a: a})
	}
	g.dead = dead
}

// undo undoes everything after mark, newest first, and tells the features.
func (g *FunctionGraph) undo(mark int, why Reason) {
	// While this is set, callbacks that panic are caught: half an undoing would leave the graph in
	// neither state.
	g.undoing = true
	for len(g.journal) > mark {
		last := len(g.journal) - 1
		// The entry is removed before it is undone, since undoing a prune takes the entries of its
		// inputs from the journal as well.
		e := g.journal[last]
		g.journal[last] = edit{}
		g.journal = g.journal[:last]
		switch e.kind {
		case editImport:
			g.undoImport(e.a, why)
		case editPrune:
			g.undoPrune(e.a)
		case editDoom:
			g.fireImport(e.a, why)
		case editChange:
			g.undoChange(e, why)
		case editOutput:
			c := Client{nil, int(e.i)}
			g.dropClient(e.v, c)
			g.outputs, g.outPos = g.outputs[:e.i], g.outPos[:e.i]
			g.fireChange(c, e.v, nil, why)
		case editCut:
			g.insertOutput(int(e.i), e.v, e.pos, why)
		case editUndeclare:
			g.insertInput(int(e.i), e.v)
		}
	}
	// The old order was valid, so every edge fits again.
	g.settle()
	g.undoing = false
}

func (g *FunctionGraph) undoImport(a *Apply, why Reason) {
	g.firePrune(a, why)
	for i := len(a.inputs) - 1; i >= 0; i-- {
		g.dropClient(a.inputs[i], Client{a, i})
	}
	g.unlink(a)
}

func (g *FunctionGraph) undoPrune(a *Apply) {
	g.link(a)
	// Before editPrune the journal has an editDrop for each input, in order. They are taken off
	// here, newest first, because clients can be restored only when the apply is linked again.
	for i := len(a.inputs) - 1; i >= 0; i-- {
		last := len(g.journal) - 1
		g.restoreClient(a.inputs[i], Client{a, i}, g.journal[last].pos)
		g.journal[last] = edit{}
		g.journal = g.journal[:last]
	}
}

func (g *FunctionGraph) undoChange(e edit, why Reason) {
	c := Client{e.a, int(e.i)}
	v := g.read(c)
	g.adopt(e.v)
	// What is undone is the newest change of v, so c is its last client. dropClient would give its
	// number away if v is a constant, before the old variable has its own back.
	v.clients[len(v.clients)-1] = Client{}
	v.clients = v.clients[:len(v.clients)-1]
	g.restoreClient(e.v, c, e.pos)
	g.setRead(c, e.v)
	g.release(v)
	if e.a != nil && e.v.owner != nil {
		g.require(e.v.owner, e.a)
	}
	g.fireChange(c, v, e.v, why)
}
