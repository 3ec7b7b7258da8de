package nnet3

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/nnet3/internal/descriptor"
)

// For returns the part of the network that some of its outputs depend on, with all of its inputs. It
// shares the components. A network that was trained with a second output, for example, needs a tenth
// less memory without it. The error wraps ErrNetwork if there is no such output.
func (nn *Nnet) For(outputs ...string) (*Nnet, error) {
	var todo []int
	for _, name := range outputs {
		i := nn.NodeIndex(name)
		if i < 0 || !nn.IsOutputNode(i) {
			return nil, fmt.Errorf("there is no output %s: %w", name, ErrNetwork)
		}
		todo = append(todo, i)
	}
	needed := nn.neededFor(todo)
	nodes := make([]int, len(nn.Nodes)) // new numbers
	components := make([]int, len(nn.Components))
	for i := range components {
		components[i] = -1
	}
	part := &Nnet{types: nn.types}
	for i, n := range nn.Nodes {
		if !needed[i] && n.Kind != InputNode {
			continue
		}
		nodes[i] = len(part.Nodes)
		if n.Kind == ComponentNode {
			if c := &components[n.Component]; *c < 0 {
				*c = len(part.Components)
				part.Components = append(part.Components, nn.Components[n.Component])
				part.ComponentNames = append(part.ComponentNames, nn.ComponentNames[n.Component])
			}
			n.Component = components[n.Component]
		}
		part.Nodes = append(part.Nodes, n)
	}
	renumber := func(f descriptor.Forward) descriptor.Forward {
		if f.Kind == descriptor.Node {
			f.Node = int32(nodes[f.Node])
		}
		return f
	}
	for i := range part.Nodes {
		switch n := &part.Nodes[i]; n.Kind {
		case DescriptorNode:
			n.Descriptor = n.Descriptor.Map(renumber)
		case DimRangeNode:
			n.Input = nodes[n.Input]
		}
	}
	part.indexNodes()
	return part, nil
}

// neededFor reports, by number, which nodes others depend on, directly or not, and they themselves.
func (nn *Nnet) neededFor(outputs []int) []bool {
	needed := make([]bool, len(nn.Nodes))
	todo := slices.Clone(outputs)
	for _, i := range todo {
		needed[i] = true
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
	return needed
}
