package lower

import (
	"container/heap"
	"math"
	"slices"
)

// Reuse lets every matrix that starts after another one's life take over that one's memory, where that does not raise the
// peak of the bytes in use. Of several it takes the one that costs the fewest bytes over time. It returns how many did.
func (s *Storage) Reuse() int {
	s.makeSlots()
	n := 0
	budget := s.peak.max()
	pool := &slotPool{s: s, busy: slotQueue{s: s}, shapes: make(map[slotShape]int)}
	for k := range s.slots {
		b := s.slots[k].bases[0]
		pool.advance(s.bases[b].first)
		best, at := pool.best(b)
		if best >= 0 && s.follow(best, int32(k), budget) {
			pool.take(at)
			pool.add(best)
			n++
		} else {
			pool.add(int32(k))
		}
	}
	return n
}

// reuseCost is the bytes times events by which base b in slot o is dearer than both apart.
func (s *Storage) reuseCost(o, b int32) (int64, bool) {
	q, p, own := &s.slots[o], &s.bases[b], &s.slots[s.slotOf[b]]
	if q.last >= p.first || q.taken || own.given {
		return 0, false
	}
	if q.carriedIn > 0 && own.taken && own.carriedOut != q.carriedIn {
		return 0, false // the next round of a loop finds its input in that matrix
	}
	if q.carriedIn > 0 && own.carriedOut == q.carriedIn && own.rows == q.rows && own.cols == q.cols {
		return math.MinInt64, true // the next round finds its input where it is
	}
	rows, cols := max(q.rows, p.rect.Rows()), max(q.cols, p.rect.Cols())
	if q.fixed && (rows != q.rows || cols != q.cols) || own.fixed && (rows != p.rect.Rows() || cols != p.rect.Cols() || !own.taken) {
		return 0, false
	}
	if cols != q.cols && s.spansAny(q.bases) || cols != p.rect.Cols() && s.spansAny(own.bases) {
		return 0, false
	}
	after := int64(rows) * int64(cols) * int64(p.last-q.first+1)
	before := int64(q.rows)*int64(q.cols)*int64(q.last-q.first+1) + p.rect.Area()*int64(p.last-p.first+1)
	return after - before, true
}

func (s *Storage) spansAny(bases []int32) bool {
	for _, b := range bases {
		if s.bases[b].span {
			return true
		}
	}
	return false
}

// follow moves the base of slot k behind those of slot o, unless that raises the peak above the budget.
func (s *Storage) follow(o, k int32, budget int64) bool {
	q, own := &s.slots[o], &s.slots[k]
	s.bookSlot(q, -1)
	s.bookSlot(own, -1)
	old := *q
	q.rows, q.cols, q.last = max(q.rows, own.rows), max(q.cols, own.cols), own.last
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
	}
	q.bases = append(q.bases, own.bases...)
	q.fixed, q.taken, q.carriedOut = q.fixed || own.fixed, own.taken, own.carriedOut
	own.bases = nil
	return true
}

// slotPool finds the slot that a base had best follow. Slots of one shape are alike but for the time of their lives, so they are
// kept in one list by their ends, and only those that ended last are looked at.
type slotPool struct {
	s      *Storage
	busy   slotQueue // slots whose lives are not over
	shapes map[slotShape]int
	over   [][]int32 // by shape: slots whose lives are over, the last at the end
}

// slotShape is what decides whether a base may follow a slot, apart from time.
type slotShape struct {
	rows, cols  int32
	fixed, span bool
	carriedIn   int32
}

// reuseTries bounds how many slots of one shape are looked at for a base.
const reuseTries = 64

// add makes slot k known, or known anew after its life has changed.
func (p *slotPool) add(k int32) {
	if !p.s.slots[k].taken {
		heap.Push(&p.busy, k)
	}
}

// advance makes slots free that ended before event first. Events must not go back.
func (p *slotPool) advance(first int32) {
	for len(p.busy.heap) > 0 && p.s.slots[p.busy.heap[0]].last < first {
		k := heap.Pop(&p.busy).(int32)
		q := &p.s.slots[k]
		shape := slotShape{q.rows, q.cols, q.fixed, p.s.spansAny(q.bases), q.carriedIn}
		n, ok := p.shapes[shape]
		if !ok {
			n = len(p.over)
			p.shapes[shape] = n
			p.over = append(p.over, nil)
		}
		p.over[n] = append(p.over[n], k)
	}
}

// place is a place in slotPool.over.
type place struct{ shape, i int }

// best is the slot that base b had best follow, of several the first, and where it is; -1 if there is none.
func (p *slotPool) best(b int32) (int32, place) {
	var at place
	best, bestCost := int32(-1), int64(0)
	for n, list := range p.over {
		for i := len(list) - 1; i >= max(0, len(list)-reuseTries); i-- {
			k := list[i]
			cost, ok := p.s.reuseCost(k, b)
			if !ok || best >= 0 && p.s.leastCost(k, b) > bestCost {
				break // the same holds for those that ended before
			}
			if best < 0 || cost < bestCost || cost == bestCost && k < best {
				at, best, bestCost = place{n, i}, k, cost
			}
		}
	}
	return best, at
}

// take removes a slot whose life goes on.
func (p *slotPool) take(at place) { p.over[at.shape] = slices.Delete(p.over[at.shape], at.i, at.i+1) }

// leastCost is the cost of base b in a slot of the shape of slot k that ended when k did or before, at the least.
func (s *Storage) leastCost(k, b int32) int64 {
	q, p := &s.slots[k], &s.bases[b]
	if q.carriedIn > 0 {
		return math.MinInt64 // it may cost nothing
	}
	area := int64(max(q.rows, p.rect.Rows())) * int64(max(q.cols, p.rect.Cols()))
	return area*int64(p.last-q.last+1) - int64(q.rows)*int64(q.cols) - p.rect.Area()*int64(p.last-p.first+1)
}

// slotQueue orders slots by the ends of their lives.
type slotQueue struct {
	s    *Storage
	heap []int32
}

func (q *slotQueue) Len() int { return len(q.heap) }
func (q *slotQueue) Less(i, j int) bool {
	a, b := q.heap[i], q.heap[j]
	if x, y := q.s.slots[a].last, q.s.slots[b].last; x != y {
		return x < y
	}
	return a > b // of those that end together the first is looked at first
}
func (q *slotQueue) Swap(i, j int) { q.heap[i], q.heap[j] = q.heap[j], q.heap[i] }
func (q *slotQueue) Push(x any)    { q.heap = append(q.heap, x.(int32)) }
func (q *slotQueue) Pop() any {
	x := q.heap[len(q.heap)-1]
	q.heap = q.heap[:len(q.heap)-1]
	return x
}
