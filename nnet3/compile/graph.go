package compile

import "github.com/nnopt/nnopt/nnet3/index"

// none stands where there is no vertex, edge or step.
const none = -1

// status says whether a vertex can be computed from the inputs.
type status uint8

const (
	unknown status = iota
	computable
	notComputable
)

// vertex is a Cindex of the computation graph. A component-node and the hidden node before it share a vertex, unless the
// component is not simple: their indexes are the same.
type vertex struct {
	index.Cindex
	// first and count say where its dependencies are in graph.deps; first is none before they are known.
	first, count int32
	// users is the last edge that leads here, where the list of users begins.
	users int32
	// usable is the number of edges that lead here from vertices that are usable and may be computable, plus one for a
	// wanted output. Dependencies of a vertex that is of no use are not followed, which is what ends a recurrence.
	usable int32
	// waiting is the number of dependencies of unknown status.
	waiting int32
	status  status
	// given: the caller supplies it. wanted: it is an output. needed: an output is computed from it.
	given, wanted, needed bool
	// queued: its status is to be worked out again at the end of the round.
	queued bool
	// blamed: a search for what is missing has found it.
	blamed bool
}

// graph holds the vertices and what they depend on. Edge e leads from vertex owner[e] to its dependency deps[e]; next[e] is
// the next edge with the same dependency. deps[e] is none where the dependency turned out not to be used.
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

// dependencies returns the dependencies of v, none where one is not used. It has a place for every term of a descriptor.
func (g *graph) dependencies(v int32) []int32 {
	x := &g.vertices[v]
	if x.first < 0 {
		return nil
	}
	return g.deps[x.first : x.first+x.count]
}

// find returns the vertex of a node's index, or none.
func (g *graph) find(node int32, ix index.Index) int32 {
	return g.table.find(g.vertices, index.Cindex{Node: node, Index: ix})
}

// vertex returns the vertex of a node's index, new where there was none.
func (g *graph) vertex(node int32, ix index.Index) (v int32, isNew bool) {
	c := index.Cindex{Node: node, Index: ix}
	v, isNew = g.table.findOrAdd(g.vertices, c, int32(len(g.vertices)))
	if isNew {
		g.vertices = append(g.vertices, vertex{Cindex: c, first: none, users: none})
	}
	return v, isNew
}

// link appends an edge from v to its dependency d.
func (g *graph) link(v, d int32) {
	e := int32(len(g.deps))
	g.deps = append(g.deps, d)
	g.owner = append(g.owner, v)
	g.next = append(g.next, g.vertices[d].users)
	g.vertices[d].users = e
}

// forget takes back what was found out about v, which is neither given nor needed, so that a later segment, which has more
// inputs, may look at it again. Its edges stay in the lists of users, where live no longer accepts them.
func (g *graph) forget(v int32, hopeless bool) {
	x := &g.vertices[v]
	x.first, x.count, x.usable, x.waiting = none, 0, 0, 0
	x.status, x.queued = unknown, false
	if hopeless { // until it is given
		x.status = notComputable
	}
}

// live reports whether edge e, found in the list of users of a vertex, was not dropped.
func (g *graph) live(e int32) bool {
	x := &g.vertices[g.owner[e]]
	return x.first >= 0 && e >= x.first
}
