package fgraph

import (
	"cmp"
	"slices"
)

// NodeFinder is the feature that knows the applies of every op.
type NodeFinder struct {
	hidden
	g     *FunctionGraph
	nodes [][]*Apply // by number of the op
	place []int32    // in the list of its op, by number of an apply
}

// NewNodeFinder returns the feature for one graph.
func NewNodeFinder() *NodeFinder {
	f := new(NodeFinder)
	f.Feature = (*finderCallbacks)(f)
	return f
}

// Nodes returns the applies of op by increasing number.
func (f *NodeFinder) Nodes(op Op) []*Apply {
	nodes := slices.Clone(f.of(op))
	slices.SortFunc(nodes, func(a, b *Apply) int { return cmp.Compare(a.id, b.id) })
	return nodes
}

// Count returns the number of applies of op.
func (f *NodeFinder) Count(op Op) int { return len(f.of(op)) }

func (f *NodeFinder) of(op Op) []*Apply {
	if f.g == nil || CheckOp(op) != nil { // no graph has such an op
		return nil
	}
	if n := int(f.g.opNumbers.of(op)); n < len(f.nodes) {
		return f.nodes[n]
	}
	return nil
}

type finderCallbacks NodeFinder

func (f *finderCallbacks) OnAttach(g *FunctionGraph) error {
	if err := attachable[*NodeFinder](f.g, g); err != nil {
		return err
	}
	f.g, f.nodes, f.place = g, nil, nil
	Bookkeep(g, f)
	return nil
}

func (f *finderCallbacks) OnDetach(*FunctionGraph) { *f = finderCallbacks{hidden: f.hidden} }

func (f *finderCallbacks) OnImport(g *FunctionGraph, a *Apply, _ Reason) {
	n := g.OpNumber(a)
	for len(f.nodes) <= n {
		f.nodes = append(f.nodes, nil)
	}
	for len(f.place) < g.NumApplyIDs() {
		f.place = append(f.place, 0)
	}
	f.place[a.id] = int32(len(f.nodes[n]))
	f.nodes[n] = append(f.nodes[n], a)
}

func (f *finderCallbacks) OnPrune(g *FunctionGraph, a *Apply, _ Reason) {
	list := &f.nodes[g.OpNumber(a)]
	last := len(*list) - 1
	moved := (*list)[last]
	(*list)[f.place[a.id]] = moved
	f.place[moved.id] = f.place[a.id]
	(*list)[last] = nil
	*list = (*list)[:last]
}
