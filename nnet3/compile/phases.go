package compile

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/nnet3/index"
)

// phaser divides the vertices of a segment into phases: groups of vertices of one node that can be
// computed at once, after earlier groups.
type phaser struct {
	net            *network
	graph          *graph
	byNode         []int32 // the vertices of the segment by node, in the order of their indexes
	start          []int32 // by node, where its vertices start in byNode
	level          []int32 // by vertex, in recurrent epochs
	blocks         []int32 // by vertex, the number of dependencies in its epoch without a level
	mark           []int32 // by vertex, its segment, from 1 on
	segment        int32
	counts, sorted []int32 // scratch of sortVertices
}

// phases calls yield for every phase of the vertices, in an order in which they can be computed.
// The vertices of a phase are in the order of their indexes. The next call overwrites them.
func (p *phaser) phases(vertices []int32, yield func(node int32, vertices []int32) error) error {
	p.sortByNode(vertices)
	for e := range p.net.epochs {
		ep := &p.net.epochs[e]
		var err error
		if ep.recurrent {
			err = p.recurrentPhases(ep, yield)
		} else if group := p.ofNode(ep.nodes[0]); len(group) > 0 {
			err = yield(ep.nodes[0], group)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ofNode returns the vertices of a node.
func (p *phaser) ofNode(node int32) []int32 { return p.byNode[p.start[node]:p.start[node+1]] }

// sortByNode sorts the vertices by node, then index, and leaves out given ones.
func (p *phaser) sortByNode(vertices []int32) {
	g := p.graph
	p.start = slices.Grow(p.start[:0], len(p.net.nodes)+2)[:len(p.net.nodes)+2]
	clear(p.start)
	p.mark = extend(p.mark, len(g.vertices))
	// This makes the marks of earlier segments invalid.
	p.segment++
	n := 0
	for _, v := range vertices {
		if !g.vertices[v].given {
			p.mark[v] = p.segment
			// A counting sort. Shifted by two, the counts become the starts of the next node, and
			// then, moved on while the vertices are entered, those of the node itself.
			p.start[g.vertices[v].Node+2]++
			n++
		}
	}
	for i := 2; i < len(p.start); i++ {
		p.start[i] += p.start[i-1]
	}
	p.byNode = slices.Grow(p.byNode[:0], n)[:n]
	for _, v := range vertices {
		if !g.vertices[v].given {
			at := &p.start[g.vertices[v].Node+1]
			p.byNode[*at] = v
			*at++
		}
	}
	for i := range p.net.nodes {
		p.sortVertices(p.ofNode(int32(i)))
	}
}

// sortVertices sorts vertices of one node in the order of their indexes. Usually they are sorted
// already, or their times are close together, which allows a counting sort. That takes a sixth off
// the time to compile a TDNN-F (Zen 4, November 2026).
func (p *phaser) sortVertices(vertices []int32) {
	g := p.graph
	if len(vertices) == 0 || isSorted(g, vertices) {
		return
	}
	low, high := g.vertices[vertices[0]].Index.T, g.vertices[vertices[0]].Index.T
	for _, v := range vertices {
		t := g.vertices[v].Index.T
		low, high = min(low, t), max(high, t)
	}
	// By time alone, stably. If several vertices share a time, as with several sequences, this may
	// not be the whole order; then sort after all.
	if times := int64(high) - int64(low) + 1; times <= int64(4*len(vertices)+64) {
		p.counts = slices.Grow(p.counts[:0], int(times)+1)[:times+1]
		clear(p.counts)
		for _, v := range vertices {
			p.counts[g.vertices[v].Index.T-low+1]++
		}
		for i := 1; i < len(p.counts); i++ {
			p.counts[i] += p.counts[i-1]
		}
		p.sorted = append(p.sorted[:0], vertices...)
		for _, v := range p.sorted {
			at := &p.counts[g.vertices[v].Index.T-low]
			vertices[*at] = v
			*at++
		}
		if isSorted(g, vertices) {
			return
		}
	}
	slices.SortFunc(vertices, func(a, b int32) int { return index.Compare(g.vertices[a].Index, g.vertices[b].Index) })
}

// isSorted reports whether vertices of one node are in the order of their indexes.
func isSorted(g *graph, vertices []int32) bool {
	for i := 1; i < len(vertices); i++ {
		a, b := &g.vertices[vertices[i-1]].Index, &g.vertices[vertices[i]].Index
		if a.T > b.T || a.T == b.T && (a.X > b.X || a.X == b.X && a.N > b.N) {
			return false
		}
	}
	return true
}

// recurrentPhases gives each vertex of an epoch a level, one more than the highest level of its
// dependencies in the epoch. The vertices of a node with the same level form a phase. The hidden
// node of a component counts as a level.
func (p *phaser) recurrentPhases(ep *epoch, yield func(int32, []int32) error) error {
	g := p.graph
	p.level = extend(p.level, len(g.vertices))
	p.blocks = extend(p.blocks, len(g.vertices))
	// Levels by a topological sort of the rows. Rows of one node and level don't depend on each
	// other, so one command computes them all: a recurrence with a delay of three computes three
	// steps at once, with several sequences all of them.
	ready, count := p.findReady(ep)
	for i := 0; i < len(ready); i++ {
		v := ready[i]
		for e := g.vertices[v].users; e >= 0; e = g.next[e] {
			u := g.owner[e]
			// prune may have taken the dependency away, and users outside of this epoch or segment
			// don't wait here.
			if g.deps[e] != v || !p.isBlocked(u) || !g.live(e) {
				continue
			}
			step := int32(1)
			if p.net.nodes[g.vertices[u].Node].kind == simpleNode {
				step = 2
			}
			p.level[u] = max(p.level[u], p.level[v]+step)
			if p.blocks[u]--; p.blocks[u] == 0 {
				ready = append(ready, u)
			}
		}
	}
	// What was never ready waits for itself.
	if len(ready) < count {
		return p.stuck(ep)
	}
	p.sortByLevel(ep, ready)
	for len(ready) > 0 {
		first := ready[0]
		n := 1
		for n < len(ready) && p.level[ready[n]] == p.level[first] && g.vertices[ready[n]].Node == g.vertices[first].Node {
			n++
		}
		if err := yield(g.vertices[first].Node, ready[:n]); err != nil {
			return err
		}
		ready = ready[n:]
	}
	return nil
}

// sortByLevel orders dst, the vertices of an epoch, by level, then node, then index.
func (p *phaser) sortByLevel(ep *epoch, dst []int32) {
	var start []int32
	for _, v := range dst {
		start = extend(start, int(p.level[v])+2)
		start[p.level[v]+1]++
	}
	for i := 1; i < len(start); i++ {
		start[i] += start[i-1]
	}
	// A counting sort by level; filled in the order of node and index, it keeps that order within a
	// level.
	for _, node := range ep.nodes {
		for _, v := range p.ofNode(node) {
			at := &start[p.level[v]]
			dst[*at] = v
			*at++
		}
	}
}

// isBlocked reports whether v is a vertex of the current epoch that waits for others.
func (p *phaser) isBlocked(v int32) bool { return int(v) < len(p.blocks) && p.blocks[v] > 0 }

// findReady counts the dependencies in the epoch for each of its vertices, and returns those
// without any and the number of vertices. It also sets the lowest level that a vertex can have.
func (p *phaser) findReady(ep *epoch) (ready []int32, count int) {
	g := p.graph
	for _, node := range ep.nodes {
		level := int32(0)
		if p.net.nodes[node].kind == simpleNode {
			level = 1
		}
		count += len(p.ofNode(node))
		for _, v := range p.ofNode(node) {
			p.level[v], p.blocks[v] = level, 0
			for _, d := range g.dependencies(v) {
				if d >= 0 && p.mark[d] == p.segment && p.net.nodes[g.vertices[d].Node].epoch == p.net.nodes[node].epoch {
					p.blocks[v]++
				}
			}
			if p.blocks[v] == 0 {
				ready = append(ready, v)
			}
		}
	}
	return ready, count
}

// stuck returns the error for an epoch whose vertices can't be ordered.
func (p *phaser) stuck(ep *epoch) error {
	for _, node := range ep.nodes {
		for _, v := range p.ofNode(node) {
			if p.blocks[v] > 0 {
				return fmt.Errorf("%w: %s depends on itself: the recurrence needs the past and the future at once, or the same time",
					errCyclic, p.net.cindexName(p.graph.vertices[v].Cindex))
			}
		}
	}
	return nil
}

// epoch is a strongly connected component of the graph of nodes: nodes that are computed together,
// after those of earlier epochs.
type epoch struct {
	nodes []int32 // ascending
	// recurrent says that the nodes depend on each other, or one on itself, at other times.
	recurrent bool
}

// findEpochs returns the strongly connected components of the nodes, each after those that it
// depends on. It is Tarjan's algorithm without recursion. If the dependencies leave a choice the
// order is Kaldi's: the algorithm goes from nodes to users and reverses the components.
func findEpochs(nodes []node) []epoch {
	users := make([][]int32, len(nodes))
	for v := range nodes {
		for _, w := range nodes[v].sources(nil) {
			// A descriptor may name a node several times. v ascends, so a repetition is the last
			// one.
			if n := len(users[w]); n == 0 || users[w][n-1] != int32(v) {
				users[w] = append(users[w], int32(v))
			}
		}
	}
	var (
		order   = make([]int32, len(nodes)) // 1, 2, … as nodes are found; 0 before
		low     = make([]int32, len(nodes)) // the earliest reachable node on the stack
		onStack = make([]bool, len(nodes))
		stack   []int32
		epochs  []epoch
		count   int32
	)
	type frame struct {
		node  int32
		users []int32 // still to visit
	}
	var frames []frame
	enter := func(v int32) {
		count++
		order[v], low[v] = count, count
		stack, onStack[v] = append(stack, v), true
		frames = append(frames, frame{v, users[v]})
	}
	for root := range nodes {
		if order[root] != 0 {
			continue
		}
		enter(int32(root))
		for len(frames) > 0 {
			// Each frame is a call of the recursive algorithm; users are what its loop has still to
			// visit.
			f := &frames[len(frames)-1]
			v := f.node
			if len(f.users) > 0 {
				w := f.users[0]
				f.users = f.users[1:]
				if order[w] == 0 {
					enter(w)
				} else if onStack[w] {
					low[v] = min(low[v], order[w])
				}
				continue
			}
			frames = frames[:len(frames)-1]
			if len(frames) > 0 {
				parent := frames[len(frames)-1].node
				low[parent] = min(low[parent], low[v])
			}
			// Nothing that v reaches leads further back than v, so v is the root of its component,
			// and the nodes above it on the stack are the rest of it.
			if low[v] == order[v] {
				var e epoch
				e, stack = popEpoch(nodes, stack, onStack, v)
				epochs = append(epochs, e)
			}
		}
	}
	slices.Reverse(epochs)
	return epochs
}

// popEpoch takes the nodes down to root off the stack.
func popEpoch(nodes []node, stack []int32, onStack []bool, root int32) (epoch, []int32) {
	i := len(stack) - 1
	for stack[i] != root {
		i--
	}
	e := epoch{nodes: slices.Clone(stack[i:])}
	for _, v := range e.nodes {
		onStack[v] = false
	}
	slices.Sort(e.nodes)
	e.recurrent = len(e.nodes) > 1 || slices.Contains(nodes[root].sources(nil), root)
	return e, stack[:i]
}
