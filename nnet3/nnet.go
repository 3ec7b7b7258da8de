package nnet3

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/internal/descriptor"
)

// Errors that the errors of this package wrap.
var (
	// ErrConfig means that a config line is wrong.
	ErrConfig = errors.New("bad config line")
	// ErrNetwork means that the parts of a network do not fit together.
	ErrNetwork = errors.New("inconsistent network")
	// ErrUnsupported means that a model needs something that this package does not have.
	ErrUnsupported = errors.New("not supported")
)

// NodeKind is the kind of a Node.
type NodeKind uint8

// The kinds of nodes.
const (
	InputNode      NodeKind = iota // a matrix that the caller supplies
	DescriptorNode                 // rows gathered from other nodes: an output-node, or the input of the ComponentNode after it
	ComponentNode                  // a component applied to the node before it
	DimRangeNode                   // a range of the columns of another node
)

var kindNames = [...]string{"input-node", "output-node", "component-node", "dim-range-node"}

// String returns the word for the kind in config lines. A DescriptorNode is an output-node, unless
// a component-node follows it.
func (k NodeKind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("NodeKind(%d)", uint8(k))
}

// Node is a node of a network.
type Node struct {
	Kind       NodeKind
	Name       string
	Dim        int                   // columns, of an InputNode or a DimRangeNode
	DimOffset  int                   // first column, of a DimRangeNode
	Component  int                   // number of the component, of a ComponentNode
	Input      int                   // number of the node whose columns it takes, of a DimRangeNode
	Descriptor descriptor.Descriptor // of a DescriptorNode
	quadratic  bool                  // of an output-node: its objective is quadratic, not linear
}

// Nnet is a network.
type Nnet struct {
	Nodes          []Node
	Components     []component.Component
	ComponentNames []string // one per component

	types   *component.Registry // makes further components; nil: Kaldi does
	numbers map[string]int      // of nodes, a hint that NodeIndex verifies
}

// NodeIndex returns the number of the node with the given name, or -1.
func (nn *Nnet) NodeIndex(name string) int {
	if i, ok := nn.numbers[name]; ok && i < len(nn.Nodes) && nn.Nodes[i].Name == name {
		return i
	}
	return slices.IndexFunc(nn.Nodes, func(n Node) bool { return n.Name == name })
}

// indexNodes makes NodeIndex fast.
func (nn *Nnet) indexNodes() {
	nn.numbers = make(map[string]int, len(nn.Nodes))
	for i := range nn.Nodes {
		nn.numbers[nn.Nodes[i].Name] = i
	}
}

// NumComponents returns the number of components.
func (nn *Nnet) NumComponents() int { return len(nn.Components) }

// Component returns a component and its name.
func (nn *Nnet) Component(number int) (c component.Component, name string) {
	return nn.Components[number], nn.ComponentNames[number]
}

// ComponentIndex returns the number of the component with the given name, or -1.
func (nn *Nnet) ComponentIndex(name string) int { return slices.Index(nn.ComponentNames, name) }

// NodeName returns the name of a node. It is an argument for descriptor.Format.
func (nn *Nnet) NodeName(node int) string { return nn.Nodes[node].Name }

// IsInputNode reports whether the caller supplies the node's rows.
func (nn *Nnet) IsInputNode(node int) bool { return nn.Nodes[node].Kind == InputNode }

// IsComponentInputNode reports whether the node is the hidden one before a component-node.
func (nn *Nnet) IsComponentInputNode(node int) bool {
	return nn.Nodes[node].Kind == DescriptorNode && node+1 < len(nn.Nodes) && nn.Nodes[node+1].Kind == ComponentNode
}

// IsOutputNode reports whether the node is an output-node.
func (nn *Nnet) IsOutputNode(node int) bool {
	return nn.Nodes[node].Kind == DescriptorNode && !nn.IsComponentInputNode(node)
}

