package fgraph

import (
	"cmp"
	"fmt"
	"slices"
)

// Validate objects to the first thing that is wrong with what is destroyed. What
// it has not got to is looked at next time.
func (h *DestroyHandler) Validate(g *FunctionGraph) error {
	h.relink()
	if err := h.validateShape(); err != nil {
		return err
	}
	if !h.active {
		return nil
	}
	if err := h.validateLate(); err != nil {
		return err
	}
	for len(h.dirty) > 0 {
		a := h.dirty[len(h.dirty)-1]
		if a.graph == g && h.isDirty[a.id] {
			if err := h.validateDestroyer(a); err != nil {
				return fmt.Errorf("%w: %w", ErrInconsistent, err)
			}
			h.isDirty[a.id] = false
		}
		h.dirty = h.dirty[:len(h.dirty)-1]
	}
	for len(h.readers) > 0 {
		if err := h.validateReader(h.readers[len(h.readers)-1]); err != nil {
			return fmt.Errorf("%w: %w", ErrInconsistent, err)
		}
		h.readers = h.readers[:len(h.readers)-1]
	}
	return nil
}

// validateShape objects to ops whose maps make no sense.
func (h *DestroyHandler) validateShape() error {
	kept := h.malformed[:0]
	for _, a := range h.malformed {
		if a.graph == h.g {
			kept = append(kept, a)
		}
	}
	clear(h.malformed[len(kept):])
	h.malformed = kept
	if len(kept) > 0 {
		return fmt.Errorf("%w: the view or destroy map of %v names what it does not have, or something twice",
			ErrInconsistent, kept[0])
	}
	return nil
}

// validateLate puts edges of the graph in order that had no place when they came.
func (h *DestroyHandler) validateLate() error {
	for len(h.late) > 0 {
		e := h.late[len(h.late)-1]
		if e.before.graph == h.g && e.after.graph == h.g && h.g.reads(e.after, e.before) &&
			!h.order.require(e.before.id, e.after.id) {
			return fmt.Errorf("%w: %v has to come after %v, but something that it overwrites or that is overwritten for it demands the opposite",
				ErrInconsistent, e.after, e.before)
		}
		h.late = h.late[:len(h.late)-1]
	}
	return nil
}

// validateDestroyer looks at everything that a destroys.
func (h *DestroyHandler) validateDestroyer(a *Apply) error {
	for r := h.aliases.destructionsOf(a); r != none; r = h.aliases.recs[r].more {
		d := h.aliases.recs[r]
		if err := h.validateMemory(r, &d); err != nil {
			return err
		}
		if err := h.validateReaders(&d); err != nil {
			return err
		}
	}
	return nil
}

// validateReaders puts everything that reads the memory before d. What is refused
// most often is found first, as a pass may try very many applies that read one
// variable: something computed from the result reads it too. Of the other
// readers those are looked at first that come soonest after d.
func (h *DestroyHandler) validateReaders(d *destruction) error {
	const few = 16
	for _, v := range d.a.outputs {
		for _, c := range v.clients[:min(few, len(v.clients))] {
			if c.Apply != nil && len(c.Apply.inputs) <= few && h.reads(c.Apply, d) {
				return h.tooLate(c.Apply, d)
			}
		}
	}
	behind := h.behind[:0]
	h.eachReader(d, func(c *Apply) {
		if !h.order.less(c.id, d.a.id) {
			behind = append(behind, c)
		}
	})
	slices.SortFunc(behind, func(a, b *Apply) int { return cmp.Compare(h.order.tag[a.id+1], h.order.tag[b.id+1]) })
	var err error
	for _, c := range behind {
		if !h.order.require(c.id, d.a.id) {
			err = h.tooLate(c, d)
			break
		}
	}
	clear(behind)
	h.behind = behind[:0]
	return err
}

// reads reports whether a reads memory that d destroys.
func (h *DestroyHandler) reads(a *Apply, d *destruction) bool {
	for _, w := range a.inputs {
		if e := h.aliases.known(w); e != nil && e.group == h.aliases.of[d.v].group &&
			h.aliases.overlap(w.id, d.v) && h.touches(a, w, d) {
			return true
		}
	}
	return false
}

func (h *DestroyHandler) tooLate(a *Apply, d *destruction) error {
	return fmt.Errorf("%s: %v reads it, but has to come later", describeDestroyer(d.a, d.i), a)
}

