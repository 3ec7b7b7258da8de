package compile

import "github.com/nnopt/nnopt/nnet3/index"

// none is the number of no vertex, edge or step.
const none = -1

// status says whether a vertex can be computed from the inputs.
type status int8

// What needs two things has the smaller status of the two, what needs either has the larger.
const (
	notComputable status = iota - 1
	unknown
	computable
)

// vertex is a Cindex of the computation graph. A simple component-node and the hidden node before
// it share a vertex, because they have the same indexes.
type vertex struct {
	index.Cindex
	// first and count locate its dependencies in graph.deps; first is none until they are known.
	first, count int32
	// users is the last edge that leads here, the head of the list of users.
	users int32
	// usable is the number of edges from usable vertices that may be computable, plus one for a
	// wanted output. Dependencies of other vertices are not followed, which ends a recurrence.
	usable int32
	// waiting is the number of dependencies of unknown status.
	waiting int32
	status  status
	given   bool // the caller supplies it
	wanted  bool // it is an output
	needed  bool // an output is computed from it
	queued  bool // its status is to be judged again at the end of the round
	blamed  bool // a search for missing inputs has found it
}

// graph holds the vertices and their dependencies. Edge e leads from vertex owner[e] to its
// dependency deps[e], none if unused after all; next[e] is the next edge to the same dependency.
type graph struct {
	vertices []vertex
	deps     []int32
	owner    []int32
	next     []int32
	table    table
}

func newGraph(sizeHint int) *graph {
	return &graph{
		vertices: make([]vertex, 0, sizeHint),
		deps:     make([]int32, 0, 2*sizeHint),
		owner:    make([]int32, 0, 2*sizeHint),
		next:     make([]int32, 0, 2*sizeHint),
		table:    newTable(sizeHint),
	}
}

// dependencies returns the dependencies of v, one for every term of a descriptor, none if unused.
func (g *graph) dependencies(v int32) []int32 {
	x := &g.vertices[v]
	if x.first < 0 {
		return nil
	}
	return g.deps[x.first : x.first+x.count]
}

// find returns the vertex for an index of a node, or none.
func (g *graph) find(node int32, ix index.Index) int32 {
	v, _, _ := g.table.look(g.vertices, index.Cindex{Node: node, Index: ix})
	return v
}

// vertex returns the vertex for an index of a node, and adds it if there is none.
func (g *graph) vertex(node int32, ix index.Index) (v int32, isNew bool) {
	c := index.Cindex{Node: node, Index: ix}
	v, slot, tag := g.table.look(g.vertices, c)
	if v >= 0 {
		return v, false
	}
	v = int32(len(g.vertices))
	g.vertices = append(g.vertices, vertex{Cindex: c, first: none, users: none})
	g.table.enter(slot, tag, v, g.vertices)
	return v, true
}

// link appends an edge from v to its dependency d.
func (g *graph) link(v, d int32) {
	// Edges of a vertex are consecutive in deps, because all are linked in one expansion; users are
	// a linked list, because they come at any time.
	e := int32(len(g.deps))
	g.deps = append(g.deps, d)
	g.owner = append(g.owner, v)
	g.next = append(g.next, g.vertices[d].users)
	g.vertices[d].users = e
}

// forget resets v, which is neither given nor needed, so that a later segment, with more inputs,
// may look at it again. Its edges stay in the lists of users, where live rejects them.
func (g *graph) forget(v int32, hopeless bool) {
	x := &g.vertices[v]
	x.first, x.count, x.usable, x.waiting = none, 0, 0, 0
	x.status, x.queued = unknown, false
	if hopeless { // not computable until it is given
		x.status = notComputable
	}
}

// live reports whether edge e in a list of users is still valid.
func (g *graph) live(e int32) bool {
	x := &g.vertices[g.owner[e]]
	return x.first >= 0 && e >= x.first
}

// table finds vertices by Cindex, with open addressing and without deletion. A slot holds a tag in
// its upper half and the vertex plus one in its lower half, so that a miss rarely looks at a
// vertex. Sixteen consecutive times of a node share a block of slots, being looked up in order.
type table struct {
	slots []uint64
	used  int
}

const minTableSlots = 1 << 8

// newTable returns a table with room for about n vertices before it grows.
func newTable(n int) table {
	size := minTableSlots
	for size < 2*n {
		size *= 2
	}
	return table{slots: make([]uint64, size)}
}

// hash returns the tag of c and, before masking, the slot where the search for c begins.
func hash(c index.Cindex) (slot uint64, tag uint32) {
	h := uint64(uint32(c.Node))*0x9e3779b97f4a7c15 ^ uint64(uint32(c.Index.N))*0xc2b2ae3d27d4eb4f
	h ^= uint64(uint32(c.Index.X))*0x165667b19e3779f9 ^ uint64(uint32(c.Index.T>>4))*0x27d4eb2f165667c5
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	h ^= h >> 29
	low := uint64(uint32(c.Index.T)) & 15
	return h&^15 | low, uint32(h>>32)&^15 | uint32(low)
}

// look returns the vertex of c, or none and the free slot for it, with its tag.
func (t *table) look(vertices []vertex, c index.Cindex) (v int32, slot uint64, tag uint32) {
	slot, tag = hash(c)
	mask := uint64(len(t.slots) - 1)
	// At most half of the slots are in use, so probing is short. The tag has 28 bits of the hash
	// and 4 of the time, so a slot with the same tag nearly always has the right vertex, and a miss
	// touches one cache line.
	for slot &= mask; ; slot = (slot + 1) & mask {
		e := t.slots[slot]
		if e == 0 {
			return none, slot, tag
		}
		if uint32(e>>32) == tag {
			if v := int32(uint32(e)) - 1; vertices[v].Cindex == c {
				return v, slot, tag
			}
		}
	}
}

// enter enters vertex v, the last one of vertices, in the slot that look returned with the tag.
func (t *table) enter(slot uint64, tag uint32, v int32, vertices []vertex) {
	t.slots[slot] = uint64(tag)<<32 | uint64(uint32(v+1))
	t.used++
	if 2*t.used > len(t.slots) {
		t.grow(vertices)
	}
}

// grow doubles the table.
func (t *table) grow(vertices []vertex) {
	old := t.slots
	t.slots = make([]uint64, 2*len(old))
	mask := uint64(len(t.slots) - 1)
	for _, e := range old {
		if e == 0 {
			continue
		}
		slot, _ := hash(vertices[int32(uint32(e))-1].Cindex)
		for slot &= mask; t.slots[slot] != 0; slot = (slot + 1) & mask {
		}
		t.slots[slot] = e
	}
}
