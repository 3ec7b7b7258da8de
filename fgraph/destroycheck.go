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

// validateReaders puts everything that reads the memory before d.
func (h *DestroyHandler) validateReaders(d *destruction) error {
	if c := h.unavoidableReader(d); c != nil {
		return h.tooLate(c, d)
	}
	return nil
}

// unavoidableReader puts what reads the memory before d, and returns something
// that has to come after it, or nil. What is found most often is looked for
// first: something computed from the result reads it too. A pass may ask about
// very many applies that read one variable, so that where there are many readers
// this comes even before they are looked at. Of the other readers those are
// looked at first that come soonest after d.
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
		late = h.resultReader(behind, d.a)
	}
	if late == nil && len(behind) > 0 {
		late = h.firstAfter(behind, d.a)
	}
	clear(behind)
	h.behind = behind[:0]
	return late
}

// fewReaders is up to how many readers of memory, and inputs of a reader, are
// looked at where there may be something quicker.
const fewReaders = 16

// manyReaders reports whether memory of d may have many readers.
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

// readerOfResult returns a reader of the memory that reads a result of d too, if
// it need not be searched for.
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

// resultReader is readerOfResult for the few readers of the memory that do not
// come before a, which destroys it.
func (h *DestroyHandler) resultReader(readers []*Apply, a *Apply) *Apply {
	for _, c := range readers {
		if len(c.inputs) <= fewReaders && h.g.reads(c, a) {
			return c
		}
	}
	return nil
}

// firstAfter puts readers before a as far as that can be done, and returns the
// first that has to come later, or nil.
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
	if i := h.aliasedInput(d.a, int(d.i), d.a.op); i >= 0 {
		return fmt.Errorf("%s: input %d is an alias of it", describeDestroyer(d.a, d.i), i)
	}
	return nil
}

// aliasedInput returns another input of a that may share memory with input i
// although op does not tolerate that, or -1.
func (h *DestroyHandler) aliasedInput(a *Apply, i int, op Op) int {
	v := a.inputs[i]
	e := h.aliases.known(v)
	alone := e == nil || h.aliases.groups[e.group].size == 1 // no other variable has memory of v
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

// MayOverwrite reports whether op, were it to take the place of the op of a,
// might overwrite input i, given that [DestroyHandler.MayDestroy] has nothing
// against it: op tolerates the other inputs that are aliases of it, and
// everything else that reads the memory can come before. It is what Validate
// would find, but nothing has to be made for it, and undone. Inputs that share
// no memory and may be overwritten one by one may be overwritten together.
func (h *DestroyHandler) MayOverwrite(a *Apply, i int, op Op) bool {
	h.relink()
	v := a.inputs[i]
	if e := h.aliases.known(v); e != nil {
		if r, whole := h.aliases.region(v.id); !whole && r.Empty() {
			return true
		}
	} else if len(v.clients) == 1 {
		return true // nobody else reads it
	}
	if h.aliasedInput(a, i, op) >= 0 {
		return false
	}
	h.activate()
	h.aliases.at(v)
	return h.unavoidableReader(&destruction{a: a, v: v.id, i: int32(i)}) == nil
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
