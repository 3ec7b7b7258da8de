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

// orphanNodes returns the numbers of the nodes that no output-node depends on, including
// input-nodes and hidden nodes.
func (nn *Nnet) orphanNodes() []int {
	var outputs []int
	for i := range nn.Nodes {
		if nn.IsOutputNode(i) {
			outputs = append(outputs, i)
		}
	}
	var orphans []int
	for i, n := range nn.neededFor(outputs) {
		if !n {
			orphans = append(orphans, i)
		}
	}
	return orphans
}

// Info describes the network: its sizes, its nodes as config lines, its components, and what is
// unused.
func (nn *Nnet) Info() string {
	var b strings.Builder
	visible := 0
	for i := range nn.Nodes {
		if !nn.IsComponentInputNode(i) {
			visible++
		}
	}
	fmt.Fprintf(&b, "num-nodes: %d\n", visible)
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
			fmt.Fprintf(&b, " input-dim=%d output-dim=%d", nn.Components[nn.Nodes[i].Component].InputDim(), nn.OutputDim(i))
		case DescriptorNode:
			fmt.Fprintf(&b, " dim=%d", nn.OutputDim(i))
		}
		b.WriteByte('\n')
	}
	for i, c := range nn.Components {
		fmt.Fprintf(&b, "component name=%s type=%s, %s\n", nn.ComponentNames[i], c.Type(), component.Info(c))
	}
	list := func(title string, names []string) {
		if len(names) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", title, strings.Join(names, " "))
		}
	}
	var unused, orphans []string
	for _, i := range nn.UnusedComponents() {
		unused = append(unused, nn.ComponentNames[i])
	}
	for _, i := range nn.orphanNodes() {
		if !nn.IsComponentInputNode(i) {
			orphans = append(orphans, nn.Nodes[i].Name)
		}
	}
	list("unused components", unused)
	list("nodes that no output needs", orphans)
	return b.String()
}
