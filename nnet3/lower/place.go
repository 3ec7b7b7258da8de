package lower

import (
	"cmp"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
)

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

// PlaceTerms lets the sources of terms live where the terms would move them, if that does not raise
// the peak of the bytes in use. It returns the number of terms that need no move.
//
// The first part of a tall value is charged for all of it, so a value whose parts come from many
// places would never be begun part by part. Hence all terms of a value are tried as a group, the
// largest values first. Terms of a refused group are then tried one by one, latest first.
// Everything is tried twice, because one placement can make room for another.
func (s *Storage) PlaceTerms() int {
	if s.slotOf != nil {
		return 0 // the matrices are divided already
	}
	var groups []int32 // assembled values
	for n := range s.values {
		if s.values[n].kind == assembled {
			groups = append(groups, int32(n))
		}
	}
	elements := func(n int32) int64 { return int64(s.values[n].rows) * int64(s.values[n].cols) }
	slices.SortStableFunc(groups, func(a, b int32) int { return cmp.Compare(elements(b), elements(a)) })
	refused := make([]int, len(s.terms)) // by term: how many merges were kept when it was last refused, from 1
	// What is placed first constrains what comes later, so the order decides what fits: values as
	// wholes before parts, and of the values the largest ones first, because they save most.
	for range 2 {
		for _, n := range groups {
			s.placeAll(int(s.values[n].terms[0]), int(s.values[n].terms[1]))
		}
		for k := len(s.terms) - 1; k >= 0; k-- {
			// A refusal stands while no merge was kept since: the same question would get the same
			// answer.
			if !s.terms[k].placed && refused[k] != s.kept+1 && !s.placeTerm(k) {
				refused[k] = s.kept + 1
			}
		}
	}
	n := 0
	for k := range s.terms {
		if s.terms[k].placed {
			n++
		}
	}
	return n
}

// A refusal says why terms were not placed as a group: what that would have done to the bytes in
// use, or a lower bound of it. As long as the bases are the same, it would do so again. To remember
// it saves a sixth of the time to optimize a projected LSTM of 20,000 commands (Zen 4, November
// 2026).
type refusal struct {
	bases []baseMark
	books []booking // none if no term could be placed at all
}

// baseMark identifies the state of a base: the stamp of its last merge.
type baseMark struct{ base, stamp int32 }

// booking is a number of bytes in use from one event to another.
type booking struct {
	first, last int32
	bytes       int64
}

// placeAll tries to place the terms [lo, hi), which make one value, as a group: as many as
// possible, the unscaled ones first. If that raises the peak of the bytes in use, it places none.
// It reports whether it placed any.
func (s *Storage) placeAll(lo, hi int) bool {
	// The second round asks about every refused group again, and mostly nothing has changed. The
	// recorded bookings answer in time proportional to their number.
	if r := s.refusals[lo]; r != nil && s.refusesAgain(r, lo, hi) {
		return false
	}
	t := s.begin()
	if t.affordsAll(lo, hi) {
		for _, scaled := range [2]bool{false, true} { // an unscaled part in place saves a command, a scaled one only memory
			for k := lo; k < hi; k++ {
				if s.terms[k].Scale != 1 == scaled {
					t.placeTerm(k)
				}
			}
		}
		if len(t.merges) > 0 && s.peak.max() <= t.budget {
			return t.commit()
		}
	}
	t.rollback()
	if s.refusals == nil {
		s.refusals = make(map[int]*refusal)
	}
	s.refusals[lo] = &refusal{slices.Clone(s.marks(lo, hi)), slices.Clone(t.books)} // the bases are as they were
	return false
}

// marks lists the bases that placing the terms depends on: that of the value and those of the
// sources. The list is valid until the next call.
func (s *Storage) marks(lo, hi int) []baseMark {
	list := s.marked[:0]
	add := func(n int32) {
		if b := s.values[n].base; b >= 0 {
			list = append(list, baseMark{b, s.bases[b].stamp})
		}
	}
	add(s.terms[lo].dst)
	for k := lo; k < hi; k++ {
		if !s.terms[k].constant {
			add(s.terms[k].src)
		}
	}
	s.marked = list
	return list
}

// refusesAgain reports whether a refusal still holds.
func (s *Storage) refusesAgain(r *refusal, lo, hi int) bool {
	if !slices.Equal(r.bases, s.marks(lo, hi)) {
		return false
	}
	if len(r.books) == 0 {
		return true
	}
	budget := s.peak.max()
	for _, b := range r.books {
		s.peak.add(b.first, b.last, b.bytes)
	}
	above := s.peak.max() > budget
	s.unbook(r.books)
	return above
}

// affordsAll reports whether the peak of the bytes in use stays within the budget if all terms of
// [lo, hi) that may be placed are placed. If not, it leaves the bookings in t.books. Most groups
// are refused here, which is much cheaper than trying them.
func (t *transaction) affordsAll(lo, hi int) bool {
	s := t.s
	dst := &s.values[s.terms[lo].dst]
	if dst.base < 0 {
		return true
	}
	home := &s.bases[dst.base]
	// Charge what the merged base would take, for as long as it would live, and take back what the
	// single bases take. Each base is counted once though several terms may come from it; marks of
	// this epoch tell.
	union, first, last := home.rect, home.first, home.last
	s.epoch += 2
	home.mark = s.epoch
	for k := lo; k < hi; k++ {
		m, ok := s.mergeToPlace(int32(k))
		if !ok || s.bases[m.from].mark == s.epoch {
			continue
		}
		from := &s.bases[m.from]
		from.mark = s.epoch
		t.book(m.from, -1)
		union = union.union(from.rect.Shift(m.dr, m.dc))
		first, last = min(first, from.first), max(last, from.last)
	}
	// The base of the value neither grows nor lives longer. Merging then only frees memory.
	if union == home.rect && first == home.first && last == home.last {
		s.unbook(t.books)
		t.books = t.books[:0]
		return true
	}
	t.book(dst.base, -1)
	t.books = append(t.books, booking{first, last, 4 * union.area()})
	s.peak.add(first, last, 4*union.area())
	above := s.peak.max() > t.budget
	s.unbook(t.books)
	if !above {
		t.books = t.books[:0]
	}
	return !above
}

// mergeToPlace returns the merge into the base of its value that would place term k. ok is false if
// it is bound to fail, or if there is nothing to merge.
func (s *Storage) mergeToPlace(k int32) (m merge, ok bool) {
	t := &s.terms[k]
	if t.placed || t.constant || !t.Contiguous() {
		return m, false
	}
	dst, src := &s.values[t.dst], &s.values[t.src]
	if src.base < 0 || src.base == dst.base {
		return m, false
	}
	m = merge{into: dst.base, from: src.base, dr: dst.r + t.DstRow - t.SrcRow - src.r, dc: dst.c + t.DstCol - t.SrcCol - src.c}
	if !s.fits(&m) || !s.canPlace(k) {
		return m, false
	}
	s.trial = trial{m.into, m.from, m.dr, m.dc}
	ok = !s.clashesNear(t.src, k)
	s.trial = noTrial
	return m, ok
}

// unbook undoes bookings.
func (s *Storage) unbook(books []booking) {
	for _, b := range books {
		s.peak.add(b.first, b.last, -b.bytes)
	}
}

// book is Storage.book with a record in t.books.
func (t *transaction) book(b int32, sign int64) {
	p := &t.s.bases[b]
	t.books = append(t.books, booking{p.first, p.last, sign * 4 * p.rect.area()})
	t.s.book(b, sign)
}
