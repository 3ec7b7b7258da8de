package egraph

import (
	"fmt"
	"slices"
)

// goal is what an input of a node is to become: the term of a node, or what a step of a template
// makes of it.
type goal struct {
	node  uint32 // none: anything
	then  func(path []int, nested int) error
	final Term // after then; the term of node if then is nil
}

// nodes adds the moves from the term of a to that of b, at a place.
func (e *explainer) nodes(a, b uint32, path []int, nested int) error {
	if nested > maxNested {
		return fmt.Errorf("%w: it nests too deep", ErrExplain)
	}
	if e.term(a) == e.term(b) {
		return nil
	}
	// The way goes through terms that were said to be equal to their neighbours, each edge for a
	// reason of its own. All rewrites happen at this place or below it.
	up, down, ok := e.way(a, b)
	if !ok {
		return fmt.Errorf("%w: %s and %s are not known to be equal", ErrExplain, e.terms.String(e.term(a)), e.terms.String(e.term(b)))
	}
	for _, n := range up {
		if err := e.pass(n, e.edge[n], path, nested+1); err != nil {
			return err
		}
	}
	for _, n := range down {
		if err := e.pass(e.parent[n], e.edge[n], path, nested+1); err != nil {
			return err
		}
	}
	return nil
}

// pass adds the moves along an edge, from one of its ends.
func (e *explainer) pass(from, id uint32, path []int, nested int) error {
	d := e.g.proof.edges[id]
	// An edge is explained from a to b. If it is passed the other way, its moves are turned around
	// afterwards.
	start := len(e.moves)
	var err error
	switch d.why {
	case whyGiven:
		err = e.add(move{name: "given", id: -1, path: path, from: e.term(d.a), to: e.term(d.b)})
	case whyCongruent:
		// Congruence: the terms have the same op, and their inputs became equal before.
		goals := make([]goal, len(e.g.origin(d.b)))
		for i := range goals {
			goals[i].node = e.input(d.b, i)
		}
		err = e.reach(d.a, goals, e.term(d.b), id, path, nested)
	default:
		err = e.record(d, id, path, nested)
	}
	if from != d.a {
		e.reverse(start)
	}
	return err
}

// record adds the moves of a rule, or of a fold.
func (e *explainer) record(d edge, id uint32, path []int, nested int) error {
	why := e.g.proof.why[d.why-whyRecord:]
	head := why[2 : 2+why[1]]
	if why[0] == none {
		goals := make([]goal, len(head))
		args := make([]Term, len(head))
		for i, n := range head {
			goals[i].node, args[i] = n, e.term(n)
		}
		from := e.terms.Make(e.g.Op(Node(d.a)), args...)
		if err := e.reach(d.a, goals, from, id, path, nested); err != nil {
			return err
		}
		return e.add(move{name: "fold", id: -1, path: path, from: from, to: e.term(d.b)})
	}
	k := &instance{e: e, c: &e.r.cases[why[0]], slots: head, edge: id}
	trail := why[3+len(head) : 3+len(head)+int(why[2+len(head)])]
	k.read(trail)
	// Three parts: the term of the root is turned into an instance of the pattern; the rule is
	// applied to it; and what it made, literally, is turned into the term of the node that was
	// made. The last part is derived in the other direction and then reversed, because ways begin
	// at terms of nodes.
	left, err := k.pattern(d.a, path, nested)
	if err != nil {
		return err
	}
	right, err := k.replacement()
	if err != nil {
		return err
	}
	if err := e.add(move{id: int(why[0]), path: path, from: left, to: right.final}); err != nil {
		return err
	}
	at := len(e.moves)
	if err := e.nodes(d.b, right.node, path, nested); err != nil {
		return err
	}
	if right.then != nil {
		if err := right.then(path, nested); err != nil {
			return err
		}
	}
	e.reverse(at)
	return nil
}

// reach adds the moves that turn the inputs of the term of a node into goals. If its op commutes,
// an input gets the first goal that it was known to be equal to before an edge, and a last move
// puts them in the order of the term to, the result.
func (e *explainer) reach(n uint32, goals []goal, to Term, before uint32, path []int, nested int) error {
	kids := e.g.origin(n)
	if len(kids) != len(goals) {
		return fmt.Errorf("%w: %d inputs for %d", ErrExplain, len(kids), len(goals))
	}
	at, err := e.assign(n, goals, before)
	if err != nil {
		return err
	}
	args := make([]Term, len(kids))
	for i := range kids {
		from := e.input(n, i)
		goal := goals[at[i]]
		args[i] = e.term(from)
		if goal.node == none {
			continue
		}
		place := append(slices.Clip(path), i)
		if err := e.nodes(from, goal.node, place, nested+1); err != nil {
			return err
		}
		args[i] = e.term(goal.node)
		if goal.then != nil {
			if err := goal.then(place, nested+1); err != nil {
				return err
			}
			args[i] = goal.final
		}
	}
	now := e.terms.Make(e.g.Op(Node(n)), args...)
	return e.add(move{name: "commutes", id: -1, path: path, from: now, to: to})
}

// assign returns which goal each input of a node gets.
func (e *explainer) assign(n uint32, goals []goal, before uint32) ([]int, error) {
	at := make([]int, len(goals))
	for i := range at {
		at[i] = i
	}
	if !e.g.lang.sigs[e.g.ops[e.g.nodes[n].op()].sym].Commutes {
		return at, nil
	}
	free := make([]bool, len(goals))
	for i := range free {
		at[i], free[i] = -1, true
	}
	// The inputs of a term are in the order in which it was made, and the goals in that of
	// another. Equal by now are too many: an input gets a goal only if both were equal before this
	// edge, as they were when it was added.
	for pass := range 2 { // what may become anything comes last
		for k, goal := range goals {
			if (goal.node == none) != (pass == 1) {
				continue
			}
			found := false
			for i := range goals {
				if free[i] && (goal.node == none || e.joined(e.input(n, i), goal.node, before)) {
					at[i], free[i], found = k, false, true
					break
				}
			}
			if !found {
				return nil, fmt.Errorf("%w: an input has no counterpart", ErrExplain)
			}
		}
	}
	return at, nil
}

// choice adds the moves from the term of a node to the term that is chosen for its class.
func (e *explainer) choice(a uint32, c *Choice, path []int, nested int) error {
	if nested > maxNested {
		return fmt.Errorf("%w: it nests too deep", ErrExplain)
	}
	n := uint32(c.Node(e.g.Class(Node(a))))
	if err := e.nodes(a, n, path, nested+1); err != nil {
		return err
	}
	for i := range e.g.origin(n) {
		if err := e.choice(e.input(n, i), c, append(slices.Clip(path), i), nested+1); err != nil {
			return err
		}
	}
	return nil
}

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
