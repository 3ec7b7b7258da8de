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
	args   []Class
	params []any
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
	a.match = Match{a, c, id, root}
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
	conform := g.lang.types.Conform
	last := len(t.steps) - 1
	// Where replacements conform, the type decides which class the result is in; so it can't be put
	// into that of the root before.
	if last < 0 || conform != nil {
		for i := range t.steps {
			if _, ok := a.step(&t.steps[i], into, none); !ok {
				return false
			}
		}
		return a.unite(id, c, root, into, a.values[t.slot])
	}
	// All steps but the last make parts. The last one makes the whole, and a new node for that is
	// put into the class of the root at once. A class of its own would be united with that in the
	// next moment, which costs a class and a repair, and marks more nodes as touched than are new.
	for i := range t.steps[:last] {
		if _, ok := a.step(&t.steps[i], into, none); !ok {
			return false
		}
	}
	before := len(g.nodes)
	n, ok := a.step(&t.steps[last], into, into)
	if !ok {
		return false
	}
	if n == none {
		return a.unite(id, c, root, into, a.values[t.slot])
	}
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

// unite says that the root equals a class that exists, or what conforms it.
func (a *applier) unite(id int, c *caseInfo, root, into, class uint32) bool {
	g := a.g
	if f := g.lang.types.Conform; f != nil {
		a.args = append(a.args[:0], Class(class))
		k, ok := a.hook(a.args, func() (Class, bool) { return f(g, Class(class), Class(g.find(into))) })
		if !ok {
			return false
		}
		class = k
	}
	if g.find(into) == g.find(class) {
		return false
	}
	a.record(id, c, root, g.classes[class].first)
	return g.union(into, class)
}

// hook calls a function that makes a class, and remembers which node it made of which classes.
func (a *applier) hook(args []Class, f func() (Class, bool)) (uint32, bool) {
	g := a.g
	if g.proof == nil {
		c, ok := f()
		if !ok {
			return 0, false
		}
		return g.find(uint32(c)), true
	}
	at := len(a.trail)
	a.trail = append(a.trail, none, uint32(len(args)))
	for _, k := range args {
		a.trail = append(a.trail, g.witness(uint32(k)))
	}
	// Explanations show the node that the function added, if that is its result. If it found a
	// class, they show the node that the class was made for.
	g.added = none
	c, ok := f()
	if !ok {
		return 0, false
	}
	n := g.classes[c].first
	if g.added != none && g.find(g.nodes[g.added].class) == g.find(uint32(c)) {
		n = g.added
	}
	a.trail[at] = n
	return g.find(uint32(c)), true
}

// record remembers why the class of a node is that of the root: nodes represent classes.
func (a *applier) record(id int, c *caseInfo, root, made uint32) {
	if a.g.proof == nil {
		return
	}
	a.shown = a.shown[:0]
	for i := range c.slots {
		a.shown = append(a.shown, a.show(&c.slots[i], i))
	}
	a.g.proof.rule(root, made, id, a.shown, a.trail)
}

// show returns what represents a slot in records.
func (a *applier) show(s *slot, i int) uint32 {
	switch {
	case s.param, s.node:
		return a.values[i]
	case s.number >= 0:
		return a.values[s.number]
	}
	return a.g.witness(a.values[i])
}

// witness returns the node that represents a class in records.
func (g *Graph) witness(c uint32) uint32 {
	if f := g.lang.types.Witness; f != nil {
		return uint32(f(g, Class(g.find(c))))
	}
	return g.classes[c].first
}

// makeAll carries out a step that makes the whole replacement.
func (a *applier) makeAll(s *step) (uint32, bool) {
	g := a.g
	n, ok := s.make(g, &a.match)
	if !ok {
		return none, false
	}
	a.values[s.value] = g.find(g.nodes[n].class)
	if g.proof == nil {
		return uint32(n), true
	}
	at := len(a.trail)
	a.trail = append(a.trail, uint32(n), 0)
	for i := range a.match.c.slots {
		if k := &a.match.c.slots[i]; !k.param {
			a.trail = append(a.trail, a.show(k, i))
		}
	}
	for i := range a.match.c.rests {
		for _, k := range a.rests[i] {
			a.trail = append(a.trail, g.witness(k))
		}
	}
	a.trail[at+1] = uint32(len(a.trail) - at - 2)
	if f := g.lang.types.Built; f != nil {
		a.trail = a.match.builtTrail(a.trail, f(g))
	} else {
		a.trail = append(a.trail, 0)
	}
	return uint32(n), true
}

