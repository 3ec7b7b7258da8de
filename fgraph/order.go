package fgraph

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// An order maintains a topological order of the applies of a graph while edges come and go. It
// is a list with increasing tags. Comparing two applies takes constant time, and inserting one
// between two others logarithmic amortized time (the tag-range relabelling of Bender, Cole,
// Demaine, Farach-Colton and Zito, "Two simplified algorithms for maintaining order in a list",
// 2002).
//
// A new edge that contradicts the order is resolved by moving one of two sets: the successors of
// its head, or the predecessors of its tail, both limited to the part of the list between the
// two (Pearce and Kelly, 2006). The searches for them alternate, and the set that is complete
// first is moved, so the cost is twice that of the smaller one. Removing an edge costs nothing.
//
// Applies are identified by number. Number n has slot n+1; slot 0 closes the list to a ring.
type order struct {
	edges      neighbours
	tag        []uint64
	prev, next []int32

	// State of a search, empty between searches.
	mark         []uint32 // epoch<<1, plus 1 if reached backwards
	epoch        uint32
	work         int // neighbours visited and slots relabelled in total; tests check its growth
	heads, tails frontier
	buffer       []int32
}

// neighbours is the graph that an order belongs to.
type neighbours interface {
	// successors and predecessors append to dst the numbers that must come after and before
	// x, possibly several times.
	successors(x int32, dst []int32) []int32
	predecessors(x int32, dst []int32) []int32
	// fanOut and fanIn estimate the lengths of the two results.
	fanOut(x int32) int
	fanIn(x int32) int
}

// frontier is one side of a search.
type frontier struct {
	seen []int32 // everything reached, of which the first done have been expanded
	done int
	cost int
}

type edge struct{ before, after *Apply }

// tagStep is the distance of tags at the ends of the list. It leaves room for 2^20 slots on each
// side of the middle.
const tagStep = 1 << 42

func (o *order) init(e neighbours) {
	o.edges = e
	o.tag, o.prev, o.next = []uint64{0}, []int32{0}, []int32{0}
	o.mark = []uint32{0}
}

// grow makes room for numbers below n.
func (o *order) grow(n int) {
	for len(o.tag) < n+1 {
		o.tag = append(o.tag, 0)
		o.prev = append(o.prev, 0)
		o.next = append(o.next, 0)
		o.mark = append(o.mark, 0)
	}
}

// reserve prepares for n numbers.
func (o *order) reserve(n int) {
	o.tag, o.mark = slices.Grow(o.tag, n), slices.Grow(o.mark, n)
	o.prev, o.next = slices.Grow(o.prev, n), slices.Grow(o.next, n)
}

// copyFrom makes o the same order as p.
func (o *order) copyFrom(p *order) {
	o.tag = append(o.tag[:0], p.tag...)
	o.prev = append(o.prev[:0], p.prev...)
	o.next = append(o.next[:0], p.next...)
	o.mark = make([]uint32, len(p.mark))
	o.epoch = 0
}

func (o *order) less(x, y int32) bool { return o.tag[x+1] < o.tag[y+1] }

func (o *order) all() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for s := o.next[0]; s != 0; s = o.next[s] {
			if !yield(s - 1) {
				return
			}
		}
	}
}

func (o *order) insertFirst(x int32)        { o.put(0, x+1) }
func (o *order) insertLast(x int32)         { o.put(o.prev[0], x+1) }
func (o *order) insertAfter(after, x int32) { o.put(after+1, x+1) }

// insertAfterInputs inserts a right after the last of its inputs.
func (o *order) insertAfterInputs(a *Apply) {
	// Constants and inputs of the graph have no owner and no place in the order.
	after := int32(none)
	for _, v := range a.inputs {
		if v.owner != nil && (after == none || o.less(after, v.owner.id)) {
			after = v.owner.id
		}
	}
	if after == none {
		o.insertFirst(a.id)
	} else {
		o.insertAfter(after, a.id)
	}
}

