package egraph

// matcher finds the matches of rules. A match is a record of its case: root, slots, nodes of the
// pattern and positions of picks, the latter two if they are needed; see stride.
type matcher struct {
	g       *Graph
	r       *Rules
	out     [][]uint32 // by case: records
	strides []int
	count   []int // by rule: matches of this lap
	limit   []int // by rule: more than that many are too many
	over    []bool
	after   uint32 // what was touched later is new
	regs    []uint32
	nodes   []uint32
	pos     []uint32
	prev    []int32
	frames  []frame
	leafAt  []uint32 // by leaf: class
	leafIn  []uint32 // by leaf: node
	on      []bool
	args    []Class
	params  []any
	same    [2][]uint32 // rests
	steps   int
	inputs  uint32 // the symbols of the inputs of the root, or 0 if they are not known yet
	gaveUp  int    // roots whose matches were too many to look for
}

// frame is a choice of a search: the entries of a class, or the inputs of a node.
type frame struct {
	at, cur, end, limit int32
}

// maxSteps bounds the choices of a search at a root, so that multisets can't make it run forever.
const maxSteps = 1 << 18

func newMatcher(g *Graph, r *Rules) *matcher {
	m := &matcher{g: g, r: r, out: make([][]uint32, len(r.cases)), strides: make([]int, len(r.cases)), count: make([]int, len(r.rules)), limit: make([]int, len(r.rules)), over: make([]bool, len(r.rules))}
	nodes, picks := 1, 0
	for i := range r.cases {
		c := &r.cases[i]
		m.strides[i] = 1 + len(c.slots)
		if c.keeps(g) {
			m.strides[i] += c.binds + c.picks
		}
		nodes, picks = max(nodes, c.binds), max(picks, c.picks)
	}
	m.regs = make([]uint32, r.regs+1)
	m.nodes, m.pos, m.prev = make([]uint32, nodes), make([]uint32, picks), make([]int32, picks)
	m.leafAt, m.leafIn = make([]uint32, len(r.leaves)), make([]uint32, len(r.leaves))
	return m
}

// keeps reports whether records of the case hold nodes and positions.
func (c *caseInfo) keeps(g *Graph) bool { return g.proof != nil || len(c.rests) > 0 }

// begin starts a lap.
func (m *matcher) begin() {
	// Where the leaves of patterns are changes only between laps. Looking them up once makes the
	// test for one a comparison of two numbers. A leaf that the graph does not have is in no class.
	for i, op := range m.r.leaves {
		m.leafAt[i], m.leafIn[i] = none, none
		if n, _ := m.g.lookupSmall(hashSmall(uint32(op), 0, 0), uint32(op), 0, 0); n != none {
			m.leafAt[i], m.leafIn[i] = m.g.find(m.g.nodes[n].class), n
		}
	}
	for i := range m.out {
		m.out[i] = m.out[i][:0]
	}
	clear(m.count)
	clear(m.over)
}

// symbol matches the cases of a symbol that are wanted, at the roots that a log lists after a time.
func (m *matcher) symbol(s Symbol, log int, after uint32, wanted func(c int) bool) bool {
	p := m.r.roots[s]
	m.after = after
	m.on = p.enable(m.on, wanted)
	d := &m.g.delta
	l := &d.logs[log]
	starts, nodes := l.starts[s], l.nodes[s]
	// The log lists by time what may be roots of new matches. A node that occurs at several times
	// is skipped at all but the last; see delta.at.
	for t := after + 1; t < d.now; t++ {
		end := len(nodes)
		if int(t) < len(starts)-1 {
			end = int(starts[t+1])
		}
		for i, n := range nodes[starts[t]:end] {
			if i%pollEvery == 0 && m.g.halted() {
				return false
			}
			nd := &m.g.nodes[n]
			if !d.at(m.g, log, n, t) {
				continue
			}
			// The class may have been pruned after the node was listed.
			if nd.shape() != 0 && m.g.classes[m.g.find(nd.class)].flags&prunedFlag != 0 {
				continue
			}
			if !m.root(p, n, nd) {
				return false
			}
		}
	}
	return true
}

// root matches at a node. It returns false if the search is cancelled.
func (m *matcher) root(p *program, n uint32, nd *node) bool {
	m.nodes[0] = n
	// Registers hold classes that represent themselves. During a lap no classes are united, and
	// rebuilding has renewed all inputs, so that inputs may be copied without find.
	m.regs[0] = m.g.find(nd.class)
	switch nd.shape() {
	case 1:
		m.regs[1] = nd.a
	case 2:
		m.regs[1], m.regs[2] = nd.a, nd.b
	case wideShape:
		if m.g.lang.sigs[m.g.ops[nd.op()].sym].ordered() {
			copy(m.regs[1:], m.g.wide.kids[nd.a:nd.a+nd.b])
		}
	}
	return m.run(p)
}

