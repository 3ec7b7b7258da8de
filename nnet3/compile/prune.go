package compile

import "github.com/nnopt/nnopt/nnet3/index"

// prune drops unused dependencies (the second choice of a Failover, an undefined IfDefined, rows
// that a component can do without) and marks the vertices that the outputs are computed from. All
// outputs must be computable. It returns the newly marked vertices, outputs first.
func (b *builder) prune(outputs []int32) []int32 {
	g := b.graph
	var needed []int32
	mark := func(v int32) {
		if x := &g.vertices[v]; !x.needed {
			x.needed = true
			needed = append(needed, v)
		}
	}
	for _, v := range outputs {
		mark(v)
	}
	// needed is the queue of a search from the outputs. Only now is it final what is computable, so
	// only now can a choice be made: while the graph grew, both arguments of a Failover had to be
	// kept.
	for i := 0; i < len(needed) && !b.interrupt.came(); i++ {
		v := needed[i]
		x := &g.vertices[v]
		n := &b.net.nodes[x.Node]
		if x.given {
			continue
		}
		deps := g.dependencies(v)
		if !n.allNeeded() {
			if n.kind == generalNode {
				b.pruneGeneral(n, v)
			} else {
				n.terms.prune(g, deps, &b.scratch)
			}
		}
		for _, d := range deps {
			if d >= 0 {
				mark(d)
			}
		}
	}
	return needed
}

// endSegment forgets the vertices that the segment did not need.
func (b *builder) endSegment() {
	g := b.graph
	// Vertices forgotten before are in the list as well, since a segment in between may have looked
	// at them again.
	kept := b.forgotten[:0]
	forget := func(v int32) {
		// A row that could not be computed for lack of input may be computable in a later segment,
		// with more input. To find out, it must be looked at as if it were new. Needed rows keep
		// what they have: they were computed.
		if x := &g.vertices[v]; !x.needed && !x.given {
			g.forget(v, b.net.nodes[x.Node].kind == inputNode || x.Index.T == index.NoTime)
			kept = append(kept, v)
		}
	}
	for _, v := range b.forgotten {
		forget(v)
	}
	for v := b.start; v < len(g.vertices); v++ {
		forget(int32(v))
	}
	b.forgotten, b.start = kept, len(g.vertices)
}

// pruneGeneral drops the dependencies of row v of a component that the component does not use.
func (b *builder) pruneGeneral(n *node, v int32) {
	g := b.graph
	used := b.lookups[:0]
	b.isComputable(n, v, computable, &used)
	b.lookups = used
	deps := g.dependencies(v)
	if len(used) == len(deps) {
		return
	}
	// The used indexes are usually in the order of the dependencies. If not, they become a set.
	var set map[index.Index]bool
	if !isSubsequence(g, deps, used) {
		set = make(map[index.Index]bool, len(used))
		for _, ix := range used {
			set[ix] = true
		}
	}
	next := 0
	for i, d := range deps {
		if d < 0 {
			continue
		}
		switch ix := g.vertices[d].Index; {
		case set != nil && set[ix]:
		case set == nil && next < len(used) && ix == used[next]:
			next++
		default:
			deps[i] = none
		}
	}
}

// isSubsequence reports whether used is a subsequence of the indexes of deps.
func isSubsequence(g *graph, deps []int32, used []index.Index) bool {
	next := 0
	for _, d := range deps {
		if d >= 0 && next < len(used) && g.vertices[d].Index == used[next] {
			next++
		}
	}
	return next == len(used)
}
