package fgraph

import (
	"fmt"
	"io"
)

// PrintListener returns the feature that writes a line to w for every change of the graph.
func PrintListener(w io.Writer) Feature { return &printListener{w} }

type printListener struct{ w io.Writer }

func (p *printListener) OnAttach(g *FunctionGraph) error {
	fmt.Fprintf(p.w, "attach to a graph of %d applies\n", g.NumApplies())
	return nil
}

func (p *printListener) OnDetach(*FunctionGraph) { fmt.Fprintln(p.w, "detach") }

func (p *printListener) OnImport(_ *FunctionGraph, a *Apply, why Reason) {
	fmt.Fprintf(p.w, "import %v (%v)\n", a, why)
}

func (p *printListener) OnPrune(_ *FunctionGraph, a *Apply, why Reason) {
	fmt.Fprintf(p.w, "prune %v (%v)\n", a, why)
}

func (p *printListener) OnChangeInput(_ *FunctionGraph, a *Apply, i int, old, new *Variable, why Reason) {
	switch c := clientString(Client{a, i}); {
	case old == nil:
		fmt.Fprintf(p.w, "add %s, %v (%v)\n", c, new, why)
	case new == nil:
		fmt.Fprintf(p.w, "remove %s, %v (%v)\n", c, old, why)
	default:
		fmt.Fprintf(p.w, "change %s from %v to %v (%v)\n", c, old, new, why)
	}
}
