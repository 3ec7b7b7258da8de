package lower

import "slices"

// A refusal says why terms were not placed as one: what that would have done to the bytes in use, or at least would have done.
// As long as the bases concerned are as they were, it would do the same again.
type refusal struct {
	bases []baseMark
	books []booking // none where no term could be placed at all
}

// baseMark is a base as it is after a merge.
type baseMark struct{ base, stamp int32 }

// booking is bytes that are in use from one event to another.
type booking struct {
	first, last int32
	bytes       int64
}

// PlaceAll tries to place the terms [lo, hi), which make one value, as one: they are placed as far as that is possible, the
// unscaled ones first, and if the peak of the bytes in use is above what it was then, none of them is. It reports whether any is.
func (s *Storage) PlaceAll(lo, hi int) bool {
	if r := s.refusals[lo]; r != nil && s.refusesAgain(r, lo, hi) {
		return false
	}
	t := s.Begin()
	if t.affordsAll(lo, hi) {
		for _, scaled := range [2]bool{false, true} { // an unscaled part in place saves a command, a scaled one only memory
			for k := lo; k < hi; k++ {
				if s.TermScaled(k) == scaled {
					t.PlaceTerm(k)
				}
			}
		}
		if len(t.merges) > 0 && s.peak.max() <= t.budget {
			return t.Commit()
		}
	}
	t.Rollback()
	s.refuse(lo, refusal{slices.Clone(s.marks(lo, hi)), slices.Clone(t.books)}) // the bases are again as they were
	return false
}

func (s *Storage) refuse(lo int, r refusal) {
	if s.refusals == nil {
		s.refusals = make(map[int]*refusal)
	}
	s.refusals[lo] = &r
}

// marks lists the bases that placing the terms depends on: that of the value, and those of what the terms take. The list is good
// until it is asked for again.
func (s *Storage) marks(lo, hi int) []baseMark {
	list := s.marked[:0]
	add := func(n int32) {
		if b := s.values[n].base; b >= 0 {
			list = append(list, baseMark{b, s.bases[b].stamp})
		}
	}
	add(s.terms[lo].lin)
	for k := lo; k < hi; k++ {
		if !s.terms[k].constant {
			add(s.terms[k].src)
		}
	}
	s.marked = list
	return list
}

// refusesAgain reports whether the reason of a refusal still holds.
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

// affordsAll reports whether the peak of the bytes in use stays within the budget if all of the terms [lo, hi) are placed that may
// be. If it does not, that is booked. Most groups that are refused are refused here, which is much cheaper than to try.
func (t *Transaction) affordsAll(lo, hi int) bool {
	s := t.s
	lin := &s.values[s.terms[lo].lin]
	if lin.base < 0 {
		return true
	}
	home := &s.bases[lin.base]
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
		union = union.Union(from.rect.Shift(m.dr, m.dc))
		first, last = min(first, from.first), max(last, from.last)
	}
	if union == home.rect && first == home.first && last == home.last {
		s.unbook(t.books)
		t.books = t.books[:0]
		return true
	}
	t.book(lin.base, -1)
	t.books = append(t.books, booking{first, last, 4 * union.Area()})
	s.peak.add(first, last, 4*union.Area())
	above := s.peak.max() > t.budget
	s.unbook(t.books)
	if !above {
		t.books = t.books[:0]
	}
	return !above
}

// mergeToPlace is the merge that would place term k, into the base of its value. ok is false where it is bound to fail, or where there
// is nothing to merge.
func (s *Storage) mergeToPlace(k int32) (m merge, ok bool) {
	t := &s.terms[k]
	if t.placed || t.constant || !t.Contiguous() {
		return m, false
	}
	lin, src := &s.values[t.lin], &s.values[t.src]
	if src.base < 0 || src.base == lin.base {
		return m, false
	}
	m = merge{into: lin.base, from: src.base, dr: lin.r + t.DstRow - t.SrcRow - src.r, dc: lin.c + t.DstCol - t.SrcCol - src.c}
	if !s.fits(&m) || !s.canPlace(k) {
		return m, false
	}
	s.trial = trial{m.into, m.from, m.dr, m.dc}
	ok = !s.clashesNear(t.src, k)
	s.trial = noTrial
	return m, ok
}

// unbook takes bookings back.
func (s *Storage) unbook(books []booking) {
	for _, b := range books {
		s.peak.add(b.first, b.last, -b.bytes)
	}
}

// book is Storage.book, noted down.
func (t *Transaction) book(b int32, sign int64) {
	p := &t.s.bases[b]
	t.books = append(t.books, booking{p.first, p.last, sign * 4 * p.rect.Area()})
	t.s.book(b, sign)
}
