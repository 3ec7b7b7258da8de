package repro

import "slices"

// window finds the shortest beginning of the order that fails, and the shortest end of that.
func (r *reducer) window() {
	// Both searches assume that failing is monotonic, which holds for most failures: a beginning
	// that fails also fails when it is longer. Where it does not hold, they find some boundary, and
	// the other steps continue from there. They come first because they take a logarithmic number
	// of runs, and often leave a handful of thousands of nodes. Here, the first hi nodes fail, and
	// the first lo do not, or were not tried.
	for lo, hi := 0, len(r.s.nodes); hi-lo > 1; {
		mid := lo + (hi-lo)/2
		s := r.s.copied()
		s.prefix(r.best.World, mid)
		if r.accepts(s) {
			hi = min(mid, len(r.s.nodes))
			lo = min(lo, hi-1)
		} else {
			lo = mid
		}
	}
	// Nodes before mid become inputs. If that still fails, numbers move down by what is gone, and
	// the search begins again at the new first node.
	for lo, hi := 0, len(r.s.nodes); hi-lo > 1; {
		mid := lo + (hi-lo)/2
		s := r.s.copied()
		before := len(r.s.nodes)
		s.cut(r.best.World, func(i int) bool { return i < mid })
		if r.accepts(s) {
			lo, hi = 0, hi-(before-len(r.s.nodes)) // other nodes may be gone as well
			continue
		}
		hi = mid
	}
}

// minimize drops parts of a list of n elements, large parts first. try drops some elements, given
// in ascending order, and reports whether that fails in the same way; the others then move up.
func minimize(n int, try func(drop []int) bool) {
	// This is the minimizing delta debugging of Zeller and Hildebrandt without its complements:
	// parts of halving size, from all elements to single ones. After a part was dropped, the next
	// one has moved to its place, so first stays where it is. It takes n log n runs at most, and
	// far fewer if most elements don't matter.
	for size := n; size > 0; size /= 2 {
		for first := 0; first < n; {
			last := min(first+size, n)
			part := make([]int, 0, last-first)
			for i := first; i < last; i++ {
				part = append(part, i)
			}
			if try(part) {
				n -= len(part)
			} else {
				first = last
			}
		}
	}
}

// dropOutputs leaves out outputs.
func (r *reducer) dropOutputs() {
	minimize(len(r.s.outputs), func(drop []int) bool {
		s := r.s.copied()
		s.outputs = slices.Delete(s.outputs, drop[0], drop[len(drop)-1]+1)
		return r.accepts(s)
	})
}

// eachPart calls try with parts of the nodes, from the last to the first, large parts first.
func (r *reducer) eachPart(try func(first, last int) bool) {
	// From the last node to the first: what only a part needs goes with it. That comes before the
	// part, so fewer parts are left to try.
	for size := len(r.s.nodes); size > 0; size /= 2 {
		for last := len(r.s.nodes); last > 0 && !r.ended(); {
			first := max(last-size, 0)
			if try(first, last) {
				last = min(first, len(r.s.nodes)) // nodes before may be gone as well
			} else {
				last = first
			}
		}
	}
}

// cutNodes makes inputs of what nodes compute.
func (r *reducer) cutNodes() {
	r.eachPart(func(first, last int) bool {
		s := r.s.copied()
		s.cut(r.best.World, func(i int) bool { return first <= i && i < last })
		return r.accepts(s)
	})
}

// bypass replaces nodes by operands of the same type.
func (r *reducer) bypass() {
	r.eachPart(func(first, last int) bool {
		// A part of several nodes is tried once, with the first operand of each: to try all
		// combinations would be exponential. A single node tries each of its operands.
		for choice := 0; ; choice++ {
			s, again := r.s.copied(), false
			for _, n := range r.s.nodes[first:last] {
				more, ok := s.replaceByOperand(n, choice)
				again = again || more
				if !ok && last-first == 1 {
					return false
				}
			}
			if r.accepts(s) {
				return true
			}
			if !again || last-first > 1 {
				return false
			}
		}
	})
}

// replaceByOperand replaces the result of a node by the operand of that number among those that can
// take its place. It reports whether there are more of them.
func (s *sketch) replaceByOperand(n node, choice int) (more, ok bool) {
	if len(n.out) != 1 {
		return false, false
	}
	for _, v := range n.in {
		if v != n.out[0] && s.vars[n.out[0]].typ.Accepts(s.vars[v].typ) {
			if choice == 0 && !ok {
				s.substitute(n.out[0], v)
				ok = true
			} else if ok {
				return true, true
			}
			choice--
		}
	}
	return false, ok
}

// simplify makes ops simpler.
func (r *reducer) simplify() {
	for k := 0; k < len(r.s.nodes) && !r.ended(); k++ {
		for again := true; again && k < len(r.s.nodes); {
			again = r.simplifyNode(k)
		}
	}
}

// simplifyNode tries the simpler ops for a node until one is accepted.
func (r *reducer) simplifyNode(k int) bool {
	// What is simpler is known for applies, not for nodes of a sketch, so the sketch is made a
	// graph, and inputs of the simpler apply are found again among those of the node.
	b, err := r.s.build(r.best.World, r.best.Graph)
	if err != nil {
		return false
	}
	for a := range part[Simplifier](r.best.World, defaults{}).Simpler(b.applies[k]) {
		s := r.s.copied()
		n := &s.nodes[k]
		n.op = a.Op()
		old := n.in
		n.in = make([]int, len(a.Inputs()))
		for i, v := range a.Inputs() {
			at := slices.Index(b.applies[k].Inputs(), v)
			if at < 0 {
				return false
			}
			n.in[i] = old[at]
		}
		s.compact()
		if r.replaces(s) {
			return true
		}
		if r.ended() {
			break
		}
	}
	return false
}

// mergeInputs makes one input of two.
func (r *reducer) mergeInputs() {
	for i := 0; i < len(r.s.inputs) && !r.ended(); i++ {
		for k := len(r.s.inputs) - 1; k > i; k-- {
			if v, w := r.s.inputs[i], r.s.inputs[k]; r.s.vars[v].typ == r.s.vars[w].typ {
				s := r.s.copied()
				s.substitute(w, v)
				if r.accepts(s) {
					k = min(k, len(r.s.inputs))
				}
			}
		}
	}
}

// shrink makes values smaller.
func (r *reducer) shrink() {
	for again := true; again && !r.ended(); {
		again = false
		c := r.best
		for small := range part[Shrinker](c.World, defaults{}).Shrink(c.Graph, c.Values) {
			if r.ended() {
				return
			}
			next := c
			next.Graph, next.Values = small.Graph, small.Values
			if attachLike(c.World, next.Graph, c.Graph) == nil && r.fails(next) {
				again = true
				break
			}
		}
		// The graph has other types now, so the sketch is made anew.
		if again && r.begin() == nil {
			r.tell()
		}
	}
}

// plainValues tries random values in place of particular ones, and no budget.
func (r *reducer) plainValues() {
	if c := r.best; c.Budget != nil {
		c.Budget = nil
		r.fails(c)
	}
	if c := r.best; c.Values != nil {
		c.Values = nil
		r.fails(c)
	}
	r.tell()
}