// run walks the program. The end of a block brings the next choice of the innermost frame.
func (m *matcher) run(p *program) bool {
	g, code, regs := m.g, p.code, m.regs
	m.frames = m.frames[:0]
	m.steps, m.inputs = 0, 0
	limit := int32(len(code))
	// An instruction at i owns the code up to its end: what remains to be matched if it succeeds.
	// If it fails, the next instruction is the one behind its end, an alternative for other
	// patterns. An instruction with several outcomes puts a frame on the stack, and the code that
	// it owns is run for each of them: reaching the limit of that code, successfully or not, brings
	// the next outcome. So all patterns of a symbol are matched in one walk, and tests that they
	// share are made once.
	for i := int32(0); ; {
		if i >= limit {
			k := len(m.frames) - 1
			if k < 0 {
				return !g.halted()
			}
			f := &m.frames[k]
			// Multisets have exponentially many ways to choose their elements. A root that takes
			// too long is given up, with what it has found.
			if m.steps++; m.steps >= maxSteps {
				m.gaveUp++
				return !g.halted()
			}
			// An instruction may have been switched off since its frame was made, because its last
			// case matched too often.
			if m.on[f.at] && m.advance(f, &code[f.at]) {
				i = f.at + 1
			} else {
				i, limit = code[f.at].end, f.limit
				m.frames = m.frames[:k]
			}
			continue
		}
		in := &code[i]
		if !m.on[i] {
			i = in.end
			continue
		}
		ok := true
		switch in.code {
		case opBind:
			d := &g.classes[regs[in.in]]
			// Most classes have none of the symbols that a pattern looks for. The mask says so
			// without a look at their nodes, and without a frame.
			if d.mask&symBit(in.sym) == 0 {
				i = in.end
				continue
			}
			m.frames = append(m.frames, frame{i, g.firstEntry(d, in.sym), int32(d.start + d.size), limit})
			i, limit = in.end, in.end
			continue
		case opPick:
			if in.bind == 0 && in.need != anything && m.below()&in.need == 0 {
				i = in.end
				continue
			}
			m.prev[in.n] = in.arg
			m.frames = append(m.frames, frame{i, 0, int32(g.arity(m.nodes[in.bind])), limit})
			i, limit = in.end, in.end
			continue
		case opPickSame:
			m.prev[in.n] = in.arg
			if !m.seek(in) {
				i = in.end
				continue
			}
		case opSame:
			ok = regs[in.in] == regs[in.arg]
		case opLeaf:
			ok = regs[in.in] == m.leafAt[in.arg]
		case opYield:
			// A rule that is over its limit will be banned, so further matches of it would be
			// thrown away.
			if m.yield(int(in.arg)); m.over[m.r.cases[in.arg].rule] {
				m.on = p.disable(m.on, i)
			}
		default:
			ok = m.test(in)
		}
		if i++; !ok {
			i = in.end
		}
	}
}

// firstEntry returns the first entry of a class whose symbol is s or a later one.
func (g *Graph) firstEntry(d *class, s Symbol) int32 {
	at, end := int32(d.start), int32(d.start+d.size)
	for at < end {
		if mid := int32(uint32(at+end) / 2); g.ops[g.index.entries[mid].head&opMask].sym < s {
			at = mid + 1
		} else {
			end = mid
		}
	}
	return at
}

// test executes the rarer instructions.
func (m *matcher) test(in *instr) bool {
	g := m.g
	switch in.code {
	case opExact:
		return g.nodes[m.nodes[in.bind]].op() == in.op
	case opParam:
		m.regs[in.out] = uint32(g.nodes[m.nodes[in.bind]].op())
	case opSameOp:
		p, q := m.regs[in.in], m.regs[in.arg]
		return p == q || g.ops[p].param == g.ops[q].param
	case opCount:
		n := int32(g.arity(m.nodes[in.bind]))
		return n == in.n || n > in.n && in.arg == 1
	case opLoad:
		copy(m.regs[in.out:in.out+in.n], g.kidsOf(m.nodes[in.bind]))
	case opGuard:
		return m.passes(&m.r.checks[in.arg])
	case opEqual:
		n, ok := g.lang.types.Equal(g, Class(m.regs[in.in]), m.r.literals[in.arg])
		m.regs[in.out] = uint32(n)
		return ok
	}
	return true
}

// advance takes the next choice of a frame.
func (m *matcher) advance(f *frame, in *instr) bool {
	if in.code == opPick {
		return m.pick(f, in)
	}
	g := m.g
	for f.cur < f.end {
		e := &g.index.entries[f.cur]
		f.cur++
		// The entries of a class are sorted by symbol, and the frame began at the first one of this
		// symbol; so the first one of another symbol ends it.
		op := Op(e.head & opMask)
		if g.ops[op].sym != in.sym {
			f.cur = f.end
			return false
		}
		if in.op != noOp && op != in.op {
			continue
		}
		m.nodes[in.bind] = e.node
		switch in.n {
		case 0:
		case 1:
			m.regs[in.out] = e.a
		case 2:
			m.regs[in.out], m.regs[in.out+1] = e.a, e.b
		default:
			copy(m.regs[in.out:in.out+in.n], g.wide.kids[e.a:e.a+e.b])
		}
		return true
	}
	return false
}