func (o *order) remove(x int32) {
	s := x + 1
	o.next[o.prev[s]] = o.next[s]
	o.prev[o.next[s]] = o.prev[s]
}

// put inserts slot s after slot p and assigns it a tag.
func (o *order) put(p, s int32) {
	n := o.next[p]
	// A tag strictly between those of the neighbours is all that a place in the list is. If there
	// is none left, relabelling makes room around whichever neighbour exists; p is 0 at the front,
	// which has no tag to spread.
	lo, hi := o.room(p)
	if hi-lo < 2 {
		o.relabel(max(p, n))
		lo, hi = o.room(p)
	}
	gap := (hi - lo) / 2
	// At the ends the list has no neighbour on one side, and halving what is left of 64 bits would
	// use it up after 64 insertions. So ends grow by a fixed step, and only insertions inside
	// halve.
	switch {
	case p == 0 && n == 0:
		o.tag[s] = lo + gap
	case n == 0:
		o.tag[s] = lo + min(gap, tagStep)
	case p == 0:
		o.tag[s] = hi - min(gap, tagStep)
	default:
		o.tag[s] = lo + gap
	}
	o.prev[s], o.next[s] = p, n
	o.next[p], o.prev[n] = s, s
}

// room returns the tags between which a slot after p must lie.
func (o *order) room(p int32) (lo, hi uint64) {
	if n := o.next[p]; n != 0 {
		return o.tag[p], o.tag[n]
	}
	return o.tag[p], math.MaxUint64
}

// relabel spreads the tags around slot s evenly. It chooses the smallest range of tags that is
// sparse enough, among ranges whose size is a power of two and that start at a multiple of it.
func (o *order) relabel(s int32) {
	if s == 0 {
		return
	}
	// A range of 2^i tags is sparse if it holds at most (2/1.4)^i slots. 1.4 balances how
	// often relabelling happens against how far it reaches.
	const sparse = 2 / 1.4
	first, last, count := s, s, uint64(1)
	limit := 1.0
	for bits := 1; ; bits++ {
		limit *= sparse
		mask := uint64(math.MaxUint64)
		if bits < 64 {
			mask = 1<<bits - 1
		}
		base := o.tag[s] &^ mask
		// The range of tags doubles, so what was counted stays counted: first and last only move
		// outwards, and each slot is visited once however many doublings it takes.
		for p := o.prev[first]; p != 0 && o.tag[p] >= base; p = o.prev[first] {
			first = p
			count++
		}
		for n := o.next[last]; n != 0 && o.tag[n] <= base|mask; n = o.next[last] {
			last = n
			count++
		}
		// A gap of 2 leaves a tag between any two slots afterwards, which is what put needs.
		gap := mask / (count + 1)
		if (float64(count) > limit || gap < 2) && bits < 64 {
			continue
		}
		// The slots keep their order and fill the range evenly, so it takes a share of 2^i/limit
		// insertions into it before it has to be spread again. That pays for this walk.
		tag := base
		for s := first; ; s = o.next[s] {
			tag += gap
			o.tag[s] = tag
			o.work++
			if s == last {
				return
			}
		}
	}
}

