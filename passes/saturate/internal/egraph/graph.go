package egraph

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync/atomic"
)

// A Class is a set of nodes that are known to be equal. Classes that have been united keep their
// numbers; [Graph.Find] returns the one that represents all of them.
type Class uint32

// A Node is an op applied to classes. Nodes are numbered in the order of their creation.
type Node uint32

// none ends lists.
const none = ^uint32(0)

// node is what a graph knows of a node. It holds up to two inputs; if there are more, a is where
// they begin among the wide inputs, and b is their number.
type node struct {
	head  uint32 // op, shape and flags
	a, b  uint32
	class uint32
}

const (
	opMask    = 1<<28 - 1
	shapeBits = 30 // the upper two bits: 0, 1 or 2 inputs, or wide
	wideShape = 3
	deadFlag  = 1 << 29 // another node has the same op and inputs
)

func (n *node) op() Op        { return Op(n.head & opMask) }
func (n *node) shape() uint32 { return n.head >> shapeBits }
func (n *node) dead() bool    { return n.head&deadFlag != 0 }

// class is what a graph knows of a class. Lists of parents consist of slots, see slotNode.
type class struct {
	parents, lastParent uint32
	nodes, lastNode     uint32
	count, uses         uint32 // nodes and parents, the dead included
	first               uint32 // the node that the class was made for
	start, size, mask   uint32 // its entries of the index, and the symbols among them
	hidden              uint32 // nodes that the index leaves out
	dirty               uint32 // the lap that queued it for the index
	flags               uint32
}

const (
	prunedFlag  = 1 << iota // only leaves are matched
	remakeFlag              // queued because its facts changed
	freshFlag               // queued because it was made: no node knew less of it
	outdoneFlag             // lost a union and learned from the winner
)

// A Graph is an e-graph: classes of equal nodes, whose inputs are classes. It is for one goroutine.
type Graph struct {
	lang    *Language
	opTable     // that of the language, with ops of the graph
	base    int // ops of the language

	nodes   []node
	next    []uint32 // 2 a node: the next slot in a list of parents
	inClass []uint32 // the next node of the class
	classes []class
	up      []uint32 // union-find
	wide    wideInputs
	table   table

	analysis Analysis
	pending  []uint32 // classes that lost a union and whose parents are stale
	remake   []uint32 // classes whose facts changed
	retry    []uint32 // classes to modify again
	folds    int      // since they were queued
	roots    int      // classes that are not united with others
	dead     int
	inputs   int // nodes before the first saturation
	room     int // nodes that are expected, or 0

	index index
	delta delta
	proof *proof // nil without explanations
	*brakes
	looks func()   // nil but in tests: called whenever the brakes are looked at
	kids  []uint32 // scratch
	bare  []uint32 // scratch
}

// wideInputs are the inputs of nodes with three inputs or more.
type wideInputs struct {
	kids, next, owner []uint32
}

// An Option changes a new graph.
type Option func(*Graph)

// WithAnalysis keeps facts about classes.
func WithAnalysis(a Analysis) Option { return func(g *Graph) { g.analysis = a } }

// WithExplanations lets the graph remember why nodes are equal, for [Graph.Explain].
func WithExplanations() Option { return func(g *Graph) { g.proof = &proof{} } }

// New returns an empty graph over a language, which must not change any more.
func New(l *Language, options ...Option) *Graph {
	g := &Graph{lang: l, brakes: new(brakes), opTable: opTable{slices.Clone(l.ops), maps.Clone(l.ids)}, base: len(l.ops)}
	g.table.init(1 << 6)
	for _, o := range options {
		o(g)
	}
	return g
}

// Symbol returns the symbol of an op.
func (g *Graph) Symbol(op Op) Symbol { return g.ops[op].sym }

// Param returns the parameters of an op.
func (g *Graph) Param(op Op) any { return g.ops[op].param }