// yield records a match of a case, if it is new.
func (m *matcher) yield(id int) {
	c := &m.r.cases[id]
	// The root was listed because something below it is new, but this match may have nothing of
	// that.
	if m.over[c.rule] || m.after > 0 && !m.isNew(c) {
		return
	}
	if m.count[c.rule]++; m.count[c.rule] > m.limit[c.rule] {
		m.over[c.rule] = true
		return
	}
	rec := append(roomy(m.out[id], m.strides[id]), m.nodes[0])
	for _, s := range c.slots {
		rec = append(rec, m.regs[s.reg])
	}
	if c.keeps(m.g) {
		rec = append(rec, m.nodes[:c.binds]...)
		rec = append(rec, m.pos[:c.picks]...)
	}
	m.out[id] = rec
}

// isNew reports whether a match has a node or a fact that is new.
func (m *matcher) isNew(c *caseInfo) bool {
	d := &m.g.delta
	for _, n := range m.nodes[:c.binds] {
		if d.touched[n] > m.after {
			return true
		}
	}
	// Numbers in patterns are nodes, too, though no instruction binds them.
	for _, l := range c.leaves {
		if d.touched[m.leafIn[l]] > m.after {
			return true
		}
	}
	for _, r := range c.asked {
		if d.factAt[m.regs[r]] > m.after {
			return true
		}
	}
	for _, i := range c.askedRests {
		m.same[0] = m.restOf(m.same[0][:0], &c.rests[i])
		for _, k := range m.same[0] {
			if d.factAt[k] > m.after {
				return true
			}
		}
	}
	return false
}

// bareNames matches cases whose pattern is a name: with all classes that were made after a number.
func (m *matcher) bareNames(id int, after int) {
	c := &m.r.cases[id]
	for k := after; k < len(m.g.classes) && !m.over[c.rule]; k++ {
		if k%pollEvery == 0 && m.g.halted() {
			return
		}
		if m.g.up[k] == uint32(k) {
			// What is known of a class does not matter to a name, so it matches a class once, when
			// it is new. Classes that were united since have been matched as two.
			m.nodes[0], m.regs[0] = m.g.classes[k].first, uint32(k)
			m.after = 0
			m.yield(id)
		}
	}
}

// below returns the symbols of the inputs of the root.
func (m *matcher) below() uint32 {
	if m.inputs == 0 {
		m.inputs = factBit
		for _, c := range m.g.kidsOf(m.nodes[0]) {
			m.inputs |= m.g.classes[c].mask
		}
	}
	return m.inputs
}

// pick takes the next input that was not picked. Of equal inputs, which are adjacent, it
// takes the first.
func (m *matcher) pick(f *frame, in *instr) bool {
	n := m.nodes[in.bind]
	for f.cur < f.end {
		j := uint32(f.cur)
		f.cur++
		c := m.g.kid(n, int(j))
		if in.need != anything && m.g.classes[c].mask&in.need == 0 {
			continue
		}
		// Equal inputs are adjacent, because inputs are sorted. Exchanging them would give
		// the same match again, factorially often; so of a group of equals, the next one is allowed
		// only if the one before it was picked.
		used, before := false, false
		for p := in.arg; p >= 0; p = m.prev[p] {
			used = used || m.pos[p] == j
			before = before || j > 0 && m.pos[p] == j-1
		}
		if used || j > 0 && !before && m.g.kid(n, int(j)-1) == c {
			continue
		}
		m.pos[in.n] = j
		m.regs[in.out] = c
		return true
	}
	return false
}

// seek picks the input that equals a register and was not picked, if there is one.
func (m *matcher) seek(in *instr) bool {
	n, c := m.nodes[in.bind], m.regs[in.in]
	// The inputs are sorted, so the wanted one is found by bisection: in (add x y) where x is
	// known, that turns a loop over the inputs into a lookup.
	lo, end := 0, m.g.arity(n)
	for hi := end; lo < hi; {
		if mid := int(uint(lo+hi) / 2); m.g.kid(n, mid) < c {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	for ; lo < end && m.g.kid(n, lo) == c; lo++ {
		used := false
		for p := in.arg; p >= 0; p = m.prev[p] {
			used = used || m.pos[p] == uint32(lo)
		}
		if !used {
			m.pos[in.n], m.regs[in.out] = uint32(lo), c
			return true
		}
	}
	return false
}
