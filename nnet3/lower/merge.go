package lower

// merge is a merge of base from into base into, with what is needed to undo it. The last four
// fields are lengths of lists of the log before it.
type merge struct {
	into, from    int32
	dr, dc        int32 // by what the members of from move
	before        base  // into before the merge
	tree          int32 // the root of into's tree after the merge
	first, last   int32 // the life of into after the merge
	placed, heads int
	removed, made int
}

// mergeLog lists the changes by the merges of a transaction.
type mergeLog struct {
	placed  []int32    // terms
	heads   []cellHead // cells with new occupations
	removed []int32    // occupations removed from a tree
	made    []int32    // occupations inserted into a tree
}

// emptied returns the log with empty lists.
func (l *mergeLog) emptied() mergeLog {
	return mergeLog{placed: l.placed[:0], heads: l.heads[:0], removed: l.removed[:0], made: l.made[:0]}
}

// cellHead is the former first occupation of a cell.
type cellHead struct {
	cellRef
	nodes int32
}

// failedMerge identifies a merge: two bases, smaller number first, and the move of the second.
type failedMerge struct{ a, b, dr, dc int32 }

func (m *merge) name() failedMerge {
	if m.into < m.from {
		return failedMerge{m.into, m.from, m.dr, m.dc}
	}
	return failedMerge{m.from, m.into, -m.dr, -m.dc}
}

// witness says why a merge failed: term k can't be placed or, if k is -1, two cells clash. The
// terms of all steps of a recurrence often try to merge two tall bases at the same offset, and fail
// for a reason that shows in only one step. So the witness is checked first the next time, which
// saves an eighth of the time to optimize an LSTM of 20,000 commands (Zen 4, November 2026).
type witness struct {
	k    int32
	x, y cellRef
}

// merge tries to make value b live at offset (dr, dc) from value a, in one base, to place term k,
// -1 for none. It reports whether it did.
//
// A merge takes time in proportion to the smaller base and to the changes in the larger one. Most
// failing merges fail at once, because of what they would do to term k.
func (t *transaction) merge(a, b, dr, dc, k int32) bool {
	s := t.s
	va, vb := &s.values[a], &s.values[b]
	if va.base < 0 || vb.base < 0 || va.base == vb.base {
		return false
	}
	m := merge{into: va.base, from: vb.base, dr: va.r + dr - vb.r, dc: va.c + dc - vb.c,
		placed: len(t.log.placed), heads: len(t.log.heads), removed: len(t.log.removed), made: len(t.log.made)}
	near := b // of the two values, the one that moves
	// Move the lighter base. A value then moves only when its base at least doubles in weight, so
	// over all merges each one moves a logarithmic number of times, whatever the order of the
	// merges.
	if s.bases[m.into].weight < s.bases[m.from].weight {
		m.into, m.from, m.dr, m.dc, near = m.from, m.into, -m.dr, -m.dc, a
	}
	// fits is arithmetic on two rectangles, and refuses most merges that make no sense. A group of
	// merges is not charged one by one: its first merge may raise the peak and a later one lower it
	// again, so commit compares the peak at the end.
	if !s.fits(&m) || t.alone && !t.affords(&m) {
		return false
	}
	// From here on the merge counts as done for every question about places (baseOf, place,
	// isPlaced), though no value has moved yet: what a cell occupies depends on which terms are
	// placed, so it has to be computed under this assumption. The tests come cheapest first. Those
	// before try are filters: they may let a bad merge pass, but never refuse a good one, so they
	// change the time and not the result.
	s.trial = trial{m.into, m.from, m.dr, m.dc}
	ok := (k < 0 || s.canPlace(k) && !s.clashesNear(near, k)) && !s.failsAgain(m.name()) && !s.clashesSomewhere() && t.try(&m)
	s.trial = noTrial
	if !ok {
		t.untry(&m)
		return false
	}
	t.finish(&m)
	return true
}

// fits reports whether a merge meets all demands on the sizes of bases.
func (s *Storage) fits(m *merge) bool {
	into, from := &s.bases[m.into], &s.bases[m.from]
	moved := from.rect.Shift(m.dr, m.dc)
	union := into.rect.union(moved)
	switch {
	// Without Extend a base never grows beyond its largest member. A matrix that the caller owns
	// must have exactly the size of its value, so it may neither grow nor move within a larger one;
	// two such values share a matrix only if the second replaces the first in the next iteration of
	// a loop. A value that must span the width of its matrix can't have anything beside it.
	case !s.Extend && union != into.rect && union != moved,
		into.exact >= 0 && union != into.rect, from.exact >= 0 && union != moved,
		into.exact >= 0 && from.exact >= 0 && !s.comesBack(into.exact, from.exact),
		into.span && (union.C0 != into.rect.C0 || union.C1 != into.rect.C1),
		from.span && (union.C0 != moved.C0 || union.C1 != moved.C1):
		return false
	}
	return true
}

