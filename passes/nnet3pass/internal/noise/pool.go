package noise

import (
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/index"
)

// A Pool lends matrices by their rows and columns. One that is nil lends new ones.
type Pool map[[2]int][]kernel.Matrix

// take returns zeros.
func (p Pool) take(rows, cols int) kernel.Matrix {
	size := [2]int{rows, cols}
	free := p[size]
	if len(free) == 0 {
		return kernel.New(rows, cols)
	}
	m := free[len(free)-1]
	p[size] = free[:len(free)-1]
	kernel.Fill(m, 0)
	return m
}

// give returns a matrix to the pool. It must not be used any more.
func (p Pool) give(m kernel.Matrix) {
	if p != nil {
		size := [2]int{m.Rows, m.Cols}
		p[size] = append(p[size], m)
	}
}

// lastReaders returns, for each node, the last node that reads it in an Estimate, or -1 if it
// has to be kept: outputs, and in a recurrent network all nodes. A node reads what a dim-range node
// reads that it reads.
func lastReaders(net *nnet3.Nnet) []int {
	last := make([]int, len(net.Nodes))
	var list []index.Cindex
	for i := len(net.Nodes) - 1; i >= 0; i-- {
		last[i] = max(last[i], i)
		list = list[:0]
		switch n := &net.Nodes[i]; n.Kind {
		case nnet3.DescriptorNode:
			for t := range int32(cycleTimes) {
				list = n.Descriptor.Dependencies(index.Index{T: t}, list)
			}
		case nnet3.DimRangeNode:
			list = append(list, index.Cindex{Node: int32(n.Input)})
		case nnet3.ComponentNode:
			list = append(list, index.Cindex{Node: int32(i - 1)})
		}
		for _, x := range list {
			// The next sweep reads what this one leaves, so nothing can be given back.
			if int(x.Node) >= i { // recurrent
				for k := range last {
					last[k] = -1
				}
				return last
			}
			reader := i
			if net.Nodes[i].Kind == nnet3.DimRangeNode {
				reader = last[i]
			}
			last[x.Node] = max(last[x.Node], reader)
		}
	}
	for i := range net.Nodes {
		if net.IsOutputNode(i) || net.Nodes[i].Kind == nnet3.DimRangeNode {
			last[i] = -1
		}
	}
	return last
}

// Kept returns how many nodes have their values still.
func (e *Estimate) Kept() int {
	n := 0
	for i := range e.nodes {
		if e.nodes[i].m.Rows > 0 {
			n++
		}
	}
	return n
}
