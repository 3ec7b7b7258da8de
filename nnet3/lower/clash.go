package lower

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
