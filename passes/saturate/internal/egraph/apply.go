package egraph

// applier makes what matches propose.
type applier struct {
	g      *Graph
	r      *Rules
	values []uint32
	rests  [][]uint32
	kids   []uint32
	trail  []uint32
	shown  []uint32
	made   uint32 // the node of the last step
	match  Match
}

func newApplier(g *Graph, r *Rules) *applier {
	a := &applier{g: g, r: r}
	values, rests := 0, 0
	for i := range r.cases {
		values, rests = max(values, r.cases[i].make.values), max(rests, len(r.cases[i].rests))
	}
	a.values, a.rests = make([]uint32, values+1), make([][]uint32, rests)
	return a
}

// apply applies a case to a match, and reports whether the graph changed.
func (a *applier) apply(id int, rec []uint32) bool {
	g, c := a.g, &a.r.cases[id]
	root := rec[0]
	into := g.find(g.nodes[root].class)
	a.match = Match{a, c, root}
	for i, s := range c.slots {
		v := rec[1+i]
		if !s.param && !s.node {
			// Applying earlier matches of this lap may have united classes of this one. The match
			// holds all the same: what equals its classes now equals what the pattern matched.
			v = g.find(v)
		}
		a.values[i] = v
	}
	for i := range c.rests {
		kept := rec[1+len(c.slots):]
		a.rests[i] = g.appendRest(a.rests[i][:0], &c.rests[i], kept[:c.binds], kept[c.binds:])
	}
	if g.proof != nil {
		// Explanations need the nodes that the pattern matched and those that represent the inputs
		// of rests, as they are now: later, their classes have more nodes, by reasons that come
		// after this match.
		a.trail = append(a.trail[:0], rec[1+len(c.slots):]...)
		for i := range c.rests {
			a.trail = append(a.trail, uint32(len(a.rests[i])))
			for _, k := range a.rests[i] {
				a.trail = append(a.trail, g.witness(k))
			}
		}
	}
	t := &c.make
	last := len(t.steps) - 1
	if last < 0 {
		class := a.values[t.slot]
		if into == class {
			return false
		}
		a.record(id, c, root, g.classes[class].first)
		return g.union(into, class)
	}
	// All steps but the last make parts. The last one makes the whole, and a new node for that is
	// put into the class of the root at once. A class of its own would be united with that in the
	// next moment, which costs a class and a repair, and marks more nodes as touched than are new.
	for i := range t.steps[:last] {
		if !a.step(&t.steps[i], none) {
			return false
		}
	}
	before := len(g.nodes)
	if !a.step(&t.steps[last], into) {
		return false
	}
	n := a.made
	// Whether a node is new is seen by its number: what the graph had already is returned with the
	// class that it has.
	if len(g.nodes) > before && g.nodes[n].class == into {
		a.record(id, c, root, n)
		return true
	}
	if g.find(g.nodes[n].class) == g.find(into) {
		return false
	}
	a.record(id, c, root, n)
	return g.union(into, g.nodes[n].class)
}

// record remembers why the class of a node is that of the root: nodes represent classes.
func (a *applier) record(id int, c *caseInfo, root, made uint32) {
	if a.g.proof == nil {
		return
	}
	a.shown = a.shown[:0]
	for i, s := range c.slots {
		if v := a.values[i]; s.param || s.node {
			a.shown = append(a.shown, v)
		} else {
			a.shown = append(a.shown, a.g.witness(v))
		}
	}
	a.g.proof.rule(root, made, id, a.shown, a.trail)
}

// witness returns the node that represents a class in records.
func (g *Graph) witness(c uint32) uint32 {
	if f := g.lang.types.Witness; f != nil {
		return uint32(f(g, Class(g.find(c))))
	}
	return g.classes[c].first
}

// makeAll carries out a step that makes the whole replacement.
func (a *applier) makeAll(s *step) bool {
	g := a.g
	n, ok := s.make(g, &a.match)
	if !ok {
		return false
	}
	a.keep(s, uint32(n))
	if g.proof != nil {
		if f := g.lang.types.Built; f != nil {
			a.trail = a.match.builtTrail(a.trail, f(g))
		} else {
			a.trail = append(a.trail, 0)
		}
	}
	return true
}

// step carries out a step, and puts a new node into a class. It returns false if the rule proposes
// nothing.
func (a *applier) step(s *step, into uint32) bool {
	g := a.g
	var n uint32
	switch {
	case s.make != nil:
		return a.makeAll(s)
	// Most steps make an op of one or two inputs without parameters. They need no list of inputs.
	case s.plain && len(s.args) == 0:
		n = g.insertSmall(uint32(s.op), 0, 0, into)
	case s.plain && len(s.args) == 1:
		n = g.insertSmall(uint32(s.op)|1<<shapeBits, g.find(a.values[s.args[0].value]), 0, into)
	case s.plain:
		x, y := g.find(a.values[s.args[0].value]), g.find(a.values[s.args[1].value])
		if y < x && s.sorts {
			x, y = y, x
		}
		n = g.insertSmall(uint32(s.op)|2<<shapeBits, x, y, into)
	default:
		op := s.op
		if op == noOp {
			op = g.Intern(s.sym, g.ops[a.values[s.param]].param)
		}
		n = g.insert(op, a.gather(s), into)
	}
	a.keep(s, n)
	return true
}

// keep notes which node a step made or found, also for explanations.
func (a *applier) keep(s *step, n uint32) {
	a.made = n
	a.values[s.value] = a.g.find(a.g.nodes[n].class)
	if a.g.proof != nil {
		a.trail = append(a.trail, n)
	}
}

// gather returns the inputs of a step.
func (a *applier) gather(s *step) []uint32 {
	a.kids = a.kids[:0]
	for _, x := range s.args {
		if x.rest < 0 {
			a.kids = append(a.kids, a.g.find(a.values[x.value]))
			continue
		}
		for _, k := range a.rests[x.rest] {
			a.kids = append(a.kids, a.g.find(k))
		}
	}
	return a.kids
}
