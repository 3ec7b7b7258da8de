package computation

import (
	"fmt"

	"github.com/nnopt/nnopt/nnet3/component"
)

// ComponentInfo is what is known of a component. The JSON names are those of the reference cases.
type ComponentInfo struct {
	Name       string               `json:"name"`
	Type       string               `json:"type"`
	Properties component.Properties `json:"props"`
	InputDim   int                  `json:"in"`
	OutputDim  int                  `json:"out"`
}

// Has reports whether the component has all of the properties p.
func (c ComponentInfo) Has(p component.Properties) bool { return c.Properties&p == p }

// NodeInfo is what is known of a network node.
type NodeInfo struct {
	Name string
	// Dim is the number of columns of the node's values.
	Dim int
	// IsInput and IsOutput mark input-nodes and output-nodes. A component-node may be accepted,
	// too.
	IsInput, IsOutput, IsComponent bool
}

// NetworkInfo says what the numbers of components and nodes in the commands of a computation mean.
// Computations that come from JSON have one even where the network is missing.
type NetworkInfo struct {
	// Components are those of the network, followed by the computation's derived ones.
	Components []ComponentInfo
	// Nodes are the network's. If empty, they are unknown, and not checked.
	Nodes []NodeInfo
}

// component returns the facts about component number i, and whether it exists.
func (n *NetworkInfo) component(i int32) (ComponentInfo, bool) {
	if n == nil || i < 0 || int(i) >= len(n.Components) {
		return ComponentInfo{}, false
	}
	return n.Components[i], true
}

// nodeName returns a printable name of node number i.
func (n *NetworkInfo) nodeName(i int32) string {
	if n == nil || i < 0 || int(i) >= len(n.Nodes) {
		return fmt.Sprintf("node%d", i)
	}
	return n.Nodes[i].Name
}

// node returns the node of the given name, nil if there is none.
func (n *NetworkInfo) node(name string) *NodeInfo {
	for i := range n.Nodes {
		if n.Nodes[i].Name == name {
			return &n.Nodes[i]
		}
	}
	return nil
}
