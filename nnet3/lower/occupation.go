package lower

// Event e reads at time 2e and writes at time 2e, or at 2e+1 if it writes in place of what it
// reads. An op that may overwrite an operand reads its other operands until 2e+1, so that its
// output shares elements with that one operand only. A read by a placed term ends at 2e-1.
//
// What a cell occupies depends on where other values live: on which terms are placed and which ops
// run in place. A merge on trial (Storage.trial) counts as done.

// trial is a merge on trial: members of base from count as members of into, moved by (dr, dc).
type trial struct {
	into, from int32
	dr, dc     int32
}

var noTrial = trial{into: -2, from: -2}

// baseOf returns the base that value n lives in, -1 for none.
func (s *Storage) baseOf(n int32) int32 {
	b := s.values[n].base
	if b == s.trial.from {
		return s.trial.into
	}
	return b
}

// place returns the rectangle of value n in its base.
func (s *Storage) place(n int32) Rect {
	v := &s.values[n]
	r := Rect{v.r, v.r + v.rows, v.c, v.c + v.cols}
	if v.base == s.trial.from {
		r = r.Shift(s.trial.dr, s.trial.dc)
	}
	return r
}

// isPlaced reports whether the source of term k lives where the term would put it.
func (s *Storage) isPlaced(k int32) bool {
	t := &s.terms[k]
	return t.placed || s.trial.from >= 0 && s.coincides(t)
}

// coincides reports whether the merge on trial places a term.
func (s *Storage) coincides(t *term) bool {
	if t.constant || !t.Contiguous() {
		return false
	}
	dst, src := &s.values[t.dst], &s.values[t.src]
	dr, dc := dst.r+t.DstRow-src.r-t.SrcRow, dst.c+t.DstCol-src.c-t.SrcCol
	switch {
	case dst.base == s.trial.from && src.base == s.trial.into:
		return dr == -s.trial.dr && dc == -s.trial.dc
	case dst.base == s.trial.into && src.base == s.trial.from:
		return dr == s.trial.dr && dc == s.trial.dc
	}
	return false
}

// inPlace reports whether the op that makes value n overwrites an input with it.
func (s *Storage) inPlace(n int32) bool {
	v := &s.values[n]
	if v.over < 0 || s.baseOf(v.over) != s.baseOf(n) {
		return false
	}
	in := s.place(v.over)
	return v.overRect.Shift(in.R0, in.C0) == s.place(n)
}

// startOf returns the time at which an op, a fill or the caller writes value n.
func (s *Storage) startOf(n int32) int32 {
	v := &s.values[n]
	if v.kind == computed && s.inPlace(n) {
		return 2*v.done + 1
	}
	return 2 * v.done
}

// endOf returns the time of the last read that needs the cell unchanged.
func (s *Storage) endOf(n int32, c *cell) int32 {
	v := &s.values[n]
	if v.leaves {
		return 2*s.numEvents - 1
	}
	end := 2 * v.done
	if v.kind != assembled {
		end = s.startOf(n)
	}
	for i, k := range c.reads {
		r := &v.reads[k]
		if i > 0 && r.event < v.reads[c.reads[i-1]].event {
			// The reads are the last first, and a read of an earlier event can't reach beyond one
			// of a later event even if the later one ends half a step early, as a placed one does.
			break // earlier reads end earlier, placed or not
		}
		t := 2 * r.event
		switch {
		case r.beside:
			t++
		case r.term >= 0 && s.isPlaced(r.term):
			t-- // from here on the place belongs to the assembled value
		}
		end = max(end, t)
	}
	return end
}

// firstTerm returns the first term in time of a cell, among several the placed one.
func (s *Storage) firstTerm(c *cell) *term {
	first := &s.terms[c.terms[0]]
	for _, k := range c.terms {
		t := &s.terms[k]
		if t.event != first.event {
			break
		}
		if s.isPlaced(k) {
			return t
		}
	}
	return first
}

// appendOccupations appends the occupations of cell i of value n in its base.
func (s *Storage) appendOccupations(dst []occupation, n, i int32) []occupation {
	v := &s.values[n]
	c := &v.grid.cells[i]
	place := s.place(n)
	at := c.rect.Shift(place.R0, place.C0)
	end := s.endOf(n, c)
	if v.kind != assembled {
		return append(dst, occupation{box{at, s.startOf(n), end}, n})
	}
	// Nothing writes there before the value is complete and the rest is zeroed.
	if len(c.terms) == 0 {
		return append(dst, occupation{box{at, 2 * v.done, max(end, 2*v.done)}, n})
	}
	first := s.firstTerm(c)
	if !s.placedUnscaled(first) {
		return append(dst, occupation{box{at, 2 * first.event, end}, n})
	}
	// The place holds the source's data from the moment the term would have moved it, until a
	// second term adds to it. For that time the occupation has the source as its root, so source
	// and value, which hold the same data, may overlap; from the second term on it is the value's
	// own, and clashes with whatever still reads the source.
	alias := end // the time until which the place holds data of the source
	if len(c.terms) > 1 {
		second := s.terms[c.terms[1]].event
		alias = 2*second - 1
		dst = append(dst, occupation{box{at, 2 * second, end}, n})
	}
	if t0 := 2*first.event - 1; t0 <= alias {
		dst = s.appendAlias(dst, first, at, t0, alias)
	}
	return dst
}

