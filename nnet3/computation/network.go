package computation

import (
	"fmt"

	"github.com/nnopt/nnopt/internal/errlist"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
)

// NewNetworkInfo returns the facts about network nn and about derived components
// (Computation.Derived, may be nil), which are numbered after the network's.
func NewNetworkInfo(nn *nnet3.Nnet, derived []component.Component) *NetworkInfo {
	info := &NetworkInfo{
		Components: make([]ComponentInfo, 0, len(nn.Components)+len(derived)),
		Nodes:      make([]NodeInfo, len(nn.Nodes)),
	}
	add := func(c component.Component, name string) {
		info.Components = append(info.Components, ComponentInfo{Name: name, Type: c.Type(),
			Properties: c.Properties(), InputDim: c.InputDim(), OutputDim: c.OutputDim()})
	}
	for i, c := range nn.Components {
		add(c, nn.ComponentNames[i])
	}
	for i, c := range derived {
		name := fmt.Sprintf("derived%d", i)
		if s, ok := c.(fmt.Stringer); ok {
			name = s.String()
		}
		add(c, name)
	}
	for i := range nn.Nodes {
		n := &nn.Nodes[i]
		info.Nodes[i] = NodeInfo{
			Name:        n.Name,
			Dim:         nn.OutputDim(i),
			IsInput:     nn.IsInputNode(i),
			IsOutput:    nn.IsOutputNode(i),
			IsComponent: n.Kind == nnet3.ComponentNode,
		}
	}
	return info
}

// Component returns the component that commands name by number i: one of network nn, or one of
// c.Derived. It returns nil if there is none.
func (c *Computation) Component(nn *nnet3.Nnet, i int32) component.Component {
	switch n := len(nn.Components); {
	case i >= 0 && int(i) < n:
		return nn.Components[i]
	case i >= 0 && int(i)-n < len(c.Derived):
		return c.Derived[int(i)-n]
	}
	return nil
}

// Precomputed returns the data of all entries of c.PrecomputedIndexes. The components of nn compute
// data that is missing, as in a computation from a file, from the indexes of the entry. The
// computation itself does not change. The numbers in c must be in range.
func (c *Computation) Precomputed(nn *nnet3.Nnet) ([]component.Precomputed, error) {
	data := make([]component.Precomputed, len(c.PrecomputedIndexes))
	user := make([]int32, len(data)) // by entry: the component that uses it, -1 for none
	backward := make([]bool, len(data))
	for i := range user {
		data[i], user[i] = c.PrecomputedIndexes[i].Data, -1
	}
	var errs []error
	for i, cmd := range c.Commands {
		if cmd.Type != Propagate && !cmd.Type.IsBackprop() || cmd.Precomputed() == 0 || data[cmd.Precomputed()] != nil {
			continue
		}
		// An entry holds what one component computed. Two components would each need data of their
		// own.
		if u := user[cmd.Precomputed()]; u >= 0 && u != cmd.Component() {
			errs = append(errs, &violation{Kind: errComponent, Command: i, Text: NewPrinter(c, nil).Command(i),
				Detail: fmt.Sprintf("precomputed indexes %d belong to component %d", cmd.Precomputed(), u)})
			continue
		}
		// Whether any user runs backward decides what is computed, so it is done after all commands
		// were seen.
		user[cmd.Precomputed()] = cmd.Component()
		backward[cmd.Precomputed()] = backward[cmd.Precomputed()] || cmd.Type.IsBackprop()
	}
	for entry, u := range user {
		p := &c.PrecomputedIndexes[entry]
		if u < 0 || len(p.OutputIndexes) == 0 {
			continue
		}
		comp, ok := c.Component(nn, u).(component.NonSimple)
		if !ok {
			errs = append(errs, fmt.Errorf("%w: component %d has precomputed indexes %d, but uses none", errComponent, u, entry))
			continue
		}
		var err error
		if data[entry], err = comp.PrecomputeIndexes(p.InputIndexes, p.OutputIndexes, backward[entry]); err != nil {
			errs = append(errs, fmt.Errorf("%w: precomputed indexes %d: %w", errComponent, entry, err))
		}
	}
	return data, errlist.Join(errs)
}

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
