package component

import (
	"strings"

	"github.com/nnopt/nnopt/kernel"
)

// derived is embedded by derived components. They can't be configured, read or written, and a copy
// is the component itself.
type derived struct{ base Component }

// Base returns the component that this one is derived from.
func (d *derived) Base() Component { return d.base }

// InputDim returns the number of input columns.
func (d *derived) InputDim() int { return d.base.InputDim() }

// OutputDim returns the number of output columns.
func (d *derived) OutputDim() int { return d.base.OutputDim() }

// Init reports an error: config lines don't make derived components.
func (d *derived) Init(cfg *ConfigLine) { cfg.fail(ErrDerived) }

// Fields reports an error: derived components are not written.
func (d *derived) Fields(f *Fields) { f.derived() }

// overwriting is a component that overwrites where its base adds: its output, and the derivative of
// its input. It updates parameters as the base does.
type overwriting struct{ derived }

// NewOverwriting derives a component from c that overwrites its outputs instead of adding to them.
func NewOverwriting(c Component) Component { return &overwriting{derived{c}} }

func (o *overwriting) Type() string {
	return strings.TrimSuffix(o.base.Type(), "Component") + "+Overwrite"
}
func (o *overwriting) Properties() Properties {
	return o.base.Properties() &^ (PropagateAdds | BackpropAdds)
}

// Propagate overwrites out.
func (o *overwriting) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	if o.base.Properties().Has(PropagateAdds) {
		w.Threads.Fill(out, 0)
	}
	return o.base.Propagate(w, pass, in, out)
}

// Backprop overwrites the derivative of the input. Affine maps and TDNNs do so without zeroing it
// first.
func (o *overwriting) Backprop(w *Workspace, pass BackwardPass) error {
	base := o.base.(Backpropper)
	// In place the base component overwrites, because there is nothing to add to.
	if !wanted(pass.InDeriv) || !base.Properties().Has(BackpropAdds) || kernel.Same(pass.InDeriv, pass.OutDeriv) {
		return base.Backprop(w, pass)
	}
	done, err := inputDeriv(w, base, pass, false)
	if err != nil {
		return err
	}
	if done {
		pass.InDeriv = kernel.Matrix{}
	} else {
		w.Threads.Fill(pass.InDeriv, 0)
	}
	return base.Backprop(w, pass)
}

// inputDeriv computes the derivative of the input of an affine map or a TDNN, or adds it, as one
// number, to what is there. It reports false for other components.
func inputDeriv(w *Workspace, c Component, pass BackwardPass, add bool) (bool, error) {
	switch c := c.(type) {
	case interface{ factor() *affine }:
		w.mulBackward(&c.factor().weights, pass.OutDeriv, pass.InDeriv, add)
	case *tdnnComponent:
		x, ok := pass.Pre.(*tdnnIndexes)
		if !ok || !x.fits(len(c.blocks), pass.InDeriv.Rows, pass.OutDeriv.Rows) {
			return false, misfit(c, pass.InDeriv.Rows, pass.OutDeriv.Rows)
		}
		switch {
		case !add:
			c.inputDeriv(w, x, pass.OutDeriv, pass.InDeriv, overwriteDeriv)
		case inOnePiece(x.Runs):
			c.inputDeriv(w, x, pass.OutDeriv, pass.InDeriv, addDeriv)
		default:
			defer w.Release(w.Mark())
			dx := w.Matrix(pass.InDeriv.Rows, pass.InDeriv.Cols)
			c.inputDeriv(w, x, pass.OutDeriv, dx, overwriteDeriv)
			w.Threads.Add(pass.InDeriv, 1, dx)
		}
	default:
		return false, nil
	}
	return true, nil
}

// adding is an affine map or a TDNN that adds the derivative of its input to another term. The bits
// are those of an addition afterwards, while a TDNN by itself adds block by block.
type adding struct{ derived }

// NewAdding derives a component from c, if c is an affine component or a TDNN, or overwrites where
// such a component adds. It adds the derivative of its input to another one, with the bits of a
// separate sum.
func NewAdding(c Component) (Component, bool) {
	if o, ok := c.(*overwriting); ok {
		c = o.base
	}
	switch c.(type) {
	case interface{ factor() *affine }, *tdnnComponent:
		if b, ok := c.(Backpropper); ok && b.Properties().Has(BackpropAdds) {
			return &adding{derived{c}}, true
		}
	}
	return nil, false
}

func (a *adding) Type() string           { return strings.TrimSuffix(a.base.Type(), "Component") + "+AddDeriv" }
func (a *adding) Properties() Properties { return a.base.Properties() }

// Propagate runs the base component.
func (a *adding) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	return a.base.Propagate(w, pass, in, out)
}

// Backprop adds the derivative of the input.
func (a *adding) Backprop(w *Workspace, pass BackwardPass) error {
	if wanted(pass.InDeriv) {
		if _, err := inputDeriv(w, a.base, pass, true); err != nil {
			return err
		}
		pass.InDeriv = kernel.Matrix{}
	}
	return a.base.(Backpropper).Backprop(w, pass)
}