// Name returns the name of the symbol of an op.
func (g *Graph) Name(op Op) string { return g.lang.sigs[g.ops[op].sym].Name }

// Op returns the op of a node.
func (g *Graph) Op(n Node) Op { return g.nodes[n].op() }

// Class returns the class of a node.
func (g *Graph) Class(n Node) Class { return Class(g.find(g.nodes[n].class)) }

// First returns the node that a class was made for, which may belong to a class that it has been
// united with. Reading from there, a class is a term.
func (g *Graph) First(c Class) Node { return Node(g.classes[c].first) }

// Inputs appends the classes of the inputs of a node to buf. Those of an op that commutes are
// sorted.
func (g *Graph) Inputs(n Node, buf []Class) []Class {
	for i := range g.arity(uint32(n)) {
		buf = append(buf, Class(g.find(g.kid(uint32(n), i))))
	}
	return buf
}

// Input returns the class of input i of a node.
func (g *Graph) Input(n Node, i int) Class { return Class(g.find(g.kid(uint32(n), i))) }

// Arity returns the number of inputs of a node.
func (g *Graph) Arity(n Node) int { return g.arity(uint32(n)) }

// Nodes yields the nodes of a class.
func (g *Graph) Nodes(c Class) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for n := g.classes[g.find(uint32(c))].nodes; n != none; n = g.inClass[n] {
			if !g.nodes[n].dead() && !yield(Node(n)) {
				return
			}
		}
	}
}

// Find returns the class that represents c and all classes that have been united with it.
func (g *Graph) Find(c Class) Class { return Class(g.find(uint32(c))) }

func (g *Graph) find(c uint32) uint32 {
	up := g.up
	for up[c] != c {
		up[c] = up[up[c]]
		c = up[c]
	}
	return c
}

// Size returns the number of nodes and of classes. Nodes that are equal up to classes count once;
// those that an analysis has pruned, see [Graph.Prune], don't count after a lap.
func (g *Graph) Size() (nodes, classes int) { return g.live(), g.roots }

func (g *Graph) live() int { return len(g.nodes) - g.dead - g.index.pruned }

// pollEvery is how many steps of work are done between looks at whether the caller cancels.
const pollEvery = 1024

// brakes end one saturation or extraction.
type brakes struct {
	stop atomic.Bool // the caller cancels
	halt atomic.Bool // that, or time is up: no more matching and applying
}

// brake makes brakes for a call, which ctx puts on. The caller calls release at its end.
func (g *Graph) brake(ctx context.Context) (release func() bool) {
	// A function that context.AfterFunc or time.AfterFunc has started may run after the call that it
	// was for, which does not wait for it. So each call has brakes of its own: those of the next
	// call must stay off.
	b := new(brakes)
	g.brakes = b
	return context.AfterFunc(ctx, func() { b.stop.Store(true); b.halt.Store(true) })
}

// stopped reports whether the caller has cancelled.
func (g *Graph) stopped() bool {
	if g.looks != nil {
		g.looks()
	}
	return g.stop.Load()
}

// halted reports whether the caller has cancelled, or time is up.
func (g *Graph) halted() bool {
	if g.looks != nil {
		g.looks()
	}
	return g.halt.Load()
}

func (g *Graph) arity(n uint32) int {
	d := &g.nodes[n]
	if d.shape() == wideShape {
		return int(d.b)
	}
	return int(d.shape())
}

// kid returns input i as the node has it.
func (g *Graph) kid(n uint32, i int) uint32 {
	d := &g.nodes[n]
	switch {
	case d.shape() == wideShape:
		return g.wide.kids[int(d.a)+i]
	case i == 0:
		return d.a
	}
	return d.b
}

// kidsOf returns the inputs of a node as it has them. They are valid until the node changes,
// or the next call for a node of up to two inputs.
func (g *Graph) kidsOf(n uint32) []uint32 {
	d := &g.nodes[n]
	switch d.shape() {
	case wideShape:
		return g.wide.kids[d.a : d.a+d.b]
	case 0:
		return nil
	case 1:
		g.bare = append(g.bare[:0], d.a)
	default:
		g.bare = append(g.bare[:0], d.a, d.b)
	}
	return g.bare
}

