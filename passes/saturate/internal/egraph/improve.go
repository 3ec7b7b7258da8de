package egraph

import (
	"cmp"
	"math"
	"slices"
)

// improveWork bounds the classes that improve visits, estimateWork those that it visits for an
// estimate, and exhaustWork the choices that exhaust makes. With all, extraction takes some
// milliseconds at most beyond the cheapest trees.
const (
	improveWork  = 1 << 18
	estimateWork = 1 << 17
	exhaustWork  = 1 << 16
)

// improve exchanges the node of one class at a time while that makes the whole cheaper.
func (x *extractor) improve(c *Choice, work int) {
	g := x.g
	// Computing the total for each exchange would visit all classes that are needed. Counts of
	// users say which classes an exchange brings in or drops, and only those are visited.
	u := &users{x: x, node: c.node, left: work}
	u.count()
	for again := true; again; {
		again = false
		// The list is a copy: x.total overwrites it. It is not renewed after an exchange, so it may
		// have classes that are not needed any more; their counts are 0.
		need := slices.Clone(x.needed(c.node))
		for _, k := range need {
			for n := range g.Nodes(Class(k)) {
				old := c.node[k]
				if uint32(n) == old || u.of[k] == 0 || math.IsInf(x.own[n], 1) || x.own[n] >= c.Cost {
					continue
				}
				if u.left <= 0 || g.stopped() {
					return
				}
				// Most exchanges make nothing cheaper, and are taken back by the inverse exchange.
				// If one does, the choice is verified as a whole, because counts are too high
				// around circles, and the new node may have closed one.
				if u.exchange(k, uint32(n)) >= 0 {
					u.exchange(k, old)
				} else if total := x.total(c.node); total < c.Cost && !x.cyclic(c.node) {
					c.Cost, again = total, true
				} else {
					// The counts can't be trusted after a circle: releasing what uses itself never
					// reaches 0. So they are made anew.
					c.node[k] = old
					u.count()
				}
			}
		}
	}
}

// users counts how often the choice for classes that are needed takes a class, so that what an
// exchange costs or gains is known from what it changes. Among classes that depend on themselves
// the counts may be too high.
type users struct {
	x    *extractor
	node []uint32 // by class: what is chosen
	of   []uint32 // by class
	todo []uint32
	left int // classes that may be visited
}

// count counts anew.
func (u *users) count() {
	x := u.x
	if u.of == nil {
		u.of = make([]uint32, len(u.node))
	}
	clear(u.of)
	for _, r := range x.roots {
		u.of[r]++
	}
	need := x.needed(u.node)
	for _, c := range need {
		for k := range x.g.arity(u.node[c]) {
			u.of[x.g.find(x.g.kid(u.node[c], k))]++
		}
	}
	u.left -= len(need)
}

// exchange chooses another node for a class that is needed, and returns how much dearer the whole
// becomes.
func (u *users) exchange(c, n uint32) float64 {
	// What both nodes need is counted up before it is counted down. In the other order it would be
	// dropped and taken again, with everything below it.
	dearer := u.x.own[n] + u.take(n)
	old := u.node[c]
	dearer -= u.x.own[old] + u.release(old)
	u.node[c] = n
	return dearer
}

// take counts the inputs of a node, and returns what classes cost that were not needed before.
func (u *users) take(n uint32) (cost float64) {
	g := u.x.g
	u.todo = append(u.todo[:0], n)
	for len(u.todo) > 0 {
		n := u.todo[len(u.todo)-1]
		u.todo = u.todo[:len(u.todo)-1]
		for k := range g.arity(n) {
			u.left--
			c := g.find(g.kid(n, k))
			// A class that was needed before brings nothing new, and so nothing below it.
			if u.of[c]++; u.of[c] > 1 {
				continue
			}
			m := u.node[c]
			if m == none {
				cost = math.Inf(1)
				continue
			}
			cost += u.x.own[m]
			u.todo = append(u.todo, m)
		}
	}
	return cost
}

// release takes the counts of the inputs of a node back, and returns what classes cost that are not
// needed any more.
func (u *users) release(n uint32) (cost float64) {
	g := u.x.g
	u.todo = append(u.todo[:0], n)
	for len(u.todo) > 0 {
		n := u.todo[len(u.todo)-1]
		u.todo = u.todo[:len(u.todo)-1]
		for k := range g.arity(n) {
			u.left--
			c := g.find(g.kid(n, k))
			if u.of[c] == 0 {
				continue
			}
			if u.of[c]--; u.of[c] > 0 || u.node[c] == none {
				continue
			}
			cost += u.x.own[u.node[c]]
			u.todo = append(u.todo, u.node[c])
		}
	}
	return cost
}