// validateMemory looks at whether anything but its readers speaks against
// destroying the memory.
func (h *DestroyHandler) validateMemory(r int32, d *destruction) error {
	v := h.g.variables[d.v]
	if r, whole := h.aliases.region(d.v); !whole && r.Empty() {
		return nil
	}
	if err := h.claim(v); err != nil {
		return fmt.Errorf("%s: %w", describeDestroyer(d.a, d.i), err)
	}
	for o := h.aliases.groups[h.aliases.of[d.v].group].first; o != none; o = h.aliases.recs[o].next {
		if other := &h.aliases.recs[o]; o != r && h.aliases.overlap(d.v, other.v) {
			return fmt.Errorf("multiple destroyers of %v: %s and %s", v,
				describeDestroyer(d.a, d.i), describeDestroyer(other.a, other.i))
		}
	}
	for i, w := range d.a.inputs {
		if i == int(d.i) || !h.Shared(v, w) {
			continue
		}
		if t, ok := d.a.op.(AliasTolerator); ok && t.ToleratesAlias(int(d.i), i, v == w) {
			continue
		}
		return fmt.Errorf("%s: input %d is an alias of it", describeDestroyer(d.a, d.i), i)
	}
	return nil
}

// validateReader puts c before what destroys the memory that it reads.
func (h *DestroyHandler) validateReader(c Client) error {
	if c.Apply.graph != h.g {
		return nil
	}
	w := h.g.read(c)
	e := h.aliases.known(w)
	if e == nil {
		return nil
	}
	for r := h.aliases.groups[e.group].first; r != none; r = h.aliases.recs[r].next {
		d := h.aliases.recs[r]
		if !h.aliases.overlap(d.v, w.id) || !h.touches(c.Apply, w, &d) {
			continue
		}
		if c.Apply == d.a {
			if err := h.validateMemory(r, &d); err != nil {
				return err
			}
		} else if !h.order.require(c.Apply.id, d.a.id) {
			return h.tooLate(c.Apply, &d)
		}
	}
	return nil
}

// eachReader calls do for the applies that read memory that d destroys, but for
// d itself.
func (h *DestroyHandler) eachReader(d *destruction, do func(*Apply)) {
	h.eachAlias(h.g.variables[d.v], func(w *Variable) bool {
		for _, c := range w.clients {
			if c.Apply != nil && c.Apply != d.a && h.touches(c.Apply, w, d) {
				do(c.Apply)
			}
		}
		return true
	})
}

// touches reports whether a, which reads w, reads memory that d destroys, given
// that w has some. It does not if all it does is to show other regions of w.
func (h *DestroyHandler) touches(a *Apply, w *Variable, d *destruction) bool {
	shows := false
	for _, o := range a.outputs {
		e := h.aliases.known(o)
		if e == nil || e.parent != w.id {
			continue // no view, or in the middle of a change not linked yet
		}
		if e.group != h.aliases.of[d.v].group || h.aliases.overlap(o.id, d.v) {
			return true
		}
		shows = true
	}
	if !shows {
		return true
	}
	times := 0
	for _, v := range a.inputs {
		if v == w {
			times++
		}
	}
	return times > 1
}

// destroyEdges are the edges that inputs make, and those from what reads memory
// to what destroys it.
type destroyEdges struct{ h *DestroyHandler }

func (e destroyEdges) successors(x int32, dst []int32) []int32 {
	dst = dataEdges{e.h.g}.successors(x, dst)
	a := e.h.g.applies[x]
	for _, w := range a.inputs {
		al := e.h.aliases.known(w)
		if al == nil {
			continue
		}
		for r := e.h.aliases.groups[al.group].first; r != none; r = e.h.aliases.recs[r].next {
			d := &e.h.aliases.recs[r]
			if d.a != a && e.h.aliases.overlap(d.v, w.id) && e.h.touches(a, w, d) {
				dst = append(dst, d.a.id)
			}
		}
	}
	return dst
}

func (e destroyEdges) predecessors(x int32, dst []int32) []int32 {
	dst = dataEdges{e.h.g}.predecessors(x, dst)
	for r := e.h.aliases.destructionsOf(e.h.g.applies[x]); r != none; r = e.h.aliases.recs[r].more {
		e.h.eachReader(&e.h.aliases.recs[r], func(c *Apply) { dst = append(dst, c.id) })
	}
	return dst
}

func (e destroyEdges) fanOut(x int32) int { return dataEdges{e.h.g}.fanOut(x) }
func (e destroyEdges) fanIn(x int32) int  { return dataEdges{e.h.g}.fanIn(x) }
