package fgraph

import (
	"cmp"
	"slices"
)

// NodeFinder is the feature that knows the applies of every op.
type NodeFinder struct {
	g     *FunctionGraph
	byOp  map[uint64][]int32 // hash of an op: places in lists
	lists []opList
	place []nodePlace // by number of an apply
}

type opList struct {
	op    Op
	nodes []*Apply
}

type nodePlace struct{ list, pos int32 }

// NewNodeFinder returns the feature for one graph.
func NewNodeFinder() *NodeFinder { return new(NodeFinder) }

// OnAttach takes stock of g. A second NodeFinder is dropped quietly.
func (f *NodeFinder) OnAttach(g *FunctionGraph) error {
	if _, ok := FeatureOf[*NodeFinder](g); ok {
		return ErrAlreadyAttached
	}
	if err := servesOne(f.g, g); err != nil {
		return err
	}
	f.g, f.byOp, f.lists, f.place = g, make(map[uint64][]int32), nil, nil
	Bookkeep(g, f)
	return nil
}

// OnDetach forgets everything.
func (f *NodeFinder) OnDetach(*FunctionGraph) { *f = NodeFinder{} }

// Nodes returns the applies of op in the order of their numbers.
func (f *NodeFinder) Nodes(op Op) []*Apply {
	if CheckOp(op) != nil {
		return nil // there can be none
	}
	i := f.list(op, HashOp(op))
	if i < 0 {
		return nil
	}
	nodes := slices.Clone(f.lists[i].nodes)
	slices.SortFunc(nodes, func(a, b *Apply) int { return cmp.Compare(a.id, b.id) })
	return nodes
}

// Count returns how many applies of op there are.
func (f *NodeFinder) Count(op Op) int {
	if CheckOp(op) != nil {
		return 0
	}
	if i := f.list(op, HashOp(op)); i >= 0 {
		return len(f.lists[i].nodes)
	}
	return 0
}

// OnImport notes a.
func (f *NodeFinder) OnImport(g *FunctionGraph, a *Apply, _ Reason) {
	h := HashOp(a.op)
	i := f.list(a.op, h)
	if i < 0 {
		i = int32(len(f.lists))
		f.lists = append(f.lists, opList{op: a.op})
		f.byOp[h] = append(f.byOp[h], i)
	}
	for len(f.place) < g.NumApplyIDs() {
		f.place = append(f.place, nodePlace{})
	}
	l := &f.lists[i]
	f.place[a.id] = nodePlace{i, int32(len(l.nodes))}
	l.nodes = append(l.nodes, a)
}

// OnPrune forgets a.
func (f *NodeFinder) OnPrune(_ *FunctionGraph, a *Apply, _ Reason) {
	p := f.place[a.id]
	l := &f.lists[p.list]
	last := len(l.nodes) - 1
	moved := l.nodes[last]
	l.nodes[p.pos] = moved
	f.place[moved.id].pos = p.pos
	l.nodes[last] = nil
	l.nodes = l.nodes[:last]
}

// list returns the place of the list of an op, or -1.
func (f *NodeFinder) list(op Op, hash uint64) int32 {
	for _, i := range f.byOp[hash] {
		if OpsEqual(f.lists[i].op, op) {
			return i
		}
	}
	return -1
}