// OutputDim returns the number of columns of a node, or -1 if its descriptor adds up nodes of
// different sizes, which Check reports.
func (nn *Nnet) OutputDim(node int) int {
	n := &nn.Nodes[node]
	switch n.Kind {
	case DescriptorNode:
		dim, err := n.Descriptor.Dim(nn.sourceDim)
		if err != nil {
			return -1
		}
		return dim
	case ComponentNode:
		return nn.Components[n.Component].OutputDim()
	}
	return n.Dim
}

// sourceDim is OutputDim for a node that a descriptor refers to, and -1 for a wrong reference.
func (nn *Nnet) sourceDim(node int) int {
	if node < 0 || node >= len(nn.Nodes) || nn.Nodes[node].Kind == DescriptorNode {
		return -1
	}
	return nn.OutputDim(node)
}

// dimOf returns the number of columns of the node with the given name if it satisfies is, else -1.
func (nn *Nnet) dimOf(name string, is func(int) bool) int {
	if i := nn.NodeIndex(name); i >= 0 && is(i) {
		return nn.OutputDim(i)
	}
	return -1
}

// InputNodeDim returns the number of columns of the input-node with the given name, or -1.
func (nn *Nnet) InputNodeDim(name string) int { return nn.dimOf(name, nn.IsInputNode) }

// OutputNodeDim returns the number of columns of the output-node with the given name, or -1.
func (nn *Nnet) OutputNodeDim(name string) int { return nn.dimOf(name, nn.IsOutputNode) }

// Modulus returns the smallest shift in time that does not change the network's results but for
// their time: the least common multiple over its descriptors.
func (nn *Nnet) Modulus() int {
	m := 1
	for i := range nn.Nodes {
		if n := &nn.Nodes[i]; n.Kind == DescriptorNode {
			m = descriptor.LCM(m, n.Descriptor.Modulus())
		}
	}
	return m
}

// Dependencies appends to dst the numbers of the nodes that a node directly takes rows from.
func (nn *Nnet) Dependencies(node int, dst []int) []int {
	switch n := &nn.Nodes[node]; n.Kind {
	case DescriptorNode:
		return n.Descriptor.Nodes(dst)
	case ComponentNode:
		return append(dst, node-1)
	case DimRangeNode:
		return append(dst, n.Input)
	}
	return dst
}

// Copy returns a network that shares nothing mutable with this one.
func (nn *Nnet) Copy() *Nnet {
	c := &Nnet{
		types:          nn.types,
		Nodes:          slices.Clone(nn.Nodes),
		ComponentNames: slices.Clone(nn.ComponentNames),
		Components:     make([]component.Component, len(nn.Components)),
	}
	for i, old := range nn.Components {
		c.Components[i] = component.Copy(old)
	}
	c.indexNodes()
	return c
}

// A StatsError names the components that are in test mode without the statistics that training
// would have given them.
type StatsError struct{ Components []string }

// Error names three of the components.
func (e *StatsError) Error() string {
	list := strings.Join(e.Components[:min(3, len(e.Components))], ", ")
	if more := len(e.Components) - 3; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return "batch normalization without statistics: mean 0 and variance 1 are used in " + list
}

// CheckStats returns a StatsError if components are in test mode without statistics. Kaldi warns of
// them, because what the network computes then is of no use.
func (nn *Nnet) CheckStats() error {
	var names []string
	for i, c := range nn.Components {
		if u, ok := c.(component.StatsUser); ok && u.LacksStats() {
			names = append(names, nn.ComponentNames[i])
		}
	}
	if names == nil {
		return nil
	}
	return &StatsError{names}
}

// SetTestMode switches components that behave differently in training, such as dropout and batch
// normalization, to inference or back. Batch normalization needs statistics then; see CheckStats.
func (nn *Nnet) SetTestMode(test bool) {
	for _, c := range nn.Components {
		if t, ok := c.(component.TestModer); ok {
			t.SetTestMode(test)
		}
	}
}
