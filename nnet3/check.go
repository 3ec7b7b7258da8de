package nnet3

import (
	"errors"
	"fmt"

	"github.com/nnopt/nnopt/internal/errlist"
	"github.com/nnopt/nnopt/internal/fileio"
)

// checker collects what is wrong with a network.
type checker struct {
	nn *Nnet
	faults
}

// Check reports everything that prevents the network from being compiled: references to missing
// nodes or components, dimensions that do not match, a missing input or output. The error wraps
// ErrNetwork. Unused nodes and components are legal; Info lists them.
func (nn *Nnet) Check() error {
	c := &checker{nn: nn}
	names := make(map[string]bool, len(nn.Nodes))
	inputs, outputs := 0, 0
	for i := range nn.Nodes {
		n := &nn.Nodes[i]
		if !validName(n.Name) {
			c.failf(i, "%q is not a valid name", fileio.Excerpt(n.Name, 0))
		}
		if names[n.Name] {
			c.failf(i, "there is another node of this name")
		}
		names[n.Name] = true
		if n.Kind == InputNode {
			inputs++
		}
		if nn.IsOutputNode(i) {
			outputs++
		}
		c.node(i)
	}
	if len(nn.Components) != len(nn.ComponentNames) {
		c.add(fmt.Errorf("%d components have %d names: %w", len(nn.Components), len(nn.ComponentNames), ErrNetwork))
	}
	if inputs == 0 {
		c.add(fmt.Errorf("the network has no input-node: %w", ErrNetwork))
	}
	if outputs == 0 {
		c.add(fmt.Errorf("the network has no output-node: %w", ErrNetwork))
	}
	return c.err()
}

func (c *checker) failf(node int, format string, args ...any) {
	n := &c.nn.Nodes[node]
	c.add(fmt.Errorf("%s %s: %w", n.Kind, n.Name, fmt.Errorf(format+": %w", append(args, ErrNetwork)...)))
}

// node checks one node.
func (c *checker) node(i int) {
	switch n := &c.nn.Nodes[i]; n.Kind {
	case InputNode:
		if n.Dim <= 0 {
			c.failf(i, "it has %d columns", n.Dim)
		}
	case DescriptorNode:
		c.descriptor(i)
	case ComponentNode:
		c.component(i)
	case DimRangeNode:
		c.dimRange(i)
	default:
		c.failf(i, "there is no such kind of node")
	}
}

// descriptor checks the references and dimensions of a descriptor.
func (c *checker) descriptor(i int) {
	n := &c.nn.Nodes[i]
	if len(n.Descriptor.Parts) == 0 {
		c.failf(i, "its descriptor is empty")
		return
	}
	for _, j := range n.Descriptor.Nodes(nil) {
		if j < 0 || j >= len(c.nn.Nodes) {
			c.failf(i, "its descriptor refers to node %d of %d", j, len(c.nn.Nodes))
			return
		}
		if from := &c.nn.Nodes[j]; from.Kind == DescriptorNode {
			c.failf(i, "its descriptor refers to %s, which is not a node to take an input from", from.Name)
			return
		} else if from.Kind == ComponentNode && !c.hasComponent(j) {
			return // reported there
		}
	}
	if _, err := n.Descriptor.Dim(c.nn.sourceDim); err != nil {
		c.failf(i, "%w: %s", err, fileio.Excerpt(c.nn.format(i), 0))
	}
}

func (c *checker) hasComponent(i int) bool {
	k := c.nn.Nodes[i].Component
	return k >= 0 && k < len(c.nn.Components) && c.nn.Components[k] != nil
}

// component checks that a component fits its input.
func (c *checker) component(i int) {
	if !c.hasComponent(i) {
		c.failf(i, "it refers to component %d of %d", c.nn.Nodes[i].Component, len(c.nn.Components))
		return
	}
	if i == 0 || c.nn.Nodes[i-1].Kind != DescriptorNode {
		c.failf(i, "it has no descriptor before it")
		return
	}
	k := c.nn.Nodes[i].Component
	have, want := c.nn.OutputDim(i-1), c.nn.Components[k].InputDim()
	if have >= 0 && have != want {
		c.failf(i, "component %s takes %d columns, the input has %d: %s", c.nn.ComponentNames[k], want, have, fileio.Excerpt(c.nn.format(i-1), 0))
	}
}

// dimRange checks that a range lies within its node.
func (c *checker) dimRange(i int) {
	n := &c.nn.Nodes[i]
	if n.Input < 0 || n.Input >= len(c.nn.Nodes) {
		c.failf(i, "it refers to node %d of %d", n.Input, len(c.nn.Nodes))
		return
	}
	from := &c.nn.Nodes[n.Input]
	if from.Kind != InputNode && from.Kind != ComponentNode {
		c.failf(i, "%s is neither an input-node nor a component-node", from.Name)
		return
	}
	if from.Kind == ComponentNode && !c.hasComponent(n.Input) {
		return
	}
	if dim := c.nn.OutputDim(n.Input); n.Dim <= 0 || n.DimOffset < 0 || n.DimOffset > dim-n.Dim {
		c.failf(i, "%d columns from column %d on do not lie within the %d columns of %s", n.Dim, n.DimOffset, dim, from.Name)
	}
}

// maxFaults is how many faults are collected before "and more" takes the place of the rest.
const maxFaults = 49

// faults collects what is wrong with a config or a network.
type faults struct{ errs []error }

func (f *faults) full() bool { return len(f.errs) >= maxFaults }

func (f *faults) add(err error) {
	if f.full() {
		return
	}
	f.errs = append(f.errs, err)
	if f.full() {
		f.errs = append(f.errs, errors.New("and more"))
	}
}

// err returns nil for no fault, the fault if there is one, and else a multierror.
func (f *faults) err() error { return errlist.Join(f.errs) }
