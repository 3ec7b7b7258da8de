package lower

import "slices"

// slot is a matrix of the emitted computation: bases one after the other, or side by side.
type slot struct {
	bases       []int32 // in order of time
	rows, cols  int32
	first, last int32 // events
	fixed       bool  // the caller owns the matrix at one end, so its size can't change
	taken       bool  // the caller takes the matrix, so nothing may follow
	given       bool  // the caller or another segment hands the matrix in, so nothing may come before
	// carriedIn and carriedOut are the matrices that the segment takes and hands over, or 0.
	carriedIn, carriedOut int32
}

// makeSlots gives every base a slot of its own, in order of the bases' lives.
func (s *Storage) makeSlots() {
	if s.slotOf != nil {
		return
	}
	s.slotOf = make([]int32, len(s.bases))
	s.slotRow, s.slotCol = make([]int32, len(s.bases)), make([]int32, len(s.bases))
	var order []int32
	for b := range s.bases {
		if !s.bases[b].gone {
			order = append(order, int32(b))
		}
	}
	sortBy(order, func(b int32) int64 { return int64(s.bases[b].first)<<32 | int64(b) })
	for _, b := range order {
		s.slotOf[b] = int32(len(s.slots))
		p := &s.bases[b]
		o := slot{bases: []int32{b}, rows: p.rect.Rows(), cols: p.rect.Cols(), first: p.first, last: p.last}
		s.demands(p, &o)
		s.slots = append(s.slots, o)
	}
}

// demands adds to a slot what the members of a base demand of it.
func (s *Storage) demands(p *base, o *slot) {
	for _, n := range p.members {
		v := &s.values[n]
		o.fixed = o.fixed || v.exact
		o.taken = o.taken || v.leaves
		o.given = o.given || v.kind == accepted
		o.carriedIn, o.carriedOut = max(o.carriedIn, v.carriedIn), max(o.carriedOut, v.carriedOut)
	}
}

func (s *Storage) bookSlot(q *slot, sign int64) {
	s.peak.add(q.first, q.last, sign*4*int64(q.rows)*int64(q.cols))
}

// absorb makes slots o and k one of the given size, where the bases of k are moved by (dr, dc),
// unless that raises the peak above the budget. It reports whether it did.
func (s *Storage) absorb(o, k, rows, cols, dr, dc int32, budget int64) bool {
	q, own := &s.slots[o], &s.slots[k]
	// Book the union on trial. The peak tree answers in constant time, so trying is as cheap as any
	// estimate of the outcome would be.
	s.bookSlot(q, -1)
	s.bookSlot(own, -1)
	old := *q
	q.rows, q.cols, q.first, q.last = rows, cols, min(q.first, own.first), max(q.last, own.last)
	s.bookSlot(q, 1)
	if s.peak.max() > budget {
		s.bookSlot(q, -1)
		*q = old
		s.bookSlot(q, 1)
		s.bookSlot(own, 1)
		return false
	}
	for _, b := range own.bases {
		s.slotOf[b] = o
		s.slotRow[b] += dr
		s.slotCol[b] += dc
	}
	q.bases = append(q.bases, own.bases...)
	// What comes later decides how the slot ends: own follows q in time, or both are free of
	// demands (Pack).
	q.fixed, q.taken, q.carriedOut = q.fixed || own.fixed, own.taken, own.carriedOut
	own.bases = nil
	return true
}

// packTries bounds how many matrices Pack tries to join a matrix to.
const packTries = 16

// Pack joins matrices that are in use at the same time, if that does not raise the peak of the
// bytes in use: first matrices of equal width on top of each other, then matrices of equal height
// side by side. It returns how many matrices it saved.
func (s *Storage) Pack() int {
	s.makeSlots()
	budget := s.peak.max()
	n := 0
	for _, stack := range [2]bool{true, false} {
		// Only slots of one width can be stacked without waste. Within a width, those that begin at
		// about the same time are neighbors in the order, so a slot is tried against the latest
		// few; the others hardly overlap in time, where stacking would raise the peak.
		key := func(k int32) int64 {
			q := &s.slots[k]
			side := q.cols
			if !stack {
				side = q.rows
			}
			return int64(side)<<32 | int64(q.first)
		}
		var order []int32
		for k := range s.slots {
			if q := &s.slots[k]; q.bases != nil && !q.fixed && (stack || !s.spansAny(q.bases)) {
				order = append(order, int32(k))
			}
		}
		sortBy(order, key)
		var open []int32 // the latest matrices of the present width, or height
		for _, k := range order {
			if len(open) > 0 && key(open[0])>>32 != key(k)>>32 {
				open = open[:0]
			}
			joined := false
			for i := len(open) - 1; i >= max(0, len(open)-packTries) && !joined; i-- {
				joined = s.join(open[i], k, stack, budget)
			}
			if joined {
				n++
			} else {
				open = append(open, k)
			}
		}
	}
	return n
}

// join puts slot k below slot o, or beside it, unless that raises the peak above the budget.
func (s *Storage) join(o, k int32, stack bool, budget int64) bool {
	q, own := &s.slots[o], &s.slots[k]
	if stack {
		return s.absorb(o, k, q.rows+own.rows, q.cols, q.rows, 0, budget)
	}
	return s.absorb(o, k, q.rows, q.cols+own.cols, 0, q.cols, budget)
}

func (s *Storage) spansAny(bases []int32) bool {
	return slices.ContainsFunc(bases, func(b int32) bool { return s.bases[b].span })
}
