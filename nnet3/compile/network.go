package compile

import (
	"fmt"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/index"
)

// nodeKind says how the rows of a node are made.
type nodeKind uint8

const (
	inputNode   nodeKind = iota // supplied by the caller, or missing
	outputNode                  // gathered by a descriptor
	hiddenNode                  // gathered for a component; has vertices only if that is not simple
	simpleNode                  // a simple component; its vertices stand for the hidden node too
	generalNode                 // another component; depends on vertices of the hidden node
	rangeNode                   // columns of another node
)

// node is a node of the network, prepared for compilation.
type node struct {
	kind       nodeKind
	terms      *terms // of an outputNode or hiddenNode; of a simpleNode, those of its hidden node
	source     int32  // the node that a rangeNode views; the hidden node of a simpleNode or generalNode
	component  int32
	properties component.Properties
	general    component.NonSimple // of a generalNode
	dim        int
	dimOffset  int
	trainable  bool // an updatable component with a nonzero learning rate
	epoch      int32
}

// allNeeded reports whether a row of the node needs all of its dependencies.
func (n *node) allNeeded() bool {
	return n.kind != generalNode && (n.terms == nil || n.terms.ops == nil)
}

// isComponent reports whether the node is a component-node.
func (n *node) isComponent() bool { return n.kind == simpleNode || n.kind == generalNode }

// network is an nnet3.Nnet prepared for compilation. It is immutable and safe for concurrent use.
type network struct {
	nn     *nnet3.Nnet
	nodes  []node
	epochs []epoch
}

// newNetwork prepares a network.
func newNetwork(nn *nnet3.Nnet) (*network, error) {
	net := &network{nn: nn, nodes: make([]node, len(nn.Nodes))}
	for i := range nn.Nodes {
		if err := net.addNode(i); err != nil {
			return nil, fmt.Errorf("%w: node %q: %w", nnet3.ErrNetwork, nn.Nodes[i].Name, err)
		}
	}
	for i := range net.nodes {
		if n := &net.nodes[i]; n.kind == simpleNode {
			n.terms = net.nodes[n.source].terms
		}
	}
	net.epochs = findEpochs(net.nodes)
	for e, ep := range net.epochs {
		for _, i := range ep.nodes {
			net.nodes[i].epoch = int32(e)
		}
	}
	return net, nil
}

// addNode prepares node i.
func (net *network) addNode(i int) error {
	nn := net.nn
	from := &nn.Nodes[i]
	n := &net.nodes[i]
	valid := func(node int) bool { return node >= 0 && node < len(nn.Nodes) }
	switch from.Kind {
	case nnet3.InputNode:
		n.kind, n.dim = inputNode, from.Dim
	case nnet3.DimRangeNode:
		if !valid(from.Input) || nn.Nodes[from.Input].Kind != nnet3.InputNode && nn.Nodes[from.Input].Kind != nnet3.ComponentNode {
			return fmt.Errorf("node %d isn't an input-node or component-node to take columns of", from.Input)
		}
		if from.Dim <= 0 || from.DimOffset < 0 || from.DimOffset+from.Dim > nn.OutputDim(from.Input) {
			return fmt.Errorf("columns %d to %d aren't columns of node %q", from.DimOffset, from.DimOffset+from.Dim, nn.Nodes[from.Input].Name)
		}
		n.kind, n.dim, n.dimOffset, n.source = rangeNode, from.Dim, from.DimOffset, int32(from.Input)
	case nnet3.DescriptorNode:
		n.kind = hiddenNode
		if nn.IsOutputNode(i) {
			n.kind = outputNode
		}
		for _, src := range from.Descriptor.Nodes(nil) {
			if !valid(src) || nn.Nodes[src].Kind == nnet3.DescriptorNode {
				return fmt.Errorf("the descriptor refers to node %d, which can't be an input", src)
			}
		}
		var err error
		if n.terms, err = newTerms(&from.Descriptor, nn.OutputDim); err != nil {
			return err
		}
		for k := range n.terms.parts {
			n.dim += n.terms.parts[k].cols
		}
	case nnet3.ComponentNode:
		return net.addComponentNode(i)
	default:
		return fmt.Errorf("unknown kind of node %d", from.Kind)
	}
	return nil
}

func (net *network) addComponentNode(i int) error {
	nn := net.nn
	n := &net.nodes[i]
	c := nn.Nodes[i].Component
	if c < 0 || c >= len(nn.Components) {
		return fmt.Errorf("there is no component %d", c)
	}
	if i == 0 || nn.Nodes[i-1].Kind != nnet3.DescriptorNode {
		return fmt.Errorf("the node before the component-node is not its descriptor-node")
	}
	comp := nn.Components[c]
	n.kind, n.component, n.properties = simpleNode, int32(c), comp.Properties()
	n.source, n.dim = int32(i-1), comp.OutputDim()
	if !n.properties.Has(component.Simple) {
		general, ok := comp.(component.NonSimple)
		if !ok {
			return fmt.Errorf("component %s is not simple and doesn't say what its rows depend on", comp.Type())
		}
		n.kind, n.general = generalNode, general
	}
	// Some types have parameters only if configured so; the interface alone does not tell.
	if u, ok := comp.(component.UpdatableComponent); ok && n.properties.Has(component.Updatable) {
		n.trainable = u.LearningRate() != 0
	}
	return nil
}

// name returns the name of a node.
func (net *network) name(node int32) string { return net.nn.Nodes[node].Name }

// cindexName returns a Cindex as text, name(n,t[,x]) as in Kaldi.
func (net *network) cindexName(c index.Cindex) string { return net.name(c.Node) + c.Index.String() }

// sources appends to dst the nodes whose vertices the vertices of this node depend on.
func (n *node) sources(dst []int32) []int32 {
	switch n.kind {
	case rangeNode, generalNode:
		return append(dst, n.source)
	case outputNode, hiddenNode, simpleNode:
		for i := range n.terms.leaves {
			dst = n.terms.leaves[i].nodes(dst)
		}
	}
	return dst
}
