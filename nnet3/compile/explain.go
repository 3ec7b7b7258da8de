package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/nnet3/internal/descriptor"
)

// NotComputableError says which outputs can't be computed and why.
type NotComputableError struct {
	// outputs are the outputs with rows that can't be computed.
	outputs []MissingRows
	// Inputs are the missing rows of input-nodes. There are none if no input is missing but rows
	// depend on each other in a circle.
	Inputs []MissingRows
	// chain leads from a row of an output to a missing row of an input that it needs. A long chain
	// is cut in the middle. names has the names of its nodes.
	chain []index.Cindex
	names []string
	// partial says that the search for missing inputs was cut short, so that more may be missing.
	partial bool
	// smallestChunk, if not 0, is the result of SmallestChunk, and left and right are the context.
	// It is set if it is above 1 and fewer frames of input were given than it takes.
	smallestChunk, left, right int

	sampled bool // only some of the outputs were tried
}

// MissingRows describes the missing rows of a node.
type MissingRows struct {
	Node string
	// count is the number of missing rows, of the number wanted of an output or given of an input.
	// count is a lower bound if the request is so large that only some outputs were tried.
	count, of int
	// First are the first few missing rows, in the order of index.Compare.
	First []index.Index
	// given are the first and the last time given of an input; it means nothing if of is 0.
	given [2]int32
}

// Unwrap returns ErrNotComputable.
func (e *NotComputableError) Unwrap() error { return ErrNotComputable }

// Error says which outputs can't be computed, which inputs are missing, and gives an example.
func (e *NotComputableError) Error() string {
	var b strings.Builder
	least := ""
	if e.sampled {
		least = "at least "
	}
	for i := range e.outputs {
		o := &e.outputs[i]
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "output %q can't be computed for %s%d of %s, %s", o.Node, least, o.count, indexes(o.of), o.list())
	}
	for i := range e.Inputs {
		in := &e.Inputs[i]
		fmt.Fprintf(&b, "; input %q lacks %s%s, %s", in.Node, least, indexes(in.count), in.list())
		if in.of == 0 {
			b.WriteString(" (none was given)")
		} else {
			fmt.Fprintf(&b, " (given: %s, t from %d to %d)", indexes(in.of), in.given[0], in.given[1])
		}
	}
	if e.partial {
		b.WriteString("; and perhaps more")
	}
	if len(e.Inputs) == 0 && !e.partial {
		b.WriteString("; no input is missing: the rows depend on each other in a circle")
	}
	if e.smallestChunk > 0 {
		fmt.Fprintf(&b, "; the smallest chunk that can be computed is one of %d frames, with a context of %d and %d", e.smallestChunk, e.left, e.right)
	}
	for i, c := range e.chain {
		sep := " <- "
		if i == 0 {
			sep = "; for example "
		}
		b.WriteString(sep + e.names[i] + c.Index.String())
	}
	return b.String()
}

func indexes(n int) string {
	if n == 1 {
		return "1 index"
	}
	return fmt.Sprintf("%d indexes", n)
}

// list prints the first indexes.
func (m *MissingRows) list() string {
	s := index.Format(m.First)
	if m.count > len(m.First) {
		s = strings.TrimSuffix(s, "]") + ", …]"
	}
	return s
}

const (
	maxListed = 10 // indexes of each node
	maxChain  = 40
	maxJudged = 64 // dependencies of a row of a component that are tried one by one
)

// explain returns the error for outputs that can't be computed.
func (b *builder) explain(inputs, outputs []ioRows) error {
	e := &NotComputableError{}
	s := newSearch(b)
	for i := range outputs {
		var bad []int32
		for _, v := range outputs[i].rows.vertices {
			if b.graph.vertices[v].status != computable {
				bad = append(bad, v)
				s.add(v, none)
			}
		}
		if len(bad) > 0 {
			wanted := len(outputs[i].spec.Indexes)
			e.outputs = append(e.outputs, MissingRows{Node: b.net.name(outputs[i].node), of: wanted,
				count: len(bad) * b.lanes, First: b.firstIndexes(bad)})
		}
	}
	// The builder stops at the first thing that a row lacks. To tell all that is missing, follow
	// everything the outputs need, also what the builder gave up as useless.
	e.partial = !s.run()
	if b.interrupt.err != nil {
		return b.interrupt.err
	}
	example := int32(none)
	for node := range int32(len(b.net.nodes)) {
		vertices := s.missing[node]
		if len(vertices) == 0 {
			continue
		}
		if example < 0 {
			example = s.first[node]
		}
		m := MissingRows{Node: b.net.name(node), count: len(vertices) * b.lanes, First: b.firstIndexes(vertices)}
		if i := slices.IndexFunc(inputs, func(in ioRows) bool { return in.node == node }); i >= 0 {
			m.of = len(inputs[i].spec.Indexes)
			m.given[0], m.given[1] = timesOf(inputs[i].spec.Indexes)
		}
		e.Inputs = append(e.Inputs, m)
	}
	s.addChain(e, example)
	b.suggestChunk(e, inputs, outputs)
	return e
}

