package egraph

// instance is a match of a case that an edge remembers.
type instance struct {
	e     *explainer
	c     *caseInfo
	slots []uint32
	edge  uint32
	binds []uint32
	rests [][]uint32
	trail []uint32 // of the steps that are left
}

func (k *instance) read(trail []uint32) {
	k.binds = trail[:k.c.binds]
	trail = trail[k.c.binds+k.c.picks:]
	for range k.c.rests {
		n := trail[0]
		k.rests = append(k.rests, trail[1:1+n])
		trail = trail[1+n:]
	}
	k.trail = trail
}

// slot returns the goal of a name.
func (k *instance) slot(i int) goal {
	s := &k.c.slots[i]
	if s.bind >= 0 {
		return k.shape(s.bind, k.binds[s.bind])
	}
	return goal{node: k.slots[i]}
}

// pattern adds the moves from the term of the root to an instance of the pattern, which it returns.
func (k *instance) pattern(root uint32, path []int, nested int) (Term, error) {
	if k.c.bare {
		slot := k.slots[0]
		return k.e.term(slot), k.e.nodes(root, slot, path, nested)
	}
	g := k.shape(0, root)
	var err error
	if g.then != nil {
		err = g.then(path, nested)
	}
	return g.final, err
}

// shape returns the goal for a node of the pattern.
func (k *instance) shape(bind int, n uint32) goal {
	s := &k.c.nodes[bind]
	var goals []goal
	var args []Term
	for _, a := range s.args {
		goals = append(goals, k.arg(a))
	}
	if s.rest >= 0 {
		for _, c := range k.rests[s.rest] {
			goals = append(goals, goal{node: c})
		}
	}
	for len(goals) < len(k.e.g.origin(n)) {
		goals = append(goals, goal{node: none})
	}
	order, err := k.e.assign(n, goals, k.edge)
	for i := range order {
		g := goals[order[max(i, 0)]]
		switch {
		case g.node == none:
			args = append(args, k.e.term(k.e.input(n, i)))
		case g.then != nil:
			args = append(args, g.final)
		default:
			args = append(args, k.e.term(g.node))
		}
	}
	if err != nil {
		return goal{node: n, then: func([]int, int) error { return err }}
	}
	final := k.e.terms.Make(k.e.g.Op(Node(n)), args...)
	return goal{node: n, final: final, then: func(path []int, nested int) error {
		return k.e.reach(n, goals, final, k.edge, path, nested)
	}}
}

func (k *instance) arg(a shapeArg) goal {
	switch {
	case a.node > 0:
		return k.shape(a.node, k.binds[a.node])
	case a.slot >= 0:
		return k.slot(a.slot)
	case a.leaf != noOp:
		return goal{node: k.e.g.lookup(a.leaf, nil)}
	}
	return goal{node: none}
}

// replacement returns the goal for the replacement: the node that it is, and what becomes of it.
func (k *instance) replacement() goal {
	t := &k.c.make
	values := make([]goal, t.values)
	for i, s := range k.c.slots {
		if !s.param && !s.node {
			values[i] = k.slot(i)
		}
	}
	for i := range t.steps {
		values[t.steps[i].value] = k.step(&t.steps[i], values)
	}
	v := values[t.slot]
	if v.then == nil {
		v.final = k.e.term(v.node)
	}
	return v
}

// step returns the goal of a step, as applier.step finds its value.
func (k *instance) step(s *step, values []goal) goal {
	n := k.trail[0]
	k.trail = k.trail[1:]
	if s.make != nil {
		list := k.trail[1 : 1+k.trail[0]]
		k.trail = k.trail[1+len(list):]
		if len(list) > 0 {
			return k.built(list)
		}
		return goal{node: n}
	}
	var goals []goal
	for _, a := range s.args {
		if a.rest < 0 {
			goals = append(goals, values[a.value])
			continue
		}
		for _, c := range k.rests[a.rest] {
			goals = append(goals, goal{node: c})
		}
	}
	return k.goalOf(n, goals)
}

// goalOf returns the goal for a node whose inputs have goals.
func (k *instance) goalOf(n uint32, goals []goal) goal {
	args := make([]Term, len(goals))
	for i, g := range goals {
		if args[i] = g.final; g.then == nil {
			args[i] = k.e.term(g.node)
		}
	}
	final := k.e.terms.Make(k.e.g.Op(Node(n)), args...)
	return goal{node: n, final: final, then: func(path []int, nested int) error {
		return k.e.reach(n, goals, final, k.edge, path, nested)
	}}
}
