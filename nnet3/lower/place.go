package lower

import "github.com/nnopt/nnopt/fgraph"

// A Transaction is a group of merges of bases that is kept or undone as one.
type Transaction struct {
	s      *Storage
	merges []merge
	budget int64
	alone  bool // there will be one merge only
	log    mergeLog
	books  []booking // what the merges did to the bytes in use
}

// Begin starts a group of merges. Only one group may be open at a time, and it is not to be used after its end.
func (s *Storage) Begin() *Transaction {
	t := &s.open
	t.s, t.budget, t.alone = s, s.peak.max(), false
	t.merges, t.log, t.books = t.merges[:0], t.log.emptied(), t.books[:0]
	return t
}

// Commit keeps the merges if the peak of bytes in use is not above what it was at Begin, and undoes them otherwise. It
// reports whether it kept any.
func (t *Transaction) Commit() bool {
	if len(t.merges) == 0 {
		return false
	}
	if t.s.peak.max() > t.budget {
		t.Rollback()
		return false
	}
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

// Rollback undoes the merges.
func (t *Transaction) Rollback() {
	for i := len(t.merges) - 1; i >= 0; i-- {
		t.undo(&t.merges[i])
	}
	t.merges = t.merges[:0]
}

// Kept is how many merges were kept. As long as that stays the same, what was refused would be refused again.
func (s *Storage) Kept() int { return s.kept }

// PlaceTerm is Transaction.PlaceTerm as a transaction of its own.
func (s *Storage) PlaceTerm(k int) bool {
	t := s.Begin()
	t.alone = true
	return t.PlaceTerm(k) && (len(t.merges) == 0 || t.Commit())
}

// PlaceInPlace is Transaction.PlaceInPlace as a transaction of its own.
func (s *Storage) PlaceInPlace(i int) bool {
	t := s.Begin()
	t.alone = true
	return t.PlaceInPlace(i) && t.Commit()
}

// NumTerms is the number of terms of all Assembles of the program.
func (s *Storage) NumTerms() int { return len(s.terms) }

// Assembled calls f for every assembled value, with its size in elements and its terms [lo, hi).
func (s *Storage) Assembled(f func(elements int64, lo, hi int)) {
	for n := range s.values {
		if v := &s.values[n]; v.kind == assembled {
			f(int64(v.rows)*int64(v.cols), int(v.terms[0]), int(v.terms[1]))
		}
	}
}

// TermElements is how many elements term k moves.
func (s *Storage) TermElements(k int) int64 {
	t := &s.terms[k]
	return int64(t.NumRows) * int64(t.NumCols)
}

// TermScaled reports whether term k scales what it moves.
func (s *Storage) TermScaled(k int) bool { return s.terms[k].Scale != 1 }

// TermPlaced reports whether term k needs no move any more.
func (s *Storage) TermPlaced(k int) bool { return s.terms[k].placed }

// PlaceTerm tries to let the source of term k live where the term would move it, so that nothing needs to be moved. It
// reports whether that is so now. A scaled term can be placed too: the scaling is then done where the source lies.
func (t *Transaction) PlaceTerm(k int) bool {
	s := t.s
	term := &s.terms[k]
	if term.placed {
		return true
	}
	if term.constant || !term.Contiguous() {
		return false
	}
	return t.merge(term.lin, term.src, term.DstRow-term.SrcRow, term.DstCol-term.SrcCol, int32(k))
}

// NumApplies is the number of applies that the storage knows, in topological order.
func (s *Storage) NumApplies() int { return len(s.applies) }

// PlaceInPlace tries to let the matrix output of apply i live where the input lies that the op may destroy. It reports
// whether the op runs in place now.
func (t *Transaction) PlaceInPlace(i int) bool {
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

// destroyed is the number of the input that output o of the apply may be computed over, or -1.
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
