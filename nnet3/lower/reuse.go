package lower

import (
	"math"
	"slices"
)

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
	before := int64(q.rows)*int64(q.cols)*int64(q.last-q.first+1) + p.rect.Area()*int64(p.last-p.first+1)
	return after - before, true
}

// slotPool finds the best slot for a base to follow. Slots of one shape differ only in time, so
// they are in one list by their ends, of which only the last few are considered.
type slotPool struct {
	s      *Storage
	busy   stepQueue // slots whose lives are not over, by their ends; of equal ends the highest number comes first
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
		p.busy.push(queued{int64(q.last)<<32 - int64(k), k})
	}
}

// advance makes candidates of the slots that ended before event first. Events must not go back.
func (p *slotPool) advance(first int32) {
	for len(p.busy) > 0 && p.s.slots[p.busy[0].n].last < first {
		k := p.busy.pop().n
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
	return area*int64(p.last-q.last+1) - int64(q.rows)*int64(q.cols) - p.rect.Area()*int64(p.last-p.first+1)
}
