package lower

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/internal/heap"
)

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

// Reuse lets a matrix take over the memory of another whose life ended before, if that does not
// raise the peak of the bytes in use. Among several candidates it chooses the one that costs the
// fewest bytes over time. It returns how many matrices it saved: none if it, or Pack, ran before.
func (s *Storage) Reuse() int {
	if s.slotOf != nil {
		return 0
	}
	s.makeSlots()
	n := 0
	// Slots come in the order in which their lives begin, so the candidates are those whose lives
	// are over, and no slot has to be inserted between two others. For matrices of one size the
	// greedy choice would be optimal; with several sizes it is a heuristic, which the budget keeps
	// from doing harm.
	budget := s.peak.max()
	pool := &slotPool{s: s, shapes: make(map[slotShape]int32)}
	for k := range s.slots {
		b := s.slots[k].bases[0]
		pool.advance(s.bases[b].first)
		best, at := pool.best(b)
		q, own := &s.slots[max(best, 0)], &s.slots[k]
		if best >= 0 && s.absorb(best, int32(k), max(q.rows, own.rows), max(q.cols, own.cols), 0, 0, budget) {
			pool.take(at)
			pool.add(best)
			n++
		} else {
			pool.add(int32(k))
		}
	}
	return n
}

// reuseCost returns how many bytes times events more base b takes in slot o than in a slot of its
// own. ok is false if it can't be in o.
func (s *Storage) reuseCost(o, b int32) (cost int64, ok bool) {
	q, p, own := &s.slots[o], &s.bases[b], &s.slots[s.slotOf[b]]
	if q.last >= p.first || q.taken || own.given {
		return 0, false
	}
	if q.carriedIn > 0 && own.taken && own.carriedOut != q.carriedIn {
		return 0, false // the next iteration of a loop finds its input in that matrix
	}
	// Best of all: an iteration leaves its state where the next one looks for it, so that no swap
	// is needed at the end of the loop.
	if q.carriedIn > 0 && own.carriedOut == q.carriedIn && own.rows == q.rows && own.cols == q.cols {
		return math.MinInt64, true // the next iteration finds its input in place
	}
	rows, cols := max(q.rows, p.rect.Rows()), max(q.cols, p.rect.Cols())
	if q.fixed && (rows != q.rows || cols != q.cols) || own.fixed && (rows != p.rect.Rows() || cols != p.rect.Cols() || !own.taken) {
		return 0, false
	}
	// A matrix that must span its width can't be in a wider one.
	if cols != q.cols && s.spansAny(q.bases) || cols != p.rect.Cols() && s.spansAny(own.bases) {
		return 0, false
	}
	// The shared slot is in use from the beginning of the first to the end of the second, with the
	// larger size. What both would have taken by themselves is saved. The difference in bytes times
	// events is what may later push the peak up, even if it doesn't now.
	after := int64(rows) * int64(cols) * int64(p.last-q.first+1)
	before := int64(q.rows)*int64(q.cols)*int64(q.last-q.first+1) + p.rect.area()*int64(p.last-p.first+1)
	return after - before, true
}

// slotPool finds the best slot for a base to follow. Slots of one shape differ only in time, so
// they are in one list by their ends, of which only the last few are considered.
type slotPool struct {
	s      *Storage
	busy   heap.Heap[int64] // slots whose lives are not over, by their ends; of equal ends the highest number comes first
	shapes map[slotShape]int32
	over   [][]int32 // by shape: slots whose lives are over, in order of their ends
}

// slotShape is what decides, apart from time, whether a base may follow a slot.
type slotShape struct {
	rows, cols  int32
	fixed, span bool
	carriedIn   int32
}

// reuseTries bounds how many slots of one shape are considered for a base.
const reuseTries = 64

// add makes slot k a candidate once its life is over.
func (p *slotPool) add(k int32) {
	if q := &p.s.slots[k]; !q.taken {
		p.busy.Push(int64(q.last)<<32-int64(k), k)
	}
}

// advance makes candidates of the slots that ended before event first. Events must not go back.
func (p *slotPool) advance(first int32) {
	for len(p.busy) > 0 && p.s.slots[p.busy[0].N].last < first {
		k := p.busy.Pop().N
		q := &p.s.slots[k]
		shape := slotShape{q.rows, q.cols, q.fixed, p.s.spansAny(q.bases), q.carriedIn}
		n := number(p.shapes, shape, &p.over, nil)
		p.over[n] = append(p.over[n], k)
	}
}

// poolSpot is a position in slotPool.over.
type poolSpot struct{ shape, i int }

// best returns the best slot for base b to follow, -1 for none, and its position.
func (p *slotPool) best(b int32) (int32, poolSpot) {
	var at poolSpot
	best, bestCost := int32(-1), int64(0)
	for n, list := range p.over {
		for i := len(list) - 1; i >= max(0, len(list)-reuseTries); i-- {
			k := list[i]
			cost, ok := p.s.reuseCost(k, b)
			// The list is in the order of ends, and the least possible cost grows with the gap
			// between the two lives. So the first slot that must cost more than the best one ends
			// the search of its shape. Whether a slot is possible at all depends on the shape
			// alone.
			if !ok || best >= 0 && p.s.leastCost(k, b) > bestCost {
				break // nor does any that ended before
			}
			if best < 0 || cost < bestCost || cost == bestCost && k < best {
				at, best, bestCost = poolSpot{n, i}, k, cost
			}
		}
	}
	return best, at
}

// take removes a slot that is reused.
func (p *slotPool) take(at poolSpot) {
	p.over[at.shape] = slices.Delete(p.over[at.shape], at.i, at.i+1)
}

// leastCost is a lower bound of the cost of b in a slot of k's shape that ended no later than k.
func (s *Storage) leastCost(k, b int32) int64 {
	q, p := &s.slots[k], &s.bases[b]
	if q.carriedIn > 0 {
		return math.MinInt64 // it may cost nothing
	}
	area := int64(max(q.rows, p.rect.Rows())) * int64(max(q.cols, p.rect.Cols()))
	return area*int64(p.last-q.last+1) - int64(q.rows)*int64(q.cols) - p.rect.area()*int64(p.last-p.first+1)
}

// Counts counts the matrices of the plan that are allocated rather than handed in, those among them
// whose size the caller does not fix, and the values that the terms of an Assemble make.
func (s *Storage) Counts() (allocated, growable, sums int) {
	for i := range s.bases {
		if b := &s.bases[i]; !b.gone && b.given < 0 {
			allocated++
			if b.exact < 0 {
				growable++
			}
		}
	}
	for i := range s.values {
		if s.values[i].kind == assembled {
			sums++
		}
	}
	return allocated, growable, sums
}
