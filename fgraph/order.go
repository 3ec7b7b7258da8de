package fgraph

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// An order keeps the applies of a graph in a topological order while edges come
// and go. It is a list with tags that grow along it, so that two applies are
// compared in constant time and one is put between two others in logarithmic
// amortized time (the tag-range relabelling of Bender, Cole, Demaine,
// Farach-Colton and Zito, "Two simplified algorithms for maintaining order in a
// list", 2002).
//
// An edge that goes against the order is put right by moving one of two sets:
// what its head leads to, or what leads to its tail, both within the stretch of
// the list between the two (Pearce and Kelly, 2006). They are searched in
// alternation and the one that is complete first is moved, so that the cost is
// twice that of the smaller one. Taking an edge away costs nothing.
//
// Applies are known by their numbers; number n has slot n+1, slot 0 is the ring
// that closes the list.
type order struct {
	edges      neighbours
	tag        []uint64
	prev, next []int32

	// state of a search, empty between searches
	mark            []uint32 // epoch<<1, plus 1 if reached backwards
	epoch           uint32
	work            int // neighbours looked at and slots given a new tag, in all: tests hold it against the size of the graph
	heads, tails    frontier
	neighbourBuffer []int32
}

// neighbours is what an order asks of its graph.
type neighbours interface {
	// successors and predecessors append to dst what has to come after and
	// before x. The same number may be appended several times.
	successors(x int32, dst []int32) []int32
	predecessors(x int32, dst []int32) []int32
	// fanOut and fanIn estimate how long the two answers are.
	fanOut(x int32) int
	fanIn(x int32) int
}

// frontier is one side of a search.
type frontier struct {
	seen []int32 // everything reached; the first done of it has been expanded
	done int
	cost int
}

type edge struct{ before, after *Apply }

// Tags of neighbours at the ends of the list keep this distance, which leaves
// room for 2^20 of them on each side of the middle.
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

func (o *order) remove(x int32) {
	s := x + 1
	o.next[o.prev[s]] = o.next[s]
	o.prev[o.next[s]] = o.prev[s]
}

// put inserts slot s after slot p.
func (o *order) put(p, s int32) {
	n := o.next[p]
	lo, hi := o.room(p)
	if hi-lo < 2 {
		o.relabel(max(p, n))
		lo, hi = o.room(p)
	}
	gap := (hi - lo) / 2
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

// room returns the tags between which the successor of p goes.
func (o *order) room(p int32) (lo, hi uint64) {
	if n := o.next[p]; n != 0 {
		return o.tag[p], o.tag[n]
	}
	return o.tag[p], math.MaxUint64
}

// relabel spreads the tags around slot s: it takes the smallest range of tags
// that starts at a multiple of its size, a power of two, and is sparse enough.
func (o *order) relabel(s int32) {
	if s == 0 {
		return
	}
	// A range of 2^i tags is sparse if it holds at most (2/1.4)^i slots: 1.4
	// balances how often it is done against how far it reaches.
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
		for p := o.prev[first]; p != 0 && o.tag[p] >= base; p = o.prev[first] {
			first = p
			count++
		}
		for n := o.next[last]; n != 0 && o.tag[n] <= base|mask; n = o.next[last] {
			last = n
			count++
		}
		gap := mask / (count + 1)
		if (float64(count) > limit || gap < 2) && bits < 64 {
			continue
		}
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

// require puts x ahead of y. It returns false and moves nothing if y leads to x,
// by edges that agree with the order.
func (o *order) require(x, y int32) bool {
	if o.less(x, y) {
		return true
	}
	if x == y {
		return false
	}
	o.startSearch()
	lo, hi := o.tag[y+1], o.tag[x+1]
	o.heads.start(y)
	o.tails.start(x)
	o.mark[y+1] = o.epoch << 1
	o.mark[x+1] = o.epoch<<1 | 1
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
		var met bool
		if o.heads.cost+o.edges.fanOut(h) <= o.tails.cost+o.edges.fanIn(t) {
			met = o.expandHead(h, hi)
		} else {
			met = o.expandTail(t, lo)
		}
		if met {
			return false
		}
	}
}

func (f *frontier) start(x int32) { f.seen, f.done, f.cost = append(f.seen[:0], x), 0, 0 }

func (o *order) startSearch() {
	o.epoch++
	if o.epoch == 1<<31 {
		clear(o.mark)
		o.epoch = 1
	}
}

// expandHead looks at what follows h, up to the tag hi of the tail. It reports
// whether the two sides of the search have met.
func (o *order) expandHead(h int32, hi uint64) bool {
	buf := o.edges.successors(h, o.neighbourBuffer[:0])
	o.neighbourBuffer = buf[:0]
	o.heads.done++
	o.heads.cost += len(buf) + 1
	o.work += len(buf) + 1
	for _, s := range buf {
		if o.tag[s+1] <= o.tag[h+1] || o.tag[s+1] > hi {
			continue
		}
		switch o.mark[s+1] {
		case o.epoch<<1 | 1:
			return true
		case o.epoch << 1:
		default:
			o.mark[s+1] = o.epoch << 1
			o.heads.seen = append(o.heads.seen, s)
		}
	}
	return false
}

func (o *order) expandTail(t int32, lo uint64) bool {
	buf := o.edges.predecessors(t, o.neighbourBuffer[:0])
	o.neighbourBuffer = buf[:0]
	o.tails.done++
	o.tails.cost += len(buf) + 1
	o.work += len(buf) + 1
	for _, p := range buf {
		if o.tag[p+1] >= o.tag[t+1] || o.tag[p+1] < lo {
			continue
		}
		switch o.mark[p+1] {
		case o.epoch << 1:
			return true
		case o.epoch<<1 | 1:
		default:
			o.mark[p+1] = o.epoch<<1 | 1
			o.tails.seen = append(o.tails.seen, p)
		}
	}
	return false
}

// moveHeads puts all that was reached from the head right after the tail x.
func (o *order) moveHeads(x int32) {
	o.sort(o.heads.seen)
	at := x
	for _, s := range o.heads.seen {
		o.remove(s)
		o.insertAfter(at, s)
		at = s
	}
}

// moveTails puts all that was reached from the tail right before the head y.
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

// dataEdges are the edges that the inputs of applies make.
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
