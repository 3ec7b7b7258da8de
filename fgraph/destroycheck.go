package fgraph

import (
	"cmp"
	"fmt"
	"slices"
)

// validate returns the first objection. The next call examines the rest.
func (h *DestroyHandler) validate() error {
	// A change is complete now, so views that could not be linked in the middle of it can be.
	h.relink()
	h.malformed = slices.DeleteFunc(h.malformed, func(a *Apply) bool { return a.graph != h.g })
	if len(h.malformed) > 0 {
		return fmt.Errorf("%w: the view or destroy map of %v has an index that is out of range or occurs twice",
			ErrInconsistent, h.malformed[0])
	}
	if !h.active {
		return nil
	}
	// First the edges of the graph itself: the searches below follow edges, and would miss paths
	// through an edge that the order still contradicts.
	if err := h.validateLate(); err != nil {
		return err
	}
	// Then destroyers whose memory, readers or claims may have changed. One leaves the queue only
	// after it was found valid: if this change is refused and undone, the undoing marks what it
	// touches, but the rest of the queue must be examined the next time. That is also why an error
	// returns with the queue as it is.
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
	// Last the new readers of memory that was destroyed already. Their destroyers were valid
	// before, so it is enough to move each reader; examining the destroyer would cost all of its
	// readers.
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
	// Only readers that the order has after d have to move.
	behind := h.behind[:0]
	h.eachReader(d, func(c *Apply) {
		if !h.order.less(c.id, d.a.id) {
			behind = append(behind, c)
		}
	})
	var late *Apply
	// A reader that reads an output of d.a itself can never come first. Looking for it costs a few
	// comparisons, where the search for a path may walk half the graph.
	if !many {
		if i := slices.IndexFunc(behind, func(c *Apply) bool { return len(c.inputs) <= fewReaders && h.g.reads(c, d.a) }); i >= 0 {
			late = behind[i]
		}
	}
	// Nothing rules a reader out at once, so the order decides, one edge after the other.
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
	// The group is small, but its members may have any number of clients; counting stops as soon as
	// the answer is known.
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
	// A reader that moves takes what it depends on with it, which may include the next readers:
	// moving the nearest to a first means that most of the others are ahead of it already when
	// their turn comes.
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
	// Memory without elements can be overwritten by anybody.
	if r, whole := h.aliases.region(d.v); !whole && r.empty() {
		return nil
	}
	if err := h.claim(v); err != nil {
		return fmt.Errorf("%s: %w", describeDestroyer(d.a, d.i), err)
	}
	// Two destroyers of overlapping memory can never both be right, in any order: the one that
	// runs second overwrites what the first one computed for its readers.
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
	// Without views an alias of v can only be v itself, which saves asking for every pair of
	// inputs.
	alone := e == nil || h.aliases.groups[e.group].size == 1 // no other variable shares memory with v
	for j, w := range a.inputs {
		if j == i || w != v && (alone || !h.shared(v, w)) {
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
		// The destroyer itself reads its memory a second time: no order can help, but its op may
		// tolerate that.
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
	// An apply that views w reads it only where its views lead. If they lead to regions that d does
	// not overwrite, and w is no other input of the apply, it can run after d: that is how slices
	// of one buffer are updated in place, one after the other.
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
	// It views w elsewhere, but if w is an input twice, the other use may read all of it.
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
	// The order knows two kinds of edges: from a value to its readers, and from a reader of memory
	// to the apply that destroys it. The second kind is not stored but follows from the groups, so
	// it can never be out of date.
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