// step carries out a step. It returns the node made or found, or none if the value is a class only,
// and false if the rule proposes nothing.
func (a *applier) step(s *step, like, into uint32) (uint32, bool) {
	g := a.g
	var n uint32
	if s.kind == makesAll {
		return a.makeAll(s)
	}
	// Most steps make an op of one or two inputs without parameters. They need no list of inputs.
	if s.plain {
		switch len(s.args) {
		case 0:
			n = g.insertSmall(uint32(s.op), 0, 0, into)
		case 1:
			n = g.insertSmall(uint32(s.op)|1<<shapeBits, g.find(a.values[s.args[0].value]), 0, into)
		default:
			x, y := g.find(a.values[s.args[0].value]), g.find(a.values[s.args[1].value])
			if y < x && s.sorts {
				x, y = y, x
			}
			n = g.insertSmall(uint32(s.op)|2<<shapeBits, x, y, into)
		}
	} else {
		kids, ok := a.gather(s, like)
		if !ok {
			return none, false
		}
		if s.kind != makesNode {
			return none, a.call(s, like, kids)
		}
		op, ok := a.op(s)
		if !ok {
			return none, false
		}
		if s.flat && len(kids) == 1 {
			a.values[s.value] = kids[0]
			a.note(none)
			return none, true
		}
		if s.flat && len(kids) == 0 && s.unit != NoUnit {
			op = s.unit
		}
		n = g.insert(op, kids, into)
	}
	a.values[s.value] = g.find(g.nodes[n].class)
	a.note(n)
	return n, true
}

// note remembers which node a step made.
func (a *applier) note(n uint32) {
	if a.g.proof != nil {
		a.trail = append(a.trail, n)
	}
}

// call carries out a step that a function of the language does.
func (a *applier) call(s *step, like uint32, kids []uint32) bool {
	g := a.g
	base := len(a.args)
	defer func() { a.args = a.args[:base] }()
	for _, k := range kids {
		a.args = append(a.args, Class(k))
	}
	args := a.args[base:]
	into := Class(g.find(like))
	c, ok := a.hook(args, func() (Class, bool) {
		switch s.kind {
		case calls:
			return s.call(g, Args{Root: Node(a.match.root), Classes: args})
		case makesTyped:
			op, ok := a.op(s)
			if !ok {
				return 0, false
			}
			return g.lang.types.Make(g, op, args, into)
		}
		l, ok := s.literal, true
		if s.calc != nil {
			l, ok = s.calc.value(g, a.values)
		}
		if s.like >= 0 {
			into = Class(g.find(a.values[s.like]))
		}
		if !ok {
			return 0, false
		}
		return g.constantOf(l, into)
	})
	a.values[s.value] = c
	return ok
}

// gather returns the inputs of a step.
func (a *applier) gather(s *step, like uint32) ([]uint32, bool) {
	base := len(a.kids)
	defer func() { a.kids = a.kids[:base] }()
	for i := range s.args {
		x := &s.args[i]
		switch {
		case x.rest < 0 && x.elems == nil:
			a.kids = append(a.kids, a.g.find(a.values[x.value]))
		case x.rest >= 0:
			for _, k := range a.rests[x.rest] {
				a.kids = append(a.kids, a.g.find(k))
			}
		default:
			for j := range a.rests[x.elems[0].rest] {
				if !a.each(x, j, like) {
					return nil, false
				}
				a.kids = append(a.kids, a.g.find(a.values[x.value]))
			}
		}
	}
	return a.kids[base:], true
}

// each makes an expression of the inputs j of rests.
func (a *applier) each(x *arg, j int, like uint32) bool {
	for _, e := range x.elems {
		if len(a.rests[e.rest]) != len(a.rests[x.elems[0].rest]) {
			return false
		}
		a.values[e.value] = a.g.find(a.rests[e.rest][j])
	}
	for k := range x.each {
		if _, ok := a.step(&x.each[k], like, none); !ok {
			return false
		}
	}
	return true
}

// op returns the op of a step.
func (a *applier) op(s *step) (Op, bool) {
	if s.op != noOp {
		return s.op, true
	}
	g := a.g
	if s.param == nil {
		return g.Intern(s.sym, g.ops[a.values[s.params[0].slot]].param), true
	}
	from := Args{Root: Node(a.match.root), Params: a.params[:0]}
	for _, p := range s.params {
		switch {
		case p.slot < 0:
			for _, k := range a.rests[p.rest] {
				from.Classes = append(from.Classes, Class(g.find(k)))
			}
		case a.match.c.slots[p.slot].param:
			from.Params = append(from.Params, g.ops[a.values[p.slot]].param)
		default:
			from.Classes = append(from.Classes, Class(g.find(a.values[p.slot])))
		}
	}
	a.params = from.Params
	p, ok := s.param(g, from)
	if !ok {
		return 0, false
	}
	return g.Intern(s.sym, p), true
}
