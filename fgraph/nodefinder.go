package fgraph

import (
	"cmp"
	"slices"
)

// NodeFinder is the feature that knows the applies of every op.
type NodeFinder struct {
	hidden
	g     *FunctionGraph
	byOp  map[uint64][]int32 // indices into lists by hash of the op
	lists []opList
	place []nodePlace // by number of an apply
}

type opList struct {
	op    Op
	nodes []*Apply
}

type nodePlace struct{ list, pos int32 }

// NewNodeFinder returns the feature for one graph.
func NewNodeFinder() *NodeFinder {
	f := new(NodeFinder)
	f.Feature = (*finderCallbacks)(f)
	return f
}

// Nodes returns the applies of op by increasing number.
func (f *NodeFinder) Nodes(op Op) []*Apply {
	i := f.list(op)
	if i < 0 {
		return nil
	}
	nodes := slices.Clone(f.lists[i].nodes)
	slices.SortFunc(nodes, func(a, b *Apply) int { return cmp.Compare(a.id, b.id) })
	return nodes
}

// Count returns the number of applies of op.
func (f *NodeFinder) Count(op Op) int {
	if i := f.list(op); i >= 0 {
		return len(f.lists[i].nodes)
	}
	return 0
}

// list returns the index of the list of an op, or none.
func (f *NodeFinder) list(op Op) int32 {
	if CheckOp(op) != nil {
		return none // no graph has such an op
	}
	return f.listOf(op, HashOp(op))
}

func (f *NodeFinder) listOf(op Op, hash uint64) int32 {
	for _, i := range f.byOp[hash] {
		if OpsEqual(f.lists[i].op, op) {
			return i
		}
	}
	return none
}

type finderCallbacks NodeFinder

func (f *finderCallbacks) OnAttach(g *FunctionGraph) error {
	if err := attachable[*NodeFinder](f.g, g); err != nil {
		return err
	}
	f.g, f.byOp, f.lists, f.place = g, make(map[uint64][]int32), nil, nil
	Bookkeep(g, f)
	return nil
}

func (f *finderCallbacks) OnDetach(*FunctionGraph) { *f = finderCallbacks{hidden: f.hidden} }

func (f *finderCallbacks) OnImport(g *FunctionGraph, a *Apply, _ Reason) {
	h := HashOp(a.op)
	i := (*NodeFinder)(f).listOf(a.op, h)
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

func (f *finderCallbacks) OnPrune(_ *FunctionGraph, a *Apply, _ Reason) {
	p := f.place[a.id]
	l := &f.lists[p.list]
	last := len(l.nodes) - 1
	moved := l.nodes[last]
	l.nodes[p.pos] = moved
	f.place[moved.id].pos = p.pos
	l.nodes[last] = nil
	l.nodes = l.nodes[:last]
}
