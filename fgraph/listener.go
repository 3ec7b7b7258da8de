package fgraph

import (
	"fmt"
	"io"
)

// PrintListener is the feature that writes a line for whatever happens to a
// graph.
type PrintListener struct {
	W io.Writer
}

// OnAttach writes a line.
func (p *PrintListener) OnAttach(g *FunctionGraph) error {
	fmt.Fprintf(p.W, "attach to a graph of %d applies\n", g.NumApplies())
	return nil
}

// OnDetach writes a line.
func (p *PrintListener) OnDetach(*FunctionGraph) { fmt.Fprintln(p.W, "detach") }

// OnImport writes a line.
func (p *PrintListener) OnImport(_ *FunctionGraph, a *Apply, why Reason) {
	fmt.Fprintf(p.W, "import %v (%v)\n", a, why)
}

// OnPrune writes a line.
func (p *PrintListener) OnPrune(_ *FunctionGraph, a *Apply, why Reason) {
	fmt.Fprintf(p.W, "prune %v (%v)\n", a, why)
}

// OnChangeInput writes a line.
func (p *PrintListener) OnChangeInput(_ *FunctionGraph, a *Apply, i int, old, new *Variable, why Reason) {
	switch c := clientString(Client{a, i}); {
	case old == nil:
		fmt.Fprintf(p.W, "add %s, %v (%v)\n", c, new, why)
	case new == nil:
		fmt.Fprintf(p.W, "remove %s, %v (%v)\n", c, old, why)
	default:
		fmt.Fprintf(p.W, "change %s from %v to %v (%v)\n", c, old, new, why)
	}
}
