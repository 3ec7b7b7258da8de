package fgraph

import (
	"fmt"
	"slices"
)

// A Replacement says that New is to be read wherever Old is.
type Replacement struct{ Old, New *Variable }

// Replace lets everything that reads old read new instead, imports what new
// depends on, and prunes what is no longer used. New may be computed from old:
// what is imported for it keeps reading old. A variable that is not in the
// graph, or has no client, needs no replacement, and none is made.
//
// The graph is as before if there is an error: a [TypeError] if the type of old
// does not accept that of new, a [MissingInputError], or one that wraps
// [ErrCycle] if new depends on something that reads old.
func (g *FunctionGraph) Replace(old, new *Variable, why Reason) error {
	pair := [1]Replacement{{old, new}}
	return g.transact(pair[:], why, nil, false)
}

// ReplaceAll makes replacements one after the other, all or none. Only the
// graph that results has to be free of cycles.
func (g *FunctionGraph) ReplaceAll(pairs []Replacement, why Reason) error {
	return g.transact(pairs, why, nil, false)
}

// Reverting reports whether the callback that asks is being told of a change
// that is taken back.
func (g *FunctionGraph) Reverting() bool { return g.undoing }

// transact makes the replacements. With validate set, features may object; what
// remove lists must be gone then.
func (g *FunctionGraph) transact(pairs []Replacement, why Reason, remove []*Variable, validate bool) error {
	return g.atomically(pairs, why, func(why Reason) error {
		for _, p := range pairs {
			if err := g.replace(p.Old, p.New, why); err != nil {
				return fmt.Errorf("%v: %w", why, err)
			}
		}
		if e, ok := g.settle(); !ok {
			return fmt.Errorf("%v: %w: %v would depend on itself through %v", why, ErrCycle, e.after, e.before)
		}
		if !validate {
			return nil
		}
		for _, v := range remove {
			if v.id >= 0 && v.Graph() == g {
				return fmt.Errorf("%v: %w %v", why, ErrNotRemoved, v)
			}
		}
		if err := g.Validate(); err != nil {
			return fmt.Errorf("%v: %w", why, err)
		}
		return nil
	})
}

// atomically makes a change, or none if do returns an error or a callback
// panics. The guard decides whether it is made, and is told what became of it.
func (g *FunctionGraph) atomically(pairs []Replacement, why Reason, do func(Reason) error) error {
	if err := g.locked(); err != nil {
		return err
	}
	why = g.signed(why)
	guard := g.guard
	if guard == nil || pairs != nil && !slices.ContainsFunc(pairs, g.replaces) {
		return g.commit(pairs, why, do)
	}
	if !guard.Allow(g, pairs, why) {
		return fmt.Errorf("%v: %w", why, ErrNotAllowed)
	}
	err := g.commit(pairs, why, do)
	guard.Done(g, pairs, why, err)
	return err
}

// replaces reports whether there is anything to do for a replacement.
func (g *FunctionGraph) replaces(p Replacement) bool {
	return p.Old == nil || p.Old != p.New && p.Old.id >= 0 && p.Old.Graph() == g && len(p.Old.clients) > 0
}

// commit makes a change, or none. Features are told what was done, and what of
// it was undone.
func (g *FunctionGraph) commit(pairs []Replacement, why Reason, do func(Reason) error) error {
	g.busy = true
	mark := len(g.journal)
	returned := false
	defer func() {
		if !returned {
			g.rescue(mark, why)
		}
		g.forget(mark)
		g.busy = false
	}()
	err := do(why)
	if err != nil {
		g.undo(mark, why)
		g.passPanic()
	}
	returned = true
	if err == nil && len(g.journal) > mark {
		g.fireCommit(pairs, why)
	}
	return err
}

// passPanic lets a panic go on that undo has kept.
func (g *FunctionGraph) passPanic() {
	if p := g.panicked; p != nil {
		g.panicked = nil
		panic(p)
	}
}

// rescue undoes a change that the panic of a callback has interrupted.
func (g *FunctionGraph) rescue(mark int, why Reason) {
	for _, a := range g.fresh {
		if a.id == found {
			a.id = outside
		}
	}
	g.fresh = g.fresh[:0]
	g.undo(mark, why)
	g.panicked = nil // the first panic is on its way already
}

func (g *FunctionGraph) replace(old, new *Variable, why Reason) error {
	switch {
	case old == nil || new == nil:
		return fmt.Errorf("%w: nil variable in replacement", ErrInvalid)
	case !g.replaces(Replacement{old, new}):
		return nil
	case new.typ == nil:
		return fmt.Errorf("%w: replacement of %v has no type", ErrInvalid, old)
	case !old.typ.Accepts(new.typ):
		return &TypeError{Old: old, New: new, Why: why}
	}
	// Clients that come with new are not among those to be moved.
	moved := append(g.moved[:0], old.clients...)
	g.moved = moved
	if err := g.importFor(new, why); err != nil {
		return err
	}
	for _, c := range moved {
		g.change(c, new, why)
	}
	if old.owner != nil && old.owner.unused() {
		g.prune(old.owner, why)
	}
	return nil
}
