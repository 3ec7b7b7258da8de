package fgraph

import (
	"fmt"
	"slices"
)

// A Replacement makes every reader of Old read New.
type Replacement struct{ Old, New *Variable }

// Replace makes every client of old read new instead, imports what new depends on, and prunes
// what becomes unused. New may be computed from old: the imported applies keep reading old. If
// old is not in the graph or has no client, Replace does nothing.
//
// On an error the graph is unchanged. The error wraps [ErrType] if the type of old does not
// accept that of new, [ErrForeign] if one of them is of another graph, [ErrMissingInput] if new
// depends on an undeclared input, or [ErrCycle] if new depends on another reader of old.
func (g *FunctionGraph) Replace(old, new *Variable, why Reason) error {
	pair := [1]Replacement{{old, new}}
	return g.transact(pair[:], why, nil, false)
}

// ReplaceAll makes replacements in order, all or none. Only the resulting graph must be free of
// cycles.
func (g *FunctionGraph) ReplaceAll(pairs []Replacement, why Reason) error {
	return g.transact(pairs, why, nil, false)
}

// ReplaceValidate is like [FunctionGraph.Replace], but validates the result. If a feature
// objects, it undoes the replacement and returns the objection.
func (g *FunctionGraph) ReplaceValidate(old, new *Variable, why Reason) error {
	pair := [1]Replacement{{old, new}}
	return g.transact(pair[:], why, nil, true)
}

// ReplaceAllValidate is like [FunctionGraph.ReplaceAll], but validates the result. If a feature
// objects, it undoes the replacements and returns the objection. It also undoes them if a
// variable of remove is still in the graph; the error then wraps [ErrNotRemoved].
func (g *FunctionGraph) ReplaceAllValidate(pairs []Replacement, remove []*Variable, why Reason) error {
	return g.transact(pairs, why, remove, true)
}

// transact makes replacements. If validate is set, features may object, and everything in remove
// must be gone.
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

// atomically makes a change, or none if do returns an error or a callback panics. It asks the
// guard first and tells it the outcome.
func (g *FunctionGraph) atomically(pairs []Replacement, why Reason, do func(Reason) error) error {
	if err := g.locked(); err != nil {
		return err
	}
	why = g.signed(why)
	// A replacement without effect is not worth asking about: it would use up a budget of rewrites,
	// and a bisection would count it.
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

// replaces reports whether a replacement has an effect.
func (g *FunctionGraph) replaces(p Replacement) bool {
	return p.Old == nil || p.Old != p.New && p.Old.id >= 0 && p.Old.Graph() == g && len(p.Old.clients) > 0
}

// commit makes a change, or none. It tells features what was done and what was undone.
func (g *FunctionGraph) commit(pairs []Replacement, why Reason, do func(Reason) error) error {
	g.busy = true
	// Everything from here on can be taken back: the journal remembers each step. A change inside a
	// change is impossible, because busy refuses it.
	mark := len(g.journal)
	returned := false
	// returned tells a panic of a callback from a return. Recovering it here would lose its stack,
	// so it is left to propagate, after the graph is back in its old state.
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
	// Features hear of a change as a whole only once it stays.
	if err == nil && len(g.journal) > mark {
		g.fireCommit(pairs, why)
	}
	return err
}

// passPanic resumes a panic that undo has caught.
func (g *FunctionGraph) passPanic() {
	if p := g.panicked; p != nil {
		g.panicked = nil
		panic(p)
	}
}

// rescue undoes a change that was interrupted by the panic of a callback.
func (g *FunctionGraph) rescue(mark int, why Reason) {
	for _, a := range g.fresh {
		if a.id == found {
			a.id = outside
		}
	}
	g.fresh = g.fresh[:0]
	g.undo(mark, why)
	g.panicked = nil // the first panic is already propagating
}

func (g *FunctionGraph) replace(old, new *Variable, why Reason) error {
	switch {
	case old == nil || new == nil:
		return fmt.Errorf("%w: nil variable in replacement", ErrInvalid)
	case old.Graph() != nil && old.Graph() != g:
		return fmt.Errorf("%v %w", old, ErrForeign)
	case !g.replaces(Replacement{old, new}):
		return nil
	case new.typ == nil:
		return fmt.Errorf("%w: replacement of %v has no type", ErrInvalid, old)
	case !old.typ.Accepts(new.typ):
		return fmt.Errorf("%w: %v cannot replace %v: type %v does not accept %v", ErrType, new, old, old.typ, new.typ)
	}
	// Do not move clients of old that are imported with new.
	// new may be computed from old, as in x → f(x).
	moved := append(g.moved[:0], old.clients...)
	g.moved = moved
	if err := g.importFor(new, why); err != nil {
		return err
	}
	for _, c := range moved {
		g.change(c, new, why)
	}
	// Pruning waits until all clients have moved. If it came before, what new and old share would
	// be removed and imported again, with other numbers.
	if old.owner != nil && old.owner.unused(old.index) {
		g.prune(old.owner, why)
	}
	return nil
}
