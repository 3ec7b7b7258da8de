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
func (k *instance) replacement() (goal, error) {
	t := &k.c.make
	values := make([]goal, t.values)
	for i, s := range k.c.slots {
		if !s.param && !s.node {
			values[i] = k.slot(i)
		}
	}
	for i := range t.steps {
		if err := k.step(&t.steps[i], values); err != nil {
			return goal{}, err
		}
	}
	v := values[t.slot]
	if k.e.g.lang.types.Conform != nil {
		v = k.hooked([]goal{v}, false)
	}
	if v.then == nil {
		v.final = k.e.term(v.node)
	}
	return v, nil
}

// step computes the goal of a step, as applier.step does its value.
func (k *instance) step(s *step, values []goal) error {
	var goals []goal
	for i := range s.args {
		a := &s.args[i]
		switch {
		case a.rest < 0 && a.elems == nil:
			goals = append(goals, values[a.value])
		case a.rest >= 0:
			for _, c := range k.rests[a.rest] {
				goals = append(goals, goal{node: c})
			}
		default:
			for j := range k.rests[a.elems[0].rest] {
				for _, x := range a.elems {
					values[x.value] = goal{node: k.rests[x.rest][j]}
				}
				for i := range a.each {
					if err := k.step(&a.each[i], values); err != nil {
						return err
					}
				}
				goals = append(goals, values[a.value])
			}
		}
	}
	switch s.kind {
	case makesNode:
	case makesAll:
		for i := range k.c.slots {
			if !k.c.slots[i].param {
				goals = append(goals, k.slot(i))
			}
		}
		for _, r := range k.rests {
			for _, n := range r {
				goals = append(goals, goal{node: n})
			}
		}
		fallthrough
	default:
		values[s.value] = k.hooked(goals, s.kind == makesAll)
		return nil
	}
	n := k.trail[0]
	k.trail = k.trail[1:]
	switch {
	case n != none && s.flat && len(goals) == 0:
		values[s.value] = goal{node: n}
		return nil
	case n == none:
		values[s.value] = goals[0]
		return nil
	}
	values[s.value] = k.goalOf(n, goals)
	return nil
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

// hooked returns the goal for what a function of the language made, given the goals of its
// arguments.
func (k *instance) hooked(goals []goal, maker bool) goal {
	n, args := k.trail[0], k.trail[2:2+k.trail[1]]
	k.trail = k.trail[2+len(args):]
	if maker {
		list := k.trail[1 : 1+k.trail[0]]
		k.trail = k.trail[1+len(list):]
		if len(list) > 0 {
			return k.built(list)
		}
	}
	for i, c := range args {
		if c == n {
			return goals[i]
		}
	}
	visits := maxEmbedded
	g, _ := k.embed(n, args, goals, &visits)
	return g
}

// maxEmbedded bounds the nodes in which arguments are looked for, in what a function made of them.
const maxEmbedded = 64

// embed returns the goal for a node that a function made of classes: inside, their terms become
// what they are in the instance. It reports whether there are any.
func (k *instance) embed(n uint32, args []uint32, goals []goal, visits *int) (goal, bool) {
	*visits--
	kids := k.e.g.origin(n)
	inner := make([]goal, len(kids))
	used := make([]bool, len(args))
	found := false
	for i := range kids {
		m := k.e.input(n, i)
		at := -1
		for j, c := range args {
			if !k.e.joined(m, c, k.edge) {
				continue
			}
			if at < 0 || used[at] && !used[j] || j == i {
				at = j
			}
		}
		if at >= 0 {
			used[at], found = true, true
			inner[i] = goals[at]
			continue
		}
		if w := k.e.g.witness(k.e.g.nodes[m].class); w != m && k.e.g.nodes[w].shape() == 0 && k.e.joined(m, w, k.edge) {
			inner[i].node, found = w, true
			continue
		}
		inner[i].node = m
		if *visits > 0 {
			if g, ok := k.embed(m, args, goals, visits); ok {
				inner[i], found = g, true
			}
		}
	}
	if !found {
		return goal{node: n}, false
	}
	return k.goalOf(n, inner), true
}