// require moves x ahead of y. It returns false and moves nothing if y leads to x through edges
// that agree with the order.
func (o *order) require(x, y int32) bool {
	if o.less(x, y) {
		return true
	}
	if x == y {
		return false
	}
	// y is ahead of x. Only what lies between them, by tag, can have to move: what leads from y
	// further than x, or to x from further ahead than y, agrees with the new edge already.
	o.startSearch()
	lo, hi := o.tag[y+1], o.tag[x+1]
	o.heads.start(y)
	o.tails.start(x)
	forward, backward := o.epoch<<1, o.epoch<<1|1
	o.mark[y+1], o.mark[x+1] = forward, backward
	// Grow the set of what must follow y, and that of what must precede x. Either one, if complete,
	// can be moved across the other end of the edge, and no edge inside or out of it breaks: all
	// its successors (or predecessors) in the range move with it. If the sets meet, y leads to x
	// and the edge closes a cycle.
	for {
		if o.heads.done == len(o.heads.seen) {
			o.moveHeads(x)
			return true
		}
		if o.tails.done == len(o.tails.seen) {
			o.moveTails(y)
			return true
		}
		h, t := o.heads.seen[o.heads.done], o.tails.seen[o.tails.done]
		// Expand the side that has cost less so far, counting the step that is about to be made. So
		// neither side costs more than the smaller of the two complete sets, up to a last step: one
		// apply with a million readers, as a shared constant scale has, is not expanded while the
		// other side is cheap.
		var met bool
		if o.heads.cost+o.edges.fanOut(h) <= o.tails.cost+o.edges.fanIn(t) {
			met = o.expand(&o.heads, o.edges.successors(h, o.buffer[:0]), o.tag[h+1]+1, hi, forward, backward)
		} else {
			met = o.expand(&o.tails, o.edges.predecessors(t, o.buffer[:0]), lo, o.tag[t+1]-1, backward, forward)
		}
		if met {
			return false
		}
	}
}

func (f *frontier) start(x int32) { f.seen, f.done, f.cost = append(f.seen[:0], x), 0, 0 }

func (o *order) startSearch() {
	// A mark is valid in its epoch only, so that a search need not clear what the last one marked.
	o.epoch++
	if o.epoch == 1<<31 {
		clear(o.mark)
		o.epoch = 1
	}
}

// expand visits neighbours of the next number in f, of which those with tags from lo to hi
// matter. It reports whether the two sides of the search have met.
func (o *order) expand(f *frontier, neighbours []int32, lo, hi uint64, own, other uint32) (met bool) {
	o.buffer = neighbours[:0]
	f.done++
	f.cost += len(neighbours) + 1
	o.work += len(neighbours) + 1
	for _, n := range neighbours {
		if tag := o.tag[n+1]; tag < lo || tag > hi {
			continue
		}
		// Contact with the other side proves a cycle at once: no need to find the path.
		switch o.mark[n+1] {
		case other:
			return true
		case own:
		default:
			o.mark[n+1] = own
			f.seen = append(f.seen, n)
		}
	}
	return false
}

// moveHeads moves everything reached from the head right after the tail x.
func (o *order) moveHeads(x int32) {
	// In the order that they have, because edges between them are respected by it.
	o.sort(o.heads.seen)
	at := x
	for _, s := range o.heads.seen {
		o.remove(s)
		o.insertAfter(at, s)
		at = s
	}
}

// moveTails moves everything reached from the tail right before the head y.
func (o *order) moveTails(y int32) {
	o.sort(o.tails.seen)
	for _, s := range o.tails.seen {
		o.remove(s)
		o.put(o.prev[y+1], s+1)
	}
}

func (o *order) sort(ids []int32) {
	slices.SortFunc(ids, func(a, b int32) int { return cmp.Compare(o.tag[a+1], o.tag[b+1]) })
}

// dataEdges are the edges from applies to the readers of their outputs.
type dataEdges struct{ g *FunctionGraph }

func (e dataEdges) successors(x int32, dst []int32) []int32 {
	for _, v := range e.g.applies[x].outputs {
		for _, c := range v.clients {
			if c.Apply != nil {
				dst = append(dst, c.Apply.id)
			}
		}
	}
	return dst
}

func (e dataEdges) predecessors(x int32, dst []int32) []int32 {
	for _, v := range e.g.applies[x].inputs {
		if v.owner != nil {
			dst = append(dst, v.owner.id)
		}
	}
	return dst
}

func (e dataEdges) fanOut(x int32) int {
	n := 0
	for _, v := range e.g.applies[x].outputs {
		n += len(v.clients)
	}
	return n
}

func (e dataEdges) fanIn(x int32) int { return len(e.g.applies[x].inputs) }
