package fgraph

import (
	"fmt"
	"slices"
)

// Supervise returns a feature that protects variables from being overwritten. The
// [DestroyHandler] of the graph objects on its behalf.
func Supervise(protected ...*Variable) Feature { return &supervisor{protected: protected} }

type supervisor struct {
	protected []*Variable
	set       map[*Variable]bool // nil while detached
}

// OnAttach makes the handler validate existing destroyers again.
func (s *supervisor) OnAttach(g *FunctionGraph) error {
	s.set = make(map[*Variable]bool, len(s.protected))
	for _, v := range s.protected {
		s.set[v] = true
	}
	if h, ok := FeatureOf[*DestroyHandler](g); ok {
		h.markAllDirty()
	}
	return nil
}

func (s *supervisor) OnDetach(*FunctionGraph) { s.set = nil }

// NoOutputFromInplace returns a feature that objects when an output of the graph is computed in
// place, so that it would not have memory of its own. Without arguments it covers all outputs,
// otherwise those with the given indices.
func NoOutputFromInplace(outputs ...int) Feature { return &noInplaceOutput{outputs: outputs} }

type noInplaceOutput struct {
	outputs []int // none: all
	fresh   []int // outputs that changed since they were last found valid
}

func (n *noInplaceOutput) OnAttach(g *FunctionGraph) error {
	n.fresh = slices.Clone(n.outputs)
	if len(n.outputs) == 0 {
		for i := range g.outputs {
			n.fresh = append(n.fresh, i)
		}
	}
	for _, i := range n.fresh {
		if i < 0 || i >= len(g.outputs) {
			return fmt.Errorf("%w: output %d of a graph that has %d", ErrInvalid, i, len(g.outputs))
		}
	}
	return nil
}

func (n *noInplaceOutput) OnChangeInput(_ *FunctionGraph, a *Apply, i int, _, new *Variable, _ Reason) {
	if a == nil && new != nil && (len(n.outputs) == 0 || slices.Contains(n.outputs, i)) {
		n.fresh = append(n.fresh, i)
	}
}

func (n *noInplaceOutput) Validate(g *FunctionGraph) error {
	for len(n.fresh) > 0 {
		i := n.fresh[len(n.fresh)-1]
		if i < len(g.outputs) && isInPlace(g.outputs[i]) {
			return fmt.Errorf("%w: output %d is computed in place by %v", ErrInconsistent, i, g.outputs[i].owner)
		}
		n.fresh = n.fresh[:len(n.fresh)-1]
	}
	return nil
}

// isInPlace reports whether v overwrites an input of its owner.
func isInPlace(v *Variable) bool {
	if v.owner == nil {
		return false
	}
	d, ok := v.owner.op.(Destroyer)
	return ok && slices.ContainsFunc(d.DestroyMap(), func(al Alias) bool { return al.Output == int(v.index) })
}
