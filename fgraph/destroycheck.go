package fgraph

import (
	"cmp"
	"fmt"
	"slices"
)

// validate returns the first objection. The next call examines the rest.
func (h *DestroyHandler) validate() error {
	h.relink()
	h.malformed = slices.DeleteFunc(h.malformed, func(a *Apply) bool { return a.graph != h.g })
	if len(h.malformed) > 0 {
		return fmt.Errorf("%w: the view or destroy map of %v has an index that is out of range or occurs twice",
			ErrInconsistent, h.malformed[0])
	}
	if !h.active {
		return nil
	}
	if err := h.validateLate(); err != nil {
		return err
	}
	for len(h.dirty) > 0 {
		a := h.dirty[len(h.dirty)-1]
		if a.graph == h.g && h.isDirty[a.id] {
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

// validateLate retries edges of the graph that contradicted the order when they appeared.
func (h *DestroyHandler) validateLate() error {
	for len(h.late) > 0 {
		e := h.late[len(h.late)-1]
		if e.before.graph == h.g && e.after.graph == h.g && h.g.reads(e.after, e.before) &&
			!h.order.require(e.before.id, e.after.id) {
			return fmt.Errorf("%w: %v must come after %v, but overwriting memory requires the opposite order",
				ErrInconsistent, e.after, e.before)
		}
		h.late = h.late[:len(h.late)-1]
	}
	return nil
}

// validateDestroyer validates everything that a destroys.
func (h *DestroyHandler) validateDestroyer(a *Apply) error {
	for r := h.aliases.destructionsOf(a); r != none; r = h.aliases.recs[r].more {
		d := h.aliases.recs[r]
		if err := h.validateMemory(r, &d); err != nil {
			return err
		}
		if c := h.unavoidableReader(&d); c != nil {
			return h.tooLate(c, &d)
		}
	}
	return nil
}

// unavoidableReader moves the readers of the memory before d. It returns a reader that must come
// after d, or nil. It tries the most frequent case first: a reader that also depends on a result
// of d. If the memory has many readers, it does so even before listing them, because a pass may
// ask about very many applies that read one variable. Then it tries the readers in the order in
// which they follow d.
func (h *DestroyHandler) unavoidableReader(d *destruction) *Apply {
	many := h.manyReaders(d)
	if many {
		if c := h.readerOfResult(d); c != nil {
			return c
		}
	}
	behind := h.behind[:0]
	h.eachReader(d, func(c *Apply) {
		if !h.order.less(c.id, d.a.id) {
			behind = append(behind, c)
		}
	})
	var late *Apply
	if !many {
		if i := slices.IndexFunc(behind, func(c *Apply) bool { return len(c.inputs) <= fewReaders && h.g.reads(c, d.a) }); i >= 0 {
			late = behind[i]
		}
	}
	if late == nil && len(behind) > 0 {
		late = h.firstAfter(behind, d.a)
	}
	clear(behind)
	h.behind = behind[:0]
	return late
}

// fewReaders bounds how many readers of memory, and inputs of a reader, are examined one by one
// if there may be a quicker way.
const fewReaders = 16

// manyReaders reports whether the memory may have many readers.
func (h *DestroyHandler) manyReaders(d *destruction) bool {
	v := h.g.variables[d.v]
	if e := h.aliases.known(v); e == nil || h.aliases.groups[e.group].size == 1 {
		return len(v.clients) > fewReaders
	} else if h.aliases.groups[e.group].size > fewReaders {
		return true
	}
	n := 0
	h.eachAlias(v, func(w *Variable) bool {
		n += len(w.clients)
		return n <= fewReaders
	})
	return n > fewReaders
}

// readerOfResult returns a reader of the memory that also reads a result of d, if there is one
// among the first clients of the results.
func (h *DestroyHandler) readerOfResult(d *destruction) *Apply {
	looks := fewReaders * fewReaders
	for _, v := range d.a.outputs {
		for _, c := range v.clients[:min(fewReaders, len(v.clients))] {
			if c.Apply == nil || len(c.Apply.inputs) > fewReaders {
				continue
			}
			if looks -= len(c.Apply.inputs); looks < 0 {
				return nil
			}
			if h.reads(c.Apply, d) {
				return c.Apply
			}
		}
	}
	return nil
}

// firstAfter moves readers before a until one must come later, and returns it, or nil.
func (h *DestroyHandler) firstAfter(readers []*Apply, a *Apply) *Apply {
	slices.SortFunc(readers, func(b, c *Apply) int { return cmp.Compare(h.order.tag[b.id+1], h.order.tag[c.id+1]) })
	for _, c := range readers {
		if !h.order.require(c.id, a.id) {
			return c
		}
	}
	return nil
}

// reads reports whether a reads memory that d destroys.
func (h *DestroyHandler) reads(a *Apply, d *destruction) bool {
	group := h.aliases.of[d.v].group
	for _, w := range a.inputs {
		if w.id == d.v && group == none {
			return true
		}
		if e := h.aliases.known(w); e != nil && e.group == group &&
			h.aliases.overlap(w.id, d.v) && h.touches(a, w, d) {
			return true
		}
	}
	return false
}

func (h *DestroyHandler) tooLate(a *Apply, d *destruction) error {
	return fmt.Errorf("%s: %v reads it, but has to come later", describeDestroyer(d.a, d.i), a)
}

// validateMemory returns an objection to destroying the memory, other than one of its readers.
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
	if i := h.aliasedInput(d.a, int(d.i), d.a.op); i >= 0 {
		return fmt.Errorf("%s: input %d is an alias of it", describeDestroyer(d.a, d.i), i)
	}
	return nil
}

// aliasedInput returns another input of a that may share memory with input i, which op does not
// tolerate, or -1.
func (h *DestroyHandler) aliasedInput(a *Apply, i int, op Op) int {
	v := a.inputs[i]
	e := h.aliases.known(v)
	alone := e == nil || h.aliases.groups[e.group].size == 1 // no other variable shares memory with v
	for j, w := range a.inputs {
		if j == i || w != v && (alone || !h.Shared(v, w)) {
			continue
		}
		if t, ok := op.(AliasTolerator); !ok || !t.ToleratesAlias(i, j, v == w) {
			return j
		}
	}
	return -1
}

// validateReader moves c before the applies that destroy the memory it reads.
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

// eachReader calls do for the applies that read memory destroyed by d, except d.a itself.
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

// touches reports whether a, a reader of w, reads memory that d destroys, given that w shares
// memory with d. It does not if it only shows other regions of w.
func (h *DestroyHandler) touches(a *Apply, w *Variable, d *destruction) bool {
	shows := false
	for _, o := range a.outputs {
		e := h.aliases.known(o)
		if e == nil || e.parent != w.id {
			continue // not a view, or not linked yet in the middle of a change
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

// destroyEdges are the data edges, and those from the readers of memory to the applies that
// destroy it.
type destroyEdges struct {
	dataEdges
	h *DestroyHandler
}

func (e destroyEdges) successors(x int32, dst []int32) []int32 {
	dst = e.dataEdges.successors(x, dst)
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
	dst = e.dataEdges.predecessors(x, dst)
	for r := e.h.aliases.destructionsOf(e.h.g.applies[x]); r != none; r = e.h.aliases.recs[r].more {
		e.h.eachReader(&e.h.aliases.recs[r], func(c *Apply) { dst = append(dst, c.id) })
	}
	return dst
}

// describeDestroyer describes an apply that destroys input i, in messages.
func describeDestroyer(a *Apply, i int32) string {
	by := ""
	if why := a.graph.ImportedBy(a); why != (Reason{}) {
		by = fmt.Sprintf(" (by %v)", why)
	}
	return fmt.Sprintf("%v, which overwrites its input %d%s", a, i, by)
}