// suggestChunk says how long a chunk must be if fewer frames were given.
func (b *builder) suggestChunk(e *NotComputableError, inputs, outputs []ioRows) {
	// Only nodes with a choice of dependencies make the smallest chunk larger than a frame.
	hasChoice := func(n node) bool { return n.kind != inputNode && !n.allNeeded() }
	if b.start > 0 || len(e.Inputs) == 0 || !slices.ContainsFunc(b.net.nodes, hasChoice) {
		return
	}
	given := int64(0)
	for i := range inputs {
		if n := inputs[i].spec.Indexes; b.net.name(inputs[i].node) != ivectorName {
			first, last := timesOf(n)
			given = max(given, int64(last)-int64(first)+1)
		}
	}
	var names []string
	for i := range outputs {
		names = append(names, outputs[i].spec.Name)
	}
	p, err := b.net.prober(names)
	if err != nil {
		return
	}
	frames, left, right, err := p.smallestChunk()
	if err == nil && frames > 1 && 0 < given && given < int64(left+frames+right) {
		e.smallestChunk, e.left, e.right = frames, left, right
	}
}

// timesOf returns the first and the last time of some indexes.
func timesOf(indexes []index.Index) (first, last int32) {
	first, last = indexes[0].T, indexes[0].T
	for _, ix := range indexes {
		first, last = min(first, ix.T), max(last, ix.T)
	}
	return first, last
}

// addChain adds the path from an output to a missing input, without hidden nodes.
func (s *search) addChain(e *NotComputableError, at int32) {
	for ; at >= 0; at = s.found[at].parent {
		if c := s.graph.vertices[s.found[at].vertex].Cindex; s.net.nodes[c.Node].kind != hiddenNode {
			e.chain = append(e.chain, c)
		}
	}
	slices.Reverse(e.chain)
	if n := len(e.chain); n > maxChain {
		e.chain = append(e.chain[:maxChain/2], e.chain[n-maxChain/2:]...)
	}
	for _, c := range e.chain {
		e.names = append(e.names, s.net.name(c.Node))
	}
}

// expandAgain finds the dependencies of v, even if the builder did not because they were useless.
func (b *builder) expandAgain(v int32) error {
	x := &b.graph.vertices[v]
	if x.first >= 0 || x.given {
		return nil
	}
	// The builder never looked at this vertex, or gave it up when it was outside of the bounds.
	// Pretend that it is needed, so that expand does its work.
	x.status, x.usable = unknown, max(x.usable, 1)
	err := b.expand(v)
	b.tellUsers()
	b.judgeDirty()
	return err
}

// culprits returns the missing dependencies of v. For a component they are those that it can't do
// without, or all if it could do without each of them.
func (b *builder) culprits(v int32) []int32 {
	g := b.graph
	x := g.vertices[v]
	n := &b.net.nodes[x.Node]
	deps := g.dependencies(v)
	if n.terms != nil && n.terms.ops != nil {
		return n.terms.culprits(g, deps, &b.scratch)
	}
	var list, all []int32
	for _, d := range deps {
		if d < 0 || g.vertices[d].status == computable {
			continue
		}
		all = append(all, d)
		// A pooling of statistics lacks nothing if it lacks one of many rows. A row is to blame
		// only if it would be missed with all others present.
		if n.kind != generalNode || len(deps) > maxJudged ||
			!n.general.IsComputable(x.Index, func(ix index.Index) bool { return ix != g.vertices[d].Index }, nil) {
			list = append(list, d)
		}
	}
	if len(list) == 0 {
		return all
	}
	return list
}

