package component

import (
	"strings"

	"github.com/nnopt/nnopt/kernel"
)

// Derived is a component that an optimization made of another one, whose parameters it uses.
type Derived interface {
	// Base is the component of the network.
	Base() Component
}

// overwriting is a derived component: one that adds to its output, or backward to the derivative of its input, with both
// overwritten instead. Parameters are updated as the base component does.
type overwriting struct{ base Component }

// NewOverwriting returns c with its outputs overwritten.
func NewOverwriting(c Component) Component { return &overwriting{c} }

// Base is the component that adds.
func (o *overwriting) Base() Component { return o.base }

// Type names the base component.
func (o *overwriting) Type() string {
	return strings.TrimSuffix(o.base.Type(), "Component") + "+Overwrite"
}

// InputDim is the base component's.
func (o *overwriting) InputDim() int { return o.base.InputDim() }

// OutputDim is the base component's.
func (o *overwriting) OutputDim() int { return o.base.OutputDim() }

// Properties are the base component's, without those of adding.
func (o *overwriting) Properties() Properties {
	return o.base.Properties() &^ (PropagateAdds | BackpropAdds)
}

// Init fails with ErrDerived.
func (o *overwriting) Init(*ConfigLine) error { return ErrDerived }

// Fields of the component.
func (o *overwriting) Fields(f *Fields) {
	f.derived()
}

// Propagate overwrites out.
func (o *overwriting) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if o.base.Properties().Has(PropagateAdds) {
		kernel.Fill(out, 0)
	}
	return o.base.Propagate(w, pre, in, out)
}

// Backprop overwrites inDeriv. The derivative of a simple product needs no zeros for that.
func (o *overwriting) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	// In place the base component overwrites, because there is nothing to add to.
	if !wanted(inDeriv) || !o.base.Properties().Has(BackpropAdds) || kernel.Same(inDeriv, outDeriv) {
		return o.base.(Backpropper).Backprop(w, pre, inValue, outValue, outDeriv, memo, toUpdate, inDeriv)
	}
	if m, ok := factor(o.base); ok {
		if err := checkBackprop(o.base, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil {
			return err
		}
		w.mulBackward(m, outDeriv, inDeriv, false)
		return o.base.(Backpropper).Backprop(w, pre, inValue, outValue, outDeriv, memo, toUpdate, kernel.Matrix{})
	}
	if t, ok := o.base.(*tdnnComponent); ok {
		if err := checkBackprop(t, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil {
			return err
		}
		x, err := t.indexes(pre, inDeriv.Rows, outDeriv.Rows)
		if err != nil {
			return err
		}
		t.inputDeriv(w, x, outDeriv, inDeriv, false)
		return t.Backprop(w, pre, inValue, outValue, outDeriv, memo, toUpdate, kernel.Matrix{})
	}
	kernel.Fill(inDeriv, 0)
	return o.base.(Backpropper).Backprop(w, pre, inValue, outValue, outDeriv, memo, toUpdate, inDeriv)
}

// factor is W of a component y = x·Wᵀ + b.
func factor(c Component) (*weights, bool) {
	switch c := c.(type) {
	case *affineComponent:
		return &c.weights, true
	case *naturalGradientAffineComponent:
		return &c.weights, true
	case *fixedAffineComponent:
		return &c.weights, true
	case *linearComponent:
		return &c.weights, true
	}
	return nil, false
}
