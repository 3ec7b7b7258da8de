package fgraph

import "fmt"

// consistent decides by definition whether everything that is destroyed may be: each destroyed value has a
// root that may be overwritten, no other input of its destroyer shares its memory, and all other readers of
// that memory can come before the destroyer.
func consistent(g *FunctionGraph, destroyable func(*Variable) bool) error {
	follows := make(map[*Apply][]*Apply)
	for d := range g.Applies() {
		op, ok := d.op.(Destroyer)
		if !ok {
			continue
		}
		for _, al := range op.DestroyMap() {
			v := d.inputs[al.Input]
			if regionByDefinition(v).empty() {
				continue
			}
			if r := rootByDefinition(v); r.owner == nil && (r.IsConstant() || destroyable == nil || !destroyable(r)) {
				return fmt.Errorf("root %v", r)
			}
			for i, w := range d.inputs {
				if i != al.Input && sharedByDefinition(v, w) {
					if tol, ok := d.op.(AliasTolerator); !ok || !tol.ToleratesAlias(al.Input, i, v == w) {
						return fmt.Errorf("alias %v", w)
					}
				}
			}
			if err := addReaders(follows, g, d, v); err != nil {
				return err
			}
		}
	}
	for a := range g.Applies() {
		for _, v := range a.outputs {
			for _, c := range v.clients {
				if c.Apply != nil {
					follows[a] = append(follows[a], c.Apply)
				}
			}
		}
	}
	if !sortable(g, follows) {
		return ErrCycle
	}
	return nil
}

// rootByDefinition returns the variable whose memory v is in.
func rootByDefinition(v *Variable) *Variable {
	for v.owner != nil {
		op, ok := v.owner.op.(Viewer)
		if !ok || len(op.ViewMap()) == 0 {
			return v
		}
		v = v.owner.inputs[op.ViewMap()[0].Input]
	}
	return v
}

// regionByDefinition returns the part of its root that v shows, or all of it if a view does not tell.
func regionByDefinition(v *Variable) Region {
	all := Region{-1000, 1000, -1000, 1000}
	r := all
	for v.owner != nil {
		op, ok := v.owner.op.(Viewer)
		if !ok || len(op.ViewMap()) == 0 {
			break
		}
		if rv, ok := op.(RegionViewer); !ok {
			r = all
		} else if r == all {
			r = rv.ViewRegion(0)
		} else {
			r = r.within(rv.ViewRegion(0))
		}
		v = v.owner.inputs[op.ViewMap()[0].Input]
	}
	return r
}

func sharedByDefinition(u, v *Variable) bool {
	return u == v || rootByDefinition(u) == rootByDefinition(v) && regionByDefinition(u).overlaps(regionByDefinition(v))
}

// addReaders notes that d, which destroys v, follows all other applies that read the memory of v. An output
// of the graph in that memory is an error.
func addReaders(follows map[*Apply][]*Apply, g *FunctionGraph, d *Apply, v *Variable) error {
	for w := range g.Variables() {
		if !sharedByDefinition(v, w) {
			continue
		}
		for _, c := range w.clients {
			if c.Apply == nil {
				return fmt.Errorf("output %v", w)
			}
			if c.Apply == d {
				continue
			}
			// A view of another part of w reads nothing of v.
			if _, ok := c.Apply.op.(RegionViewer); ok && c.Apply.inputs[0] == w && c.Apply.inputs[1] != w &&
				!sharedByDefinition(c.Apply.outputs[0], v) {
				continue
			}
			follows[c.Apply] = append(follows[c.Apply], d)
		}
	}
	return nil
}

// sortable reports whether the applies have an order in which each comes before those that follow it.
func sortable(g *FunctionGraph, follows map[*Apply][]*Apply) bool {
	waits := make(map[*Apply]int)
	for _, list := range follows {
		for _, b := range list {
			waits[b]++
		}
	}
	var ready []*Apply
	for a := range g.Applies() {
		if waits[a] == 0 {
			ready = append(ready, a)
		}
	}
	n := 0
	for ; len(ready) > 0; n++ {
		a := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, b := range follows[a] {
			if waits[b]--; waits[b] == 0 {
				ready = append(ready, b)
			}
		}
	}
	return n == g.live
}
