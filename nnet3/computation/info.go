package computation

import (
	"fmt"

	"github.com/nnopt/nnopt/nnet3/component"
)

// ComponentInfo is what the analyzer, the checker and the printer need to know of a component.
type ComponentInfo struct {
	Name, Type          string
	Properties          component.Properties
	InputDim, OutputDim int
}

// Has reports whether the component has all of the properties p.
func (c ComponentInfo) Has(p component.Properties) bool { return c.Properties&p == p }

// NodeInfo is what they need to know of a network node.
type NodeInfo struct {
	Name string
	// Dim is the number of columns of the node's values.
	Dim int
	// IsInput and IsOutput are true where a matrix for the node may be accepted from the caller or provided to it: an
	// input-node, an output-node. A component-node may be accepted, it stands in for an input then.
	IsInput, IsOutput, IsComponent bool
}

// NetworkInfo says what the numbers of components and nodes in the commands of a computation mean. It stands between a
// computation and its network, so that a computation can also be studied where there is no network, as when it comes from
// JSON. A NetworkInfo is not changed once it is made, and then safe for concurrent use.
type NetworkInfo struct {
	// Components are those of the network, followed by the computation's derived ones.
	Components []ComponentInfo
	// Nodes are the network's; empty means unknown, and then nothing that concerns nodes is checked.
	Nodes []NodeInfo
}

// component returns the facts of component number i, and whether there is one.
func (n *NetworkInfo) component(i int32) (ComponentInfo, bool) {
	if n == nil || i < 0 || int(i) >= len(n.Components) {
		return ComponentInfo{}, false
	}
	return n.Components[i], true
}

// componentName returns a printable name of component number i.
func (n *NetworkInfo) componentName(i int32) string {
	if info, ok := n.component(i); ok {
		return info.Name
	}
	return fmt.Sprintf("component%d", i)
}

// nodeName returns a printable name of node number i.
func (n *NetworkInfo) nodeName(i int32) string {
	if n == nil || i < 0 || int(i) >= len(n.Nodes) {
		return fmt.Sprintf("node%d", i)
	}
	return n.Nodes[i].Name
}
