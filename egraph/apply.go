package egraph

// applier makes what matches propose.
type applier struct {
	g      *Graph
	r      *Rules
	values []uint32
	rests  [][]uint32
	kids   []uint32
	trail  []uint32
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
		if !s.param {
			v = g.find(v)
		}
		a.values[i] = v
	}
	for i := range c.rests {
		a.fill(c, i, rec[1+len(c.slots):])
	}
	if g.proof != nil {
		a.trail = append(a.trail[:0], rec[1+len(c.slots):]...)
		for i := range c.rests {
			a.trail = append(append(a.trail, uint32(len(a.rests[i]))), a.rests[i]...)
		}
	}
	t := &c.make
	last := len(t.steps) - 1
	if last < 0 {
		return a.unite(id, c, root, into, a.values[t.slot])
	}
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
		return a.unite(id, c, root, into, a.values[t.steps[last].value])
	}
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

// unite says that the root equals a class that exists.
func (a *applier) unite(id int, c *caseInfo, root, into, class uint32) bool {
	g := a.g
	if g.find(into) == g.find(class) {
		return false
	}
	a.record(id, c, root, g.classes[class].first)
	return g.union(into, class)
}

func (a *applier) record(id int, c *caseInfo, root, made uint32) {
	if a.g.proof != nil {
		a.g.proof.rule(root, made, id, a.values[:len(c.slots)], a.trail)
	}
}

// fill finds the inputs that a rest stands for.
func (a *applier) fill(c *caseInfo, i int, kept []uint32) {
	r := &c.rests[i]
	list := a.rests[i][:0]
	nodes, pos := kept[:c.binds], kept[c.binds:]
	kids := a.g.kidsOf(nodes[r.bind])
	if r.from >= 0 {
		a.rests[i] = append(list, kids[r.from:]...)
		return
	}
next:
	for j, k := range kids {
		for _, p := range r.picks {
			if pos[p] == uint32(j) {
				continue next
			}
		}
		list = append(list, k)
	}
	a.rests[i] = list
}

// step carries out a step. It returns the node made or found, or none if the value is a class only,
// and false if the rule proposes nothing.
func (a *applier) step(s *step, like, into uint32) (uint32, bool) {
	g := a.g
	var n uint32
	if s.make != nil {
		made, ok := s.make(g, &a.match)
		if !ok {
			return none, false
		}
		n = uint32(made)
	} else if s.plain {
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
		if s.call != nil {
			a.args = a.args[:0]
			for _, k := range kids {
				a.args = append(a.args, Class(k))
			}
			c, ok := s.call(g, Class(g.find(like)), a.args)
			a.values[s.value] = g.find(uint32(c))
			a.trail = append(a.trail, g.classes[c].first)
			return none, ok
		}
		op, ok := a.op(s)
		if !ok {
			return none, false
		}
		if s.flat && len(kids) == 1 {
			a.values[s.value] = kids[0]
			a.trail = append(a.trail, none)
			return none, true
		}
		if s.flat && len(kids) == 0 {
			op = s.unit
		}
		n = g.insert(op, kids, into)
	}
	a.values[s.value] = g.find(g.nodes[n].class)
	if g.proof != nil {
		a.trail = append(a.trail, n)
	}
	return n, true
}

// gather returns the inputs of a step.
func (a *applier) gather(s *step, like uint32) ([]uint32, bool) {
	base := len(a.kids)
	defer func() { a.kids = a.kids[:base] }()
	for i := range s.args {
		x := &s.args[i]
		switch {
		case x.rest < 0:
			a.kids = append(a.kids, a.g.find(a.values[x.value]))
		case x.each == nil:
			for _, k := range a.rests[x.rest] {
				a.kids = append(a.kids, a.g.find(k))
			}
		default:
			elem := x.each[len(x.each)-1].value
			for j := range a.rests[x.rest] {
				a.values[elem] = a.g.find(a.rests[x.rest][j])
				for k := range x.each[:len(x.each)-1] {
					if _, ok := a.step(&x.each[k], like, none); !ok {
						return nil, false
					}
				}
				a.kids = append(a.kids, a.g.find(a.values[x.value]))
			}
		}
	}
	return a.kids[base:], true
}

// op returns the op of a step.
func (a *applier) op(s *step) (Op, bool) {
	if s.op != noOp {
		return s.op, true
	}
	g := a.g
	a.params = a.params[:0]
	for _, i := range s.params {
		a.params = append(a.params, g.ops[a.values[i]].param)
	}
	if s.param == nil {
		return g.Intern(s.sym, a.params[0]), true
	}
	p, ok := s.param(a.params)
	return g.Intern(s.sym, p), ok
}
