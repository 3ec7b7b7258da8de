package saturate

import (
	"math"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/saturate/internal/egraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// bridge is a function graph as classes. It is the analysis of its graph: each class has a
// variable, its witness.
type bridge struct {
	p   *program
	g   *egraph.Graph
	fg  *fgraph.FunctionGraph
	ctx *rewrite.Context

	ops       []opInfo
	opsByHash map[uint64][]int32
	constants map[uint64][]egraph.Node
	leaves    int

	nodes   map[*fgraph.Variable]egraph.Node
	sources []source                      // by node
	next    source                        // of the node that is being added
	built   map[*fgraph.Apply]egraph.Node // by the last replacement; nil unless steps are explained
	last    *egraph.Built                 // the last replacement

	witness []*fgraph.Variable    // by class
	ranks   []int                 // by class: of the witness, see Ranker
	bounds  []bounds              // by class, see Bounder
	given   map[string][2]float64 // bounds of inputs by name
	asked   []egraph.Class        // those that a guard asks about
	ofAsked func(i int) (least, most float64)

	refused int // replacements of another type
	unmade  int // replacements that could not be made

	binding pattern.Binding // scratch, as all below
	rests   [][]*fgraph.Variable
	vars    []*fgraph.Variable
	classes []egraph.Class
	inputs  []egraph.Node
	todo    []*fgraph.Apply
}

// source is what a node was made for: an apply, with one output or, for a node that represents
// several, without a variable; or a variable.
type source struct {
	apply *fgraph.Apply
	out   *fgraph.Variable
}

// opInfo is an op with the types of its outputs, so that nodes that are equal have one type.
type opInfo struct {
	op    fgraph.Op
	types []fgraph.Type
	as    egraph.Op
}

func newBridge(p *program, fg *fgraph.FunctionGraph, ctx *rewrite.Context, explain bool) *bridge {
	b := &bridge{
		p: p, fg: fg, ctx: ctx, opsByHash: make(map[uint64][]int32), constants: make(map[uint64][]egraph.Node),
		nodes: make(map[*fgraph.Variable]egraph.Node, 2*fg.NumVariableIDs()),
	}
	options := []egraph.Option{egraph.WithAnalysis(b)}
	if explain {
		b.built = make(map[*fgraph.Apply]egraph.Node)
		options = append(options, egraph.WithExplanations())
	}
	if p.bounder != nil {
		b.ofAsked = b.boundsOfAsked
	}
	b.g = egraph.New(p.lang, options...)
	return b
}

// Make is part of [egraph.Analysis].
func (b *bridge) Make(_ *egraph.Graph, n egraph.Node, c egraph.Class) bool {
	s := b.next
	if int(n) < len(b.sources) {
		s = b.sources[n]
	}
	// A class gets its witness when its first node is added. Nodes that are added to it later come
	// through Join.
	if int(c) < len(b.witness) {
		return b.p.bounder != nil && b.bounds[c].cut(b.boundsOf(s.out))
	}
	b.witness = append(b.witness, s.out)
	b.ranks = append(b.ranks, b.rank(s.out))
	if b.p.bounder != nil {
		b.bounds = append(b.bounds, b.boundsOf(s.out))
	}
	return true
}

// isNumber is the rank of a variable that is known to be a number.
const isNumber = math.MaxInt

// rank returns the rank of a variable, see [Ranker]. That of a nil variable is 0.
func (b *bridge) rank(v *fgraph.Variable) int {
	if v == nil {
		return 0
	}
	if b.p.numberer != nil {
		if _, known := b.p.numberer.Number(v); known {
			return isNumber
		}
	}
	if b.p.ranker != nil {
		return b.p.ranker.Rank(v)
	}
	// A vocabulary that ranks nothing still tells constants by Equal.
	if b.p.numberer == nil && v.IsConstant() {
		return isNumber
	}
	return 0
}

// Join is part of [egraph.Analysis].
func (b *bridge) Join(_ *egraph.Graph, into, from egraph.Class) (bool, bool) {
	// Guards see one variable of a class. Of two, the one of which more is known is better, and of
	// equals the older one stays: otherwise which variable a guard sees would depend on the order
	// of unions.
	var news, olds bool
	if b.p.bounder != nil {
		was := b.bounds[from]
		news, olds = b.bounds[into].cut(was), was.cut(b.bounds[into])
	}
	if b.ranks[from] > b.ranks[into] {
		b.witness[into], b.ranks[into] = b.witness[from], b.ranks[from]
		return true, olds
	}
	return news, olds || b.ranks[into] > b.ranks[from]
}

// Modify is part of [egraph.Analysis].
func (b *bridge) Modify(*egraph.Graph, egraph.Class) {}

// add adds a node for what b.next says.
func (b *bridge) add(op egraph.Op, inputs ...egraph.Node) egraph.Node {
	n := b.g.AddNode(op, inputs...)
	if int(n) == len(b.sources) {
		b.sources = append(b.sources, b.next)
	}
	return n
}

// variable returns the node of a variable, which it adds together with all that computes it.
func (b *bridge) variable(v *fgraph.Variable) egraph.Node {
	if n, ok := b.nodes[v]; ok {
		return n
	}
	if v.Owner() == nil {
		return b.source(v)
	}
	// Inputs come before the apply that reads them. An apply stays on the stack until all of its
	// inputs have nodes, so each is looked at once for each input that was missing.
	b.todo = append(b.todo[:0], v.Owner())
next:
	for len(b.todo) > 0 {
		a := b.todo[len(b.todo)-1]
		for _, in := range a.Inputs() {
			if _, ok := b.nodes[in]; ok {
				continue
			}
			if in.Owner() != nil {
				b.todo = append(b.todo, in.Owner())
				continue next
			}
			b.source(in)
		}
		b.todo = b.todo[:len(b.todo)-1]
		b.apply(a)
	}
	return b.nodes[v]
}

// source adds a variable that nothing computes, or that is treated like one. Equal constants are
// one node.
func (b *bridge) source(v *fgraph.Variable) egraph.Node {
	b.next = source{out: v}
	var n egraph.Node
	hash, ok := uint64(0), false
	if v.IsConstant() {
		hash, ok = fgraph.HashData(v.Type(), v.Data())
		hash ^= fgraph.HashType(v.Type())
		// Constants are variables, and two of one value are not the same variable. As different
		// leaves they would keep all that is computed from them apart, so the first of equal ones
		// stands for all. Data that has no hash stays apart.
		for _, m := range b.constants[hash] {
			w := b.sources[m].out
			if ok && w.Type() == v.Type() && fgraph.EqualData(v.Type(), v.Data(), w.Data()) {
				b.nodes[v] = m
				return m
			}
		}
	}
	sym := b.p.leaf
	if v.IsConstant() {
		sym = b.p.constant
	}
	n = b.add(b.g.Intern(sym, b.leaves))
	b.leaves++
	if ok {
		b.constants[hash] = append(b.constants[hash], n)
	}
	b.nodes[v] = n
	return n
}

// apply adds an apply whose inputs have nodes.
func (b *bridge) apply(a *fgraph.Apply) {
	if _, ok := b.nodes[a.Out()]; ok {
		return
	}
	b.inputs = b.inputs[:0]
	for _, in := range a.Inputs() {
		b.inputs = append(b.inputs, b.nodes[in])
	}
	outs := a.Outputs()
	info := b.op(a)
	if len(outs) == 1 {
		b.next = source{a, outs[0]}
		n := b.add(b.ops[info].as, b.inputs...)
		b.nodes[outs[0]] = n
		if b.built != nil {
			b.built[a] = n
		}
		return
	}
	// A node has one class and thus one value. An apply with several outputs is a node of a tuple,
	// and each output a node that takes one element of it.
	b.next = source{apply: a}
	all := b.add(b.ops[info].as, b.inputs...)
	if b.built != nil {
		b.built[a] = all
	}
	for i, v := range outs {
		b.next = source{out: v}
		b.nodes[v] = b.add(b.g.Intern(b.p.output, i), all)
	}
}

// op returns the number of the op of an apply.
func (b *bridge) op(a *fgraph.Apply) int32 {
	hash := fgraph.HashOp(a.Op())
	for _, i := range b.opsByHash[hash] {
		if o := &b.ops[i]; fgraph.OpsEqual(o.op, a.Op()) && sameTypes(o.types, a.Outputs()) {
			return i
		}
	}
	i := int32(len(b.ops))
	b.opsByHash[hash] = append(b.opsByHash[hash], i)
	info := opInfo{op: a.Op()}
	for _, v := range a.Outputs() {
		info.types = append(info.types, v.Type())
	}
	// The parameter of the symbol is the number of the op with its types. So ops are equal for the
	// e-graph if they are equal for the graph, and what rules do not name is opaque, but still
	// shared.
	sym := b.p.opaque
	if x := b.p.symbols.of(a.Op(), len(a.Inputs()), len(info.types)); x != nil {
		sym = x.sym
	}
	info.as = b.g.Intern(sym, i)
	b.ops = append(b.ops, info)
	return i
}

func sameTypes(types []fgraph.Type, list []*fgraph.Variable) bool {
	if len(types) != len(list) {
		return false
	}
	for i, v := range list {
		if types[i] != v.Type() {
			return false
		}
	}
	return true
}

// holds reports whether a guard of a case holds.
func (b *bridge) holds(c pattern.Case, guard int, of egraph.Args) bool {
	root := b.sources[of.Root]
	if root.apply == nil || root.out == nil {
		return false
	}
	b.vars = b.vars[:0]
	// A class without a variable, such as a tuple, is not something that a guard can look at: the
	// match is given up, which is always safe.
	for _, k := range of.Classes {
		v := b.witness[b.g.Find(k)]
		if v == nil {
			return false
		}
		b.vars = append(b.vars, v)
	}
	b.asked = of.Classes
	return c.Holds(guard, pattern.Args{Context: b.ctx, Root: root.apply, Vars: b.vars, Bounds: b.ofAsked})
}

// equal reports whether a class is known to be a number, and returns the node of the witness.
func (b *bridge) equal(l pattern.Literal, c egraph.Class) (egraph.Node, bool) {
	c = b.g.Find(c)
	v := b.witness[c]
	if v == nil || b.ranks[c] != isNumber && b.p.numberer != nil || !b.p.vocab.Equal(l, v) {
		return 0, false
	}
	// The node is returned because an explanation has to say which member of the class the number
	// was.
	return b.nodes[v], true
}

// shown returns the node of the witness of a class.
func (b *bridge) shown(c egraph.Class) egraph.Node {
	if v := b.witness[b.g.Find(c)]; v != nil {
		return b.nodes[v]
	}
	return b.g.First(c)
}

// reset makes room for what a match binds.
func (b *bridge) reset(vars, rests, params int) {
	b.binding.Vars = cleared(b.binding.Vars, vars)
	b.binding.Params = cleared(b.binding.Params, params)
	for len(b.rests) < rests {
		b.rests = append(b.rests, nil)
	}
	b.binding.Rests = cleared(b.binding.Rests, rests)
}

func cleared[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// bounds are what is known of a class, see [Bounder].
type bounds struct {
	least, most float64
	cuts        int
}

// maxCuts bounds how often the bounds of a class become narrower: those of x = x/2 would without end.
const maxCuts = 8

// cut takes the bounds of both, and reports whether that is news.
func (k *bounds) cut(l bounds) bool {
	least, most := max(k.least, l.least), min(k.most, l.most)
	if least == k.least && most == k.most || k.cuts >= maxCuts {
		return false
	}
	k.least, k.most, k.cuts = least, most, k.cuts+1
	return true
}

// alike reports whether elements within both bounds are the same where they are numbers: one number, or none.
func (k bounds) alike(l bounds) bool {
	return k.least > k.most && l.least > l.most || k.least == k.most && k.least == l.least && k.most == l.most
}

// boundsOf returns the bounds of a variable by those of the classes that it is computed from.
func (b *bridge) boundsOf(v *fgraph.Variable) bounds {
	k := bounds{least: math.Inf(-1), most: math.Inf(1)}
	if v == nil {
		return k
	}
	if g, ok := b.given[v.Name()]; ok && v.Owner() == nil {
		k.least, k.most = g[0], g[1]
		return k
	}
	k.least, k.most = b.p.bounder.Bounds(v, func(in *fgraph.Variable) (float64, float64) {
		of := &b.bounds[b.g.Class(b.nodes[in])]
		return of.least, of.most
	})
	return k
}

// boundsOfAsked is what guards see as [pattern.Args.Bounds].
func (b *bridge) boundsOfAsked(i int) (least, most float64) {
	k := &b.bounds[b.g.Find(b.asked[i])]
	return k.least, k.most
}