// affords reports whether a single merge keeps the peak of the bytes in use within the budget.
func (t *transaction) affords(m *merge) bool {
	s := t.s
	into, from := &s.bases[m.into], &s.bases[m.from]
	first, last := min(into.first, from.first), max(into.last, from.last)
	union := into.rect.union(from.rect.Shift(m.dr, m.dc))
	if union == into.rect && first == into.first && last == into.last {
		// This is the usual case of a part that is placed inside the whole.
		return true // one base less is the only change
	}
	s.book(m.from, -1)
	bytes := 4 * union.area()
	if first == into.first && last == into.last {
		// The life stays, so one addition of the difference does, in place of a removal and an
		// addition: each costs a walk up the tree of peaks.
		bytes -= 4 * into.rect.area() // in one step
	} else {
		s.book(m.into, -1)
		defer s.book(m.into, 1)
	}
	s.peak.add(first, last, bytes)
	ok := s.peak.max() <= t.budget
	s.peak.add(first, last, -bytes)
	s.book(m.from, 1)
	return ok
}

// try changes the trees as the merge does, and records the terms that it places. It reports whether
// the merge is possible. It works under s.trial, and does not change the bases.
func (t *transaction) try(m *merge) bool {
	s := t.s
	into, from := &s.bases[m.into], &s.bases[m.from]
	// First, the terms between the two bases. A merge for the sake of one term may bring others
	// into position. They are placed then, so each of them must be placeable; otherwise the cells
	// that they share would count as free for two values. Terms within one base don't change, hence
	// only those with an end in the smaller base are visited.
	for _, n := range from.members {
		v := &s.values[n]
		for k := v.terms[0]; k < v.terms[1]; k++ {
			if !t.align(m, k) {
				return false
			}
		}
		for i := range v.reads {
			if k := v.reads[i].term; k >= 0 && !t.align(m, k) {
				return false
			}
		}
	}
	// Second, the cells of the larger base whose occupations change because of that: the ends of
	// the placed terms, and outputs that are now written over an input. Two epochs per merge,
	// because a mark has three states: not visited, visited, and visited with all cells that show
	// it.
	s.epoch += 2
	s.dirty = s.dirty[:0]
	for _, k := range t.log.placed[m.placed:] {
		term := &s.terms[k]
		s.touch(term.dst, term.Dst(), true)
		s.touch(term.src, term.Src(), false)
	}
	for _, n := range from.members {
		for _, o := range s.values[n].overBy {
			if s.values[o].base == m.into && s.inPlace(o) {
				s.touch(o, Rect{0, s.values[o].rows, 0, s.values[o].cols}, false)
			}
		}
	}
	// Third, take all changed cells out of the tree before any comes in again. One by one, a cell
	// would clash with the outdated occupation of another.
	m.tree = into.tree
	for _, c := range s.dirty {
		t.vacate(m, c)
	}
	for _, c := range s.dirty {
		if !t.occupy(m, c) {
			return false
		}
	}
	for _, n := range from.members {
		// The cells of the smaller base have their occupations in its own tree, which stays as it
		// is for an undo. In the larger tree they get new ones.
		for i := range s.values[n].grid.cells {
			c := cellRef{n, int32(i)}
			t.log.heads = append(t.log.heads, cellHead{c, s.values[n].grid.cells[i].nodes})
			s.values[n].grid.cells[i].nodes = 0
			if !t.occupy(m, c) {
				return false
			}
		}
	}
	m.first, m.last = into.first, into.last
	if m.tree != 0 {
		all := &s.forest.nodes[m.tree].all
		m.first, m.last = all.t0>>1, all.t1>>1
	}
	// Nothing may live there before the caller's matrix arrives.
	// What is freed early by a placed term can begin before the matrix that the caller hands in
	// exists.
	given := max(into.given, from.given)
	return given < 0 || m.first >= s.values[given].done
}

// align records term k if the merge places it. It reports false if the term can't be placed.
func (t *transaction) align(m *merge, k int32) bool {
	s := t.s
	if term := &s.terms[k]; term.placed || !s.coincides(term) {
		return true
	}
	if !s.canPlace(k) {
		// Remember the reason under the pair of bases and the offset; failsAgain looks here first.
		s.failed[m.name()] = witness{k: k}
		return false
	}
	t.log.placed = append(t.log.placed, k)
	return true
}

// touch lists the cells of value n in r whose occupations a merge may change, and if shown is true
// those of values that show them. It skips the smaller base, all of whose cells change.
func (s *Storage) touch(n int32, r Rect, shown bool) {
	v := &s.values[n]
	for at, c := range v.grid.over(r) {
		// A cell that shows a part of another one occupies nothing under its own name: the place
		// belongs to the source. So if the source changes, all that show it change, transitively.
		// The second mark ends the recursion on values that show each other's parts by several
		// ways.
		if c.mark < s.epoch {
			c.mark = s.epoch
			if v.base == s.trial.into {
				s.dirty = append(s.dirty, cellRef{n, at})
			}
		}
		if shown && c.mark == s.epoch && s.shows(c) {
			c.mark++
			s.touchShown(v, c)
		}
	}
}