func (s *Storage) placedUnscaled(t *term) bool {
	return t.Scale == 1 && (t.placed || s.trial.from >= 0 && s.coincides(t))
}

// shows reports whether a cell of an assembled value just shows a part of its only term's source.
func (s *Storage) shows(c *cell) bool {
	return len(c.terms) == 1 && s.placedUnscaled(&s.terms[c.terms[0]])
}

// aliased is a rectangle of a base with data of value n.
type aliased struct {
	n int32
	r Rect
}

// appendAlias appends the occupations of a rectangle with data of a placed term's source.
func (s *Storage) appendAlias(dst []occupation, t *term, at Rect, t0, t1 int32) []occupation {
	// The source may itself be assembled and show parts of further values. Data has one name only,
	// that of the value that really holds it, or else two values that show the same part would seem
	// to clash. An explicit stack, because chains of parts are as long as a recurrence.
	stack := append(s.aliases[:0], aliased{t.src, at})
	for len(stack) > 0 {
		p := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		v := &s.values[p.n]
		if v.kind != assembled {
			dst = append(dst, occupation{box{p.r, t0, t1}, p.n})
			continue
		}
		place := s.place(p.n)
		for _, c := range v.grid.over(p.r.Shift(-place.R0, -place.C0)) {
			q := c.rect.Shift(place.R0, place.C0).intersect(p.r)
			if s.shows(c) {
				stack = append(stack, aliased{s.terms[c.terms[0]].src, q})
			} else {
				dst = append(dst, occupation{box{q, t0, t1}, p.n})
			}
		}
	}
	s.aliases = stack
	return dst
}

// canPlace reports whether term k may be placed: in each of its cells it must be the first term and
// the only placed one, and no constant may follow, because no command adds a constant.
func (s *Storage) canPlace(k int32) bool {
	t := &s.terms[k]
	for _, c := range s.values[t.dst].grid.over(t.Dst()) {
		if s.terms[c.terms[0]].event != t.event {
			return false
		}
		for _, o := range c.terms {
			if s.terms[o].constant || o != k && s.isPlaced(o) {
				return false
			}
		}
	}
	return true
}

// failsAgain reports whether a merge failed before for a reason that still holds.
func (s *Storage) failsAgain(name failedMerge) bool {
	w, ok := s.failed[name]
	switch {
	case !ok:
		return false
	// The bases may have changed since. A witness only saves the search: the same fault is tested
	// again under the present trial.
	case w.k >= 0:
		t := &s.terms[w.k]
		return !t.placed && s.coincides(t) && !s.canPlace(w.k)
	case s.baseOf(w.x.n) != s.trial.into || s.baseOf(w.y.n) != s.trial.into:
		return false
	}
	s.occs = s.appendOccupations(s.occs[:0], w.x.n, w.x.i)
	return s.clashesWith(w.y, s.occs)
}

// clashesWith reports whether a cell clashes with one of the occupations.
func (s *Storage) clashesWith(c cellRef, occs []occupation) bool {
	s.others = s.appendOccupations(s.others[:0], c.n, c.i)
	for i := range s.others {
		for j := range occs {
			if s.others[i].clashes(&occs[j]) {
				return true
			}
		}
	}
	return false
}

// clashesNear reports whether placing term k is bound to fail because its end in value n, which
// moves, clashes with something in the other base. Most failing merges fail here.
func (s *Storage) clashesNear(n, k int32) bool {
	t := &s.terms[k]
	// Only the end of the term that is in the moving base matters: that is where its data comes to
	// lie in the other base for the first time.
	r := t.Src()
	if n == t.dst {
		r = t.Dst()
	}
	for at := range s.values[n].grid.over(r) {
		if s.clashesAt(cellRef{n, at}) {
			return true
		}
	}
	return false
}

// samples is how many cells clashesSomewhere tests. Without it, to optimize the backward pass of a
// projected LSTM of 20,000 commands takes 1.4 times as long (Zen 4, November 2026).
const samples = 16

// clashesSomewhere tests a few cells from all over a large base. Two tall bases that do not fit at
// an offset mostly clash in many of their rows.
func (s *Storage) clashesSomewhere() bool {
	from := &s.bases[s.trial.from]
	if from.weight <= 4*samples {
		return false
	}
	for i := range samples {
		n := from.members[i*len(from.members)/samples]
		if cells := len(s.values[n].grid.cells); cells > 0 && s.clashesAt(cellRef{n, int32(i * cells / samples)}) {
			return true
		}
	}
	return false
}

// clashesAt reports whether a moving cell is bound to clash with something in the other base.
func (s *Storage) clashesAt(c cellRef) bool {
	s.occs = s.appendOccupations(s.occs[:0], c.n, c.i)
	for o := range s.occs {
		// The tree holds what was true before the merge.
		node := s.forest.clash(s.bases[s.trial.into].tree, &s.occs[o])
		// Both must be asked as if the merge were done: the merge may place a term that makes the
		// two the same data.
		if node != 0 && s.clashesWith(s.forest.nodes[node].owner, s.occs[o:o+1]) {
			return true
		}
	}
	return false
}