// exhaust looks through all choices that could be cheaper. If it finishes, the choice is
// optimal.
func (x *extractor) exhaust(c *Choice) {
	k := len(x.g.classes)
	s := &search{x: x, c: c, node: make([]uint32, k), in: make([]bool, k), lists: map[uint32][]uint32{}}
	for i := range s.node {
		s.node[i] = none
	}
	for _, r := range x.roots {
		s.need(r)
	}
	c.Optimal = s.run()
}

// search decides class after class which node to take, depth first.
type search struct {
	x     *extractor
	c     *Choice
	node  []uint32            // by class: decided
	queue []uint32            // classes needed, in the order in which they are decided
	in    []bool              // by class: it is in the queue
	lists map[uint32][]uint32 // by class: its nodes, the cheapest first
	cost  float64             // of what is decided
	bound float64             // of what is needed, but not decided, at least
	stack []level
	work  int
}

// level is a decision: the nodes of a class, the next of them to try, and what was before.
type level struct {
	class       uint32
	nodes       []uint32
	next        int
	queued      int
	cost, bound float64
}

// need queues a class.
func (s *search) need(c uint32) {
	if s.in[c] {
		return
	}
	s.in[c] = true
	s.queue = append(s.queue, c)
	s.bound += s.least(c)
}

// list returns the nodes of a class that may be worth a try.
func (s *search) list(c uint32) []uint32 {
	l, ok := s.lists[c]
	if !ok {
		for n := range s.x.g.Nodes(Class(c)) {
			if s.work++; s.x.own[n] <= s.c.Cost && !math.IsInf(s.x.own[n], 1) {
				l = append(l, uint32(n))
			}
		}
		slices.SortStableFunc(l, func(a, b uint32) int { return cmp.Compare(s.x.own[a], s.x.own[b]) })
		s.lists[c] = l
	}
	return l
}

// least returns what a class costs at least.
func (s *search) least(c uint32) float64 {
	if l := s.list(c); len(l) > 0 {
		return s.x.own[l[0]]
	}
	return math.Inf(1)
}

// slack is how much cheaper a choice must be, relatively, to count as cheaper: sums in another
// order differ by less.
const slack = 1e-12

// run reports whether it has looked at everything.
func (s *search) run() bool {
	s.open()
	for len(s.stack) > 0 {
		if s.work++; s.work > exhaustWork || s.x.g.stopped() {
			return false
		}
		l := &s.stack[len(s.stack)-1]
		// The decision tried before at this level is undone first, with all that it queued.
		s.undo(l)
		if l.next == len(l.nodes) {
			s.stack = s.stack[:len(s.stack)-1]
			continue
		}
		n := l.nodes[l.next]
		l.next++
		// The bound: what is needed but not decided costs at least its cheapest node. If that is
		// not cheaper than the best choice so far, nothing below this decision is. A circle must go
		// through the class that was decided last, since there was none before.
		s.decide(l.class, n)
		if s.cost+s.bound >= s.c.Cost*(1-slack) || s.loops(l.class) {
			continue
		}
		// Deciding a class queues the classes that its node needs. There is a choice as soon as
		// every queued class is decided.
		if len(s.stack) < len(s.queue) {
			s.open()
			continue
		}
		s.c.Cost = s.cost
		for _, k := range s.queue {
			s.c.node[k] = s.node[k]
		}
	}
	return true
}

// open makes the decision about the next class in the queue, the cheapest nodes first.
func (s *search) open() {
	k := s.queue[len(s.stack)]
	s.stack = append(s.stack, level{class: k, nodes: s.list(k), queued: len(s.queue), cost: s.cost, bound: s.bound})
}

// undo takes the decision of a level back.
func (s *search) undo(l *level) {
	for _, c := range s.queue[l.queued:] {
		s.in[c] = false
	}
	s.queue = s.queue[:l.queued]
	s.cost, s.bound = l.cost, l.bound
	s.node[l.class] = none
}

func (s *search) decide(c, n uint32) {
	g := s.x.g
	s.node[c] = n
	s.cost += s.x.own[n]
	s.bound -= s.least(c)
	for k := range g.arity(n) {
		s.need(g.find(g.kid(n, k)))
	}
}

// loops reports whether a class depends on itself by what is decided.
func (s *search) loops(c uint32) bool {
	x, g := s.x, s.x.g
	x.round++
	todo := append(x.stack[:0], c)
	for i := 0; i < len(todo); i++ {
		n := s.node[todo[i]]
		if n == none {
			continue
		}
		for k := range g.arity(n) {
			s.work++
			d := g.find(g.kid(n, k))
			if d == c {
				return true
			}
			if x.mark[d] != x.round {
				x.mark[d] = x.round
				todo = append(todo, d)
			}
		}
	}
	x.stack = todo
	return false
}
