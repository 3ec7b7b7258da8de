package fgraph

import "fmt"

// Supervisor is the feature that names further variables which must not be
// overwritten, whether or not something else speaks against it. The
// [DestroyHandler] of the graph objects in its name.
type Supervisor struct {
	Protected []*Variable
	set       map[*Variable]bool
}

// OnAttach takes note of what is protected, and has it looked at what is
// destroyed already.
func (s *Supervisor) OnAttach(g *FunctionGraph) error {
	s.set = make(map[*Variable]bool, len(s.Protected))
	for _, v := range s.Protected {
		s.set[v] = true
	}
	if h, ok := FeatureOf[*DestroyHandler](g); ok {
		h.soilAll()
	}
	return nil
}

// OnDetach ends the protection.
func (s *Supervisor) OnDetach(*FunctionGraph) { s.set = nil }

// NoOutputFromInplace is the feature that objects when an output of the graph is
// itself the result of an op that destroys its input, so that it would not have
// memory of its own.
type NoOutputFromInplace struct {
	// Outputs lists the outputs that this holds for; nil stands for all.
	Outputs []int

	fresh []int // outputs that changed since they were last found to be in order
}

// OnAttach takes note of all outputs.
func (n *NoOutputFromInplace) OnAttach(g *FunctionGraph) error {
	n.fresh = n.fresh[:0]
	if n.Outputs == nil {
		for i := range g.outputs {
			n.fresh = append(n.fresh, i)
		}
		return nil
	}
	for _, i := range n.Outputs {
		if i < 0 || i >= len(g.outputs) {
			return fmt.Errorf("%w: output %d of a graph that has %d", ErrInvalid, i, len(g.outputs))
		}
		n.fresh = append(n.fresh, i)
	}
	return nil
}

// OnChangeInput takes note of outputs that change.
func (n *NoOutputFromInplace) OnChangeInput(_ *FunctionGraph, a *Apply, i int, _, new *Variable, _ Reason) {
	if a != nil || new == nil {
		return
	}
	if n.Outputs == nil {
		n.fresh = append(n.fresh, i)
		return
	}
	for _, o := range n.Outputs {
		if o == i {
			n.fresh = append(n.fresh, i)
			return
		}
	}
}

// Validate objects if an output comes from an in-place op.
func (n *NoOutputFromInplace) Validate(g *FunctionGraph) error {
	for len(n.fresh) > 0 {
		i := n.fresh[len(n.fresh)-1]
		if i < len(g.outputs) && isInPlace(g.outputs[i]) {
			return fmt.Errorf("%w: output %d is computed in place by %v", ErrInconsistent, i, g.outputs[i].owner)
		}
		n.fresh = n.fresh[:len(n.fresh)-1]
	}
	return nil
}

// isInPlace reports whether v takes the place of an input of its owner.
func isInPlace(v *Variable) bool {
	if v.owner == nil {
		return false
	}
	if d, ok := v.owner.op.(Destroyer); ok {
		for _, alias := range d.DestroyMap() {
			if alias.Output == int(v.index) {
				return true
			}
		}
	}
	return false
}
