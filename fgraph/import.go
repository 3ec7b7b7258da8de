package fgraph

import "fmt"

// step is a position on the path of a depth-first search: input next of a is visited next.
type step struct {
	a    *Apply
	next int
}

// importFor imports v and everything it depends on. On an error the graph is unchanged.
func (g *FunctionGraph) importFor(v *Variable, why Reason) error {
	if v == nil {
		return fmt.Errorf("%w: nil variable", ErrInvalid)
	}
	if v.owner == nil {
		return g.checkLeaf(v, nil, 0)
	}
	if v.owner.graph == g {
		return nil
	}
	if v.owner.graph != nil {
		return fmt.Errorf("%v %w", v, ErrForeign)
	}
	// Two phases: discover refuses everything that is wrong without changing the graph, and
	// importing what it found can then not fail.
	fresh, err := g.discover(v.owner)
	if err != nil {
		return err
	}
	g.importAll(fresh, why)
	return nil
}

// importNext imports an apply whose operands are in the graph or constants.
func (g *FunctionGraph) importNext(a *Apply) error {
	if a == nil || a.graph != nil {
		return fmt.Errorf("%w: an apply that is nil, listed twice or in another graph", ErrInvalid)
	}
	fresh, err := g.discover(a)
	if err == nil && len(fresh) > 1 {
		err = fmt.Errorf("%w: %v is listed before what it depends on", ErrInvalid, a)
		for _, b := range fresh {
			b.id = outside
		}
		clear(fresh)
		g.fresh = fresh[:0]
	}
	if err != nil {
		return err
	}
	g.importAll(fresh, initial)
	return nil
}

// importAll imports what discover found.
func (g *FunctionGraph) importAll(fresh []*Apply, why Reason) {
	by := g.number(why)
	for _, a := range fresh {
		// Inputs come before clients in the list, so when an apply is announced, everything that it
		// reads has been.
		g.link(a)
		a.by = by
		for i, v := range a.inputs {
			g.addClient(v, Client{a, i})
		}
		g.note(edit{kind: editImport, a: a})
		g.fireImport(a, why)
	}
	clear(fresh)
	g.fresh = fresh[:0]
}

// checkLeaf returns an error if v, which has no owner, can't be read in the graph: by input i of
// client, or directly if client is nil.
func (g *FunctionGraph) checkLeaf(v *Variable, client *Apply, i int) error {
	switch {
	case v.leaf.graph == g:
		return nil
	case v.typ == nil:
		return fmt.Errorf("%w: variable %q has no type", ErrInvalid, v.leaf.name)
	case v.leaf.constant && v.leaf.graph == nil:
		return nil
	case v.leaf.graph != nil:
		return fmt.Errorf("%v %w", v, ErrForeign)
	}
	used := ""
	if client != nil {
		used = fmt.Sprintf(", used as input %d of %v", i, client)
	}
	return fmt.Errorf("%w %v%s: it is neither an input of the graph nor a constant", ErrMissingInput, v, used)
}

// discover returns a and the applies it depends on that have no graph yet, inputs before
// clients.
func (g *FunctionGraph) discover(a *Apply) (fresh []*Apply, err error) {
	// A depth-first search with the path on the heap. Numbers that applies outside of graphs don't
	// use mark the state of each: onPath, found. So visiting costs no table, and the marks are
	// taken back on an error.
	fresh = g.fresh[:0]
	path := g.path[:0]
	push := func(a *Apply) error {
		if err := g.checkOp(a.op); err != nil {
			return err
		}
		for i, v := range a.outputs {
			if v.typ == nil {
				return fmt.Errorf("%w: output %d of %v has no type", ErrInvalid, i, a.op)
			}
		}
		if err := g.unwatched(a.op); err != nil {
			return err
		}
		a.id = onPath
		path = append(path, step{a: a})
		return nil
	}
	err = push(a)
	for len(path) > 0 && err == nil {
		top := &path[len(path)-1]
		if top.next == len(top.a.inputs) {
			top.a.id = found
			fresh = append(fresh, top.a)
			path = path[:len(path)-1]
			continue
		}
		i := top.next
		top.next++
		v := top.a.inputs[i]
		switch {
		case v == nil:
			err = fmt.Errorf("%w: input %d of %v is nil", ErrInvalid, i, top.a.op)
		case v.owner == nil:
			err = g.checkLeaf(v, top.a, i)
		case v.owner.graph == g || v.owner.id == found:
		case v.owner.graph != nil:
			err = fmt.Errorf("%v, input %d of %v, %w", v, i, top.a.op, ErrForeign)
		// It is still on the path, so it needs itself. Applies are made before what reads them, so
		// only code that changes inputs of applies can build this.
		case v.owner.id == onPath:
			err = fmt.Errorf("%w: %v depends on itself", ErrCycle, v.owner.op)
		default:
			err = push(v.owner)
		}
	}
	if err != nil {
		for _, s := range path {
			s.a.id = outside
		}
		for _, a := range fresh {
			a.id = outside
		}
		clear(fresh)
		fresh = fresh[:0]
	}
	clear(path)
	g.path, g.fresh = path[:0], fresh
	return fresh, err
}

// unwatched returns an error if a pass brings in an op that overwrites an input while no
// [DestroyHandler] is attached to check it.
func (g *FunctionGraph) unwatched(op Op) error {
	if g.handled || g.pass == "" {
		return nil
	}
	if d, ok := op.(Destroyer); ok {
		if m := d.DestroyMap(); len(m) > 0 {
			return fmt.Errorf("%w: %v overwrites its input %d", ErrNoHandler, op, m[0].Input)
		}
	}
	return nil
}

// link assigns a its numbers and its place in the order. The inputs of a must be in the graph or
// constants; a does not become their client yet. Nothing in the graph depends on a, so any place
// after its inputs is valid. The one right after them avoids a search when a replaces another
// apply.
func (g *FunctionGraph) link(a *Apply) {
	a.id, a.graph = g.newApply(a), g
	for _, v := range a.outputs {
		v.id = g.newVariable(v)
	}
	if g.building {
		g.order.insertLast(a.id)
	} else {
		g.order.insertAfterInputs(a)
	}
	if g.opNumbers.counting {
		g.countOp(a, 1)
	}
}

// unlink undoes link. It frees numbers in reverse order, so that later applies get the same
// numbers as if the undone change had never been made.
func (g *FunctionGraph) unlink(a *Apply) {
	if g.opNumbers.counting {
		g.countOp(a, -1)
	}
	for i := len(a.outputs) - 1; i >= 0; i-- {
		v := a.outputs[i]
		g.releaseVariable(v.id)
		v.id = outside
	}
	g.order.remove(a.id)
	g.releaseApply(a.id)
	a.id, a.graph, a.opNumber = outside, nil, 0
}