// culprits returns the missing dependencies: of a sum those that it lacks, of a Failover those of
// both arguments, of an IfDefined none.
func (t *terms) culprits(g *graph, deps []int32, s *scratch) []int32 {
	t.evaluateRoots(g, deps, s)
	var list []int32
	for i := len(t.ops) - 1; i >= 0; i-- {
		o := &t.ops[i]
		switch {
		case !s.needed[i] || s.status[i] == computable || o.kind == descriptor.IfDefined:
		case o.kind == descriptor.Simple:
			list = append(list, deps[o.leaf])
		default:
			for _, a := range o.args {
				s.needed[a] = true
			}
		}
	}
	slices.Reverse(list)
	return list
}

// firstIndexes returns the first few indexes of vertices of a node.
func (b *builder) firstIndexes(vertices []int32) []index.Index {
	vertices = slices.Clone(vertices)
	(&phaser{graph: b.graph}).sortVertices(vertices)
	return lists.Map(vertices[:min(len(vertices), maxListed)], func(v int32) index.Index { return b.graph.vertices[v].Index })
}

// Bounds of the search for missing inputs. Its cost is in the rows that it adds to the graph, with
// their edges some tens of megabytes.
const (
	maxExplainedSteps = 1 << 20
	maxExplainedRows  = 1 << 17 // rows new to the builder
	maxDiveSteps      = 1 << 14
)

// blamed is a vertex that outputs need, and the position in search.found of the one that needs it.
type blamed struct{ vertex, parent int32 }

// search follows everything that outputs need, even where one missing input made the builder stop.
type search struct {
	*builder
	found   []blamed          // in the order of discovery, looked at or not
	missing map[int32][]int32 // by input-node
	first   map[int32]int32   // by input-node, the position in found of the first missing row
	rows    int               // of the graph when the search began
	edges   int               // likewise
}

func newSearch(b *builder) *search {
	return &search{builder: b, missing: map[int32][]int32{}, first: map[int32]int32{}, rows: len(b.graph.vertices), edges: len(b.graph.deps)}
}

// add adds a vertex, unless it was found before.
func (s *search) add(v, parent int32) {
	if x := &s.graph.vertices[v]; !x.blamed {
		x.blamed = true
		s.found = append(s.found, blamed{v, parent})
	}
}

// run searches to the end or until the search gets too costly, and reports whether it reached the
// end. It goes hop by hop, so that it finds what is near first. If it is cut short before it finds
// a missing input, as in a deep network, it dives, because one example is better than none.
func (s *search) run() bool {
	for i := 0; i < len(s.found); i++ {
		if i == maxExplainedSteps || s.isCostly() || s.interrupt.came() {
			if len(s.missing) == 0 {
				s.dive(i)
			}
			return false
		}
		s.look(int32(i))
	}
	return true
}

// isCostly reports whether the graph has grown too much. A row has about two dependencies.
func (s *search) isCostly() bool {
	return len(s.graph.vertices)-s.rows > maxExplainedRows || len(s.graph.deps)-s.edges > 2*maxExplainedRows
}

// dive continues depth first with the vertices from position from on, the last one first.
func (s *search) dive(from int) {
	var stack []int32
	next := len(s.found) - 1
	for range maxDiveSteps {
		if len(stack) == 0 {
			if next < from {
				return
			}
			stack = append(stack, int32(next))
			next--
		}
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		// The rows that this one lacks go on the stack in reverse, so that the first is looked at
		// next.
		known := len(s.found)
		s.look(at)
		for i := len(s.found) - 1; i >= known; i-- {
			stack = append(stack, int32(i))
		}
	}
}

// look records a missing input, or finds what else a vertex lacks.
func (s *search) look(at int32) {
	v := s.found[at].vertex
	if node := s.graph.vertices[v].Node; s.net.nodes[node].kind == inputNode {
		if len(s.missing[node]) == 0 {
			s.first[node] = at
		}
		s.missing[node] = append(s.missing[node], v)
		return
	}
	if s.expandAgain(v) != nil {
		return
	}
	for _, d := range s.culprits(v) {
		s.add(d, at)
	}
}
