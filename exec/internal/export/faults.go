package export

import (
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
)

// A Fault is a part of a computation that ONNX can't say.
type Fault struct {
	Nodes     []string // that run the component
	Component string   // its name; empty for what is no component's fault
	Type      string
	Reason    string
}

// String returns the fault with the names of nodes and component.
func (f Fault) String() string {
	if f.Component == "" {
		return f.Reason
	}
	nodes := ""
	for i, n := range f.Nodes {
		if i > 0 {
			nodes += ", "
		}
		nodes += fileio.Excerpt(n, 0)
	}
	return fmt.Sprintf("node %s: component %s (%s) %s", nodes, fileio.Excerpt(f.Component, 0), f.Type, f.Reason)
}

// Faults is the error of Model: everything that can't be said, in the order of the computation.
type Faults []Fault

// Error lists all faults.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].String()
	}
	if len(lines) == 1 {
		return "this can't be said in ONNX: " + lines[0]
	}
	return fmt.Sprintf("%d parts of the network can't be said in ONNX:\n  %s", len(lines), strings.Join(lines, "\n  "))
}

// faultOf names the component of a fault, and the nodes that run it.
func faultOf(nn *nnet3.Nnet, c component.Component, reason string) Fault {
	for {
		d, ok := c.(component.Derived)
		if !ok {
			break
		}
		c = d.Base()
	}
	f := Fault{Type: c.Type(), Component: "?", Reason: reason}
	for i, other := range nn.Components {
		if other != c {
			continue
		}
		f.Component = nn.ComponentNames[i]
		for n := range nn.Nodes {
			if nn.Nodes[n].Kind == nnet3.ComponentNode && nn.Nodes[n].Component == i {
				f.Nodes = append(f.Nodes, nn.Nodes[n].Name)
			}
		}
	}
	return f
}