// touchShown visits the cells that show a cell of value v. It recurses into parts of parts.
func (s *Storage) touchShown(v *value, c *cell) {
	for _, i := range c.reads {
		k := v.reads[i].term
		if k < 0 || !s.placedUnscaled(&s.terms[k]) {
			continue
		}
		t := &s.terms[k]
		s.touch(t.dst, c.rect.intersect(t.Src()).Shift(t.DstRow-t.SrcRow, t.DstCol-t.SrcCol), true)
	}
}

// vacate removes the occupations of a cell from the tree.
func (t *transaction) vacate(m *merge, ref cellRef) {
	c := &t.s.values[ref.n].grid.cells[ref.i]
	t.log.heads = append(t.log.heads, cellHead{ref, c.nodes})
	for n := c.nodes; n != 0; n = t.s.forest.nodes[n].next {
		m.tree = t.s.forest.remove(m.tree, n)
		t.log.removed = append(t.log.removed, n)
	}
	c.nodes = 0
}

// occupy inserts the occupations of a cell into the tree. It reports false if they clash.
func (t *transaction) occupy(m *merge, ref cellRef) bool {
	s := t.s
	s.occs = s.appendOccupations(s.occs[:0], ref.n, ref.i)
	for i := range s.occs {
		if n := s.forest.clash(m.tree, &s.occs[i]); n != 0 {
			s.failed[m.name()] = witness{k: -1, x: ref, y: s.forest.nodes[n].owner}
			return false
		}
		n := s.forest.add(s.occs[i], ref)
		c := &s.values[ref.n].grid.cells[ref.i]
		s.forest.nodes[n].next, c.nodes = c.nodes, n
		m.tree = s.forest.insert(m.tree, n)
		t.log.made = append(t.log.made, n)
	}
	return true
}

// untry undoes what try did.
func (t *transaction) untry(m *merge) {
	s := t.s
	into := &s.bases[m.into]
	if len(t.log.made) > m.made || len(t.log.removed) > m.removed {
		// In any order: a treap's shape follows from the keys and ranks of its nodes, so this gives
		// the tree from before.
		root := m.tree
		for _, n := range t.log.made[m.made:] {
			root = s.forest.remove(root, n)
			s.forest.release(n)
		}
		for _, n := range t.log.removed[m.removed:] {
			root = s.forest.insert(root, n)
		}
		into.tree = root
	}
	// Backward, because a cell may be in the log twice, and the first entry is the oldest.
	for i := len(t.log.heads) - 1; i >= m.heads; i-- {
		h := t.log.heads[i]
		s.values[h.n].grid.cells[h.i].nodes = h.nodes
	}
	t.log.placed, t.log.heads = t.log.placed[:m.placed], t.log.heads[:m.heads]
	t.log.removed, t.log.made = t.log.removed[:m.removed], t.log.made[:m.made]
}

// finish completes a merge after try.
func (t *transaction) finish(m *merge) {
	s := t.s
	into, from := &s.bases[m.into], &s.bases[m.from]
	t.book(m.into, -1)
	t.book(m.from, -1)
	for _, k := range t.log.placed[m.placed:] {
		s.terms[k].placed = true
	}
	for _, n := range from.members {
		v := &s.values[n]
		v.base, v.r, v.c = m.into, v.r+m.dr, v.c+m.dc
	}
	m.before = *into
	into.members = append(into.members, from.members...)
	into.rect = into.rect.union(from.rect.Shift(m.dr, m.dc))
	into.exact, into.given, into.span = max(into.exact, from.exact), max(into.given, from.given), into.span || from.span
	into.weight += from.weight
	into.tree = m.tree
	into.first, into.last = m.first, m.last
	from.gone = true
	// The stamp makes refusals that rest on the former base obsolete.
	s.stamp++
	into.stamp = s.stamp
	t.book(m.into, 1)
	t.merges = append(t.merges, *m)
}

// undo undoes a merge. Later merges must have been undone before.
func (t *transaction) undo(m *merge) {
	s := t.s
	into, from := &s.bases[m.into], &s.bases[m.from]
	s.book(m.into, -1)
	for _, k := range t.log.placed[m.placed:] {
		s.terms[k].placed = false
	}
	for _, n := range from.members {
		v := &s.values[n]
		v.base, v.r, v.c = m.from, v.r-m.dr, v.c-m.dc
	}
	m.tree = into.tree
	t.untry(m)
	m.before.tree = into.tree
	*into = m.before
	from.gone = false
	s.book(m.into, 1)
	s.book(m.from, 1)
}
