package lower

import "github.com/nnopt/nnopt/fgraph"

// A transaction is a group of merges of bases that is kept or undone as a whole.
type transaction struct {
	s      *Storage
	merges []merge
	budget int64
	alone  bool // there is only one merge
	log    mergeLog
	books  []booking // what the merges did to the bytes in use
}

// begin starts a group of merges, of which only one may be open at a time.
func (s *Storage) begin() *transaction {
	t := &s.open
	t.s, t.budget, t.alone = s, s.peak.max(), false
	t.merges, t.log, t.books = t.merges[:0], t.log.emptied(), t.books[:0]
	return t
}

// commit keeps the merges if the peak of the bytes in use is not above that at begin, and undoes
// them otherwise. It reports whether it kept any.
func (t *transaction) commit() bool {
	if len(t.merges) == 0 {
		return false
	}
	// All or nothing: a group may pay for its first merges with the savings of its last ones.
	if t.s.peak.max() > t.budget {
		t.rollback()
		return false
	}
	// Until here every node of the old trees was kept for an undo. Now those that left a tree are
	// free, and so are the trees of the bases that are part of others.
	for _, n := range t.log.removed {
		t.s.forest.release(n)
	}
	for i := range t.merges {
		from := &t.s.bases[t.merges[i].from]
		t.s.forest.releaseTree(from.tree)
		from.tree, from.members = 0, nil
	}
	t.s.kept += len(t.merges)
	t.merges, t.log = t.merges[:0], t.log.emptied()
	return true
}

// rollback undoes the merges.
func (t *transaction) rollback() {
	// In reverse, because a merge may have moved what an earlier one merged.
	for i := len(t.merges) - 1; i >= 0; i-- {
		t.undo(&t.merges[i])
	}
	t.merges = t.merges[:0]
}

// placeTerm is transaction.placeTerm as a transaction of its own.
func (s *Storage) placeTerm(k int) bool {
	t := s.begin()
	t.alone = true
	return t.placeTerm(k) && (len(t.merges) == 0 || t.commit())
}

// placeInPlace is transaction.placeInPlace as a transaction of its own.
func (s *Storage) placeInPlace(i int) bool {
	t := s.begin()
	t.alone = true
	return t.placeInPlace(i) && t.commit()
}

// PlaceInPlace lets ops write their outputs over the inputs that they may destroy, if that does not
// raise the peak of the bytes in use. It returns how many ops run in place.
func (s *Storage) PlaceInPlace() int {
	n := 0
	if s.slotOf != nil {
		// Slots hold the sizes of bases, so bases must not change once there are slots.
		return n // the matrices are divided already
	}
	for i := range s.applies {
		if s.placeInPlace(i) {
			n++
		}
	}
	return n
}

// placeTerm tries to let the source of term k live where the term would move it. It reports whether
// the term is placed now. The source of a scaled term is then scaled in place.
func (t *transaction) placeTerm(k int) bool {
	s := t.s
	term := &s.terms[k]
	if term.placed {
		return true
	}
	if term.constant || !term.Contiguous() {
		return false
	}
	return t.merge(term.dst, term.src, term.DstRow-term.SrcRow, term.DstCol-term.SrcCol, int32(k))
}

// placeInPlace tries to let the matrix output of apply i live where the input that the op may
// destroy lives. It reports whether the op now runs in place.
func (t *transaction) placeInPlace(i int) bool {
	s := t.s
	for _, out := range s.applies[i].Outputs() {
		n := s.valueOf[out.ID()]
		if n < 0 || s.values[n].over < 0 {
			continue
		}
		v := &s.values[n]
		return t.merge(v.over, n, v.overRect.R0, v.overRect.C0, -1)
	}
	return false
}

// destroyed returns the number of the input that output o of the apply may overwrite, or -1.
func destroyed(a *fgraph.Apply, o int) int {
	d, ok := a.Op().(fgraph.Destroyer)
	if !ok {
		return -1
	}
	for _, m := range d.DestroyMap() {
		if m.Output == o {
			return m.Input
		}
	}
	return -1
}
