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
	right := k.replacement()
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
