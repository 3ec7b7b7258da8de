package nnet3

import (
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/nnet3/component"
)

// NumParameters returns the number of trainable parameters.
func (nn *Nnet) NumParameters() int {
	n := 0
	for _, c := range nn.Components {
		if u, ok := c.(component.UpdatableComponent); ok {
			n += component.NumParameters(u)
		}
	}
	return n
}

// UnusedComponents returns the numbers of the components that no node uses.
func (nn *Nnet) UnusedComponents() []int {
	used := make([]bool, len(nn.Components))
	for i := range nn.Nodes {
		if n := &nn.Nodes[i]; n.Kind == ComponentNode {
			used[n.Component] = true
		}
	}
	var unused []int
	for i, u := range used {
		if !u {
			unused = append(unused, i)
		}
	}
	return unused
}

// OrphanNodes returns the numbers of the nodes that no output-node depends on, hidden ones included. An input-node may
// be one.
func (nn *Nnet) OrphanNodes() []int {
	needed := make([]bool, len(nn.Nodes))
	var todo []int
	for i := range nn.Nodes {
		if nn.IsOutputNode(i) {
			needed[i] = true
			todo = append(todo, i)
		}
	}
	var sources []int
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		sources = nn.Dependencies(i, sources[:0])
		for _, j := range sources {
			if !needed[j] {
				needed[j] = true
				todo = append(todo, j)
			}
		}
	}
	var orphans []int
	for i, n := range needed {
		if !n {
			orphans = append(orphans, i)
		}
	}
	return orphans
}

// Info describes the network: its sizes, its nodes as config lines with their dimensions, its components, and what
// nothing uses.
func (nn *Nnet) Info() string {
	var b strings.Builder
	fmt.Fprintf(&b, "num-nodes: %d\n", nn.numVisible())
	fmt.Fprintf(&b, "num-components: %d\n", len(nn.Components))
	fmt.Fprintf(&b, "num-parameters: %d\n", nn.NumParameters())
	fmt.Fprintf(&b, "modulus: %d\n", nn.Modulus())
	for i := range nn.Nodes {
		line := nn.ConfigLine(i)
		if line == "" {
			continue
		}
		b.WriteString(line)
		switch nn.Nodes[i].Kind {
		case ComponentNode:
			fmt.Fprintf(&b, " input-dim=%d output-dim=%d", nn.InputDim(i), nn.OutputDim(i))
		case DescriptorNode:
			fmt.Fprintf(&b, " dim=%d", nn.OutputDim(i))
		}
		b.WriteByte('\n')
	}
	for i, c := range nn.Components {
		fmt.Fprintf(&b, "component name=%s type=%s, %s\n", nn.ComponentNames[i], c.Type(), component.Info(c))
	}
	if unused := nn.UnusedComponents(); len(unused) > 0 {
		b.WriteString("unused components:")
		for _, i := range unused {
			b.WriteString(" " + nn.ComponentNames[i])
		}
		b.WriteByte('\n')
	}
	if orphans := nn.OrphanNodes(); len(orphans) > 0 {
		b.WriteString("nodes that no output needs:")
		for _, i := range orphans {
			if !nn.IsComponentInputNode(i) {
				b.WriteString(" " + nn.Nodes[i].Name)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// numVisible returns the number of nodes that are not hidden.
func (nn *Nnet) numVisible() int {
	n := 0
	for i := range nn.Nodes {
		if !nn.IsComponentInputNode(i) {
			n++
		}
	}
	return n
}
