package noise

import (
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/index"
)

// rowsPerOutput returns, for each component, how many rows it computes for one of an output, if the
// outputs are as far apart as saves rows. In a TDNN whose late layers read times three frames
// apart, early layers compute three rows for each of the late ones, because such networks give an
// output for every third frame.
func rowsPerOutput(net *nnet3.Nnet) []int {
	apart := timesApart(net)
	widest := 1
	for _, d := range apart {
		widest = max(widest, d)
	}
	rows := make([]int, len(net.Components))
	for i := range net.Nodes {
		if n := &net.Nodes[i]; n.Kind == nnet3.ComponentNode {
			count := 1
			if apart[i] > 0 {
				count = widest / apart[i]
			}
			rows[n.Component] = max(rows[n.Component], count)
		}
	}
	return rows
}

// timesApart returns, for each node, the distance of the times at which it is needed for an output
// at a single time: the greatest common divisor, 0 if there is only one.
func timesApart(net *nnet3.Nnet) []int {
	apart := make([]int, len(net.Nodes))
	// Divisors only become smaller, so this ends. Going backward through the nodes, one round is
	// enough without recurrence.
	for changed := true; changed; {
		changed = false
		for i := len(net.Nodes) - 1; i >= 0; i-- {
			for _, x := range timesRead(net, i) {
				d := divisor(divisor(apart[x.Node], apart[i]), int(x.Index.T))
				changed = changed || d != apart[x.Node]
				apart[x.Node] = d
			}
		}
	}
	return apart
}

// timesRead returns what a node reads for time 0.
func timesRead(net *nnet3.Nnet, node int) (list []index.Cindex) {
	switch n := &net.Nodes[node]; n.Kind {
	case nnet3.DescriptorNode:
		return n.Descriptor.Dependencies(index.Index{}, nil)
	case nnet3.DimRangeNode:
		return []index.Cindex{{Node: int32(n.Input)}}
	case nnet3.ComponentNode:
		if c, ok := net.Components[n.Component].(component.NonSimple); ok {
			var used []index.Index
			c.IsComputable(index.Index{}, nearby, &used)
			for _, x := range used {
				list = append(list, index.Cindex{Node: int32(node - 1), Index: x})
			}
		}
		return append(list, index.Cindex{Node: int32(node - 1)})
	}
	return nil
}

// divisor returns the greatest common divisor of the absolute values of two numbers, which is the
// other one if one is 0.
func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}