// slotNode returns the node of a slot of a list of parents.
func (g *Graph) slotNode(s uint32) uint32 {
	if s>>31 != 0 {
		return g.wide.owner[s&^(1<<31)]
	}
	return s >> 1
}

func (g *Graph) slotNext(s uint32) uint32 {
	if s>>31 != 0 {
		return g.wide.next[s&^(1<<31)]
	}
	return g.next[s]
}

func (g *Graph) addParent(c, slot uint32) {
	if slot>>31 != 0 {
		g.wide.next[slot&^(1<<31)] = none
	} else {
		g.next[slot] = none
	}
	d := &g.classes[c]
	if d.parents == none {
		d.parents = slot
	} else {
		g.setNext(d.lastParent, slot)
	}
	d.lastParent = slot
	d.uses++
}

func (g *Graph) setNext(slot, next uint32) {
	if slot>>31 != 0 {
		g.wide.next[slot&^(1<<31)] = next
	} else {
		g.next[slot] = next
	}
}

// An Analysis keeps facts about classes that grow as classes are united.
type Analysis interface {
	// Make adds what node n says about its class c, and reports whether that is news. Classes that
	// it has not seen have the next numbers.
	Make(g *Graph, n Node, c Class) bool
	// Join adds to into what is known of from, and reports whether that is news for into, and
	// whether what into knew is news for from.
	Join(g *Graph, into, from Class) (bool, bool)
	// Modify is called when facts of a class are new. It may call Fold, Prune, Union and Add.
	Modify(g *Graph, c Class)
}

// Analysis returns the analysis of the graph, or nil.
func (g *Graph) Analysis() Analysis { return g.analysis }

// learn tells the analysis of a new node.
func (g *Graph) learn(n uint32, fresh bool) {
	if g.analysis == nil {
		return
	}
	c := g.nodes[n].class
	if !fresh {
		c = g.find(c)
	}
	if !g.analysis.Make(g, Node(n), Class(c)) {
		return
	}
	if g.news(c); fresh {
		g.classes[c].flags |= freshFlag
	}
}

// news queues a class whose facts have changed.
func (g *Graph) news(c uint32) {
	g.classes[c].flags &^= freshFlag
	if g.classes[c].flags&remakeFlag == 0 {
		g.classes[c].flags |= remakeFlag
		g.remake = append(g.remake, c)
	}
}

// Fold unites the class of a node with a leaf: the value of its op where its inputs have values,
// which are the leaves inputs, in order. Explanations call this step "fold". If an input is not
// known to equal its leaf yet, Fold returns false, and the class is modified again when more has
// been folded: so no value explains itself.
func (g *Graph) Fold(n Node, op Op, inputs ...Op) bool {
	g.bare = g.bare[:0]
	for i, in := range inputs {
		leaf := g.lookup(in, nil)
		if leaf == none || g.find(g.nodes[leaf].class) != g.find(g.kid(uint32(n), i)) {
			g.retry = append(g.retry, g.nodes[n].class)
			return false
		}
		g.bare = append(g.bare, leaf)
	}
	leaf := g.insertSmall(uint32(op), 0, 0, none)
	if g.find(g.nodes[n].class) != g.find(g.nodes[leaf].class) {
		g.folds++
		g.proof.fold(uint32(n), leaf, g.bare)
		g.union(g.nodes[n].class, g.nodes[leaf].class)
	}
	return true
}

// Prune says that rules need no nodes of a class but leaves, because the class has a value. The
// other nodes remain for explanations and extraction.
func (g *Graph) Prune(c Class) {
	id := g.find(uint32(c))
	if g.classes[id].flags&prunedFlag == 0 {
		g.classes[id].flags |= prunedFlag
		g.soil(id)
	}
}
