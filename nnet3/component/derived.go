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
func (o *overwriting) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if o.base.Properties().Has(PropagateAdds) {
		kernel.Fill(out, 0)
	}
	return o.base.Propagate(w, pre, in, out)
}

// Backprop overwrites the derivative of the input. Affine maps and TDNNs do so without zeroing it
// first.
func (o *overwriting) Backprop(w *Workspace, pass BackwardPass) error {
	base := o.base.(Backpropper)
	// In place the base component overwrites, because there is nothing to add to.
	if !wanted(pass.InDeriv) || !base.Properties().Has(BackpropAdds) || kernel.Same(pass.InDeriv, pass.OutDeriv) {
		return base.Backprop(w, pass)
	}
	switch c := o.base.(type) {
	case interface{ factor() *affine }:
		w.mulBackward(&c.factor().weights, pass.OutDeriv, pass.InDeriv, false)
	case *tdnnComponent:
		x, ok := pass.Pre.(*tdnnIndexes)
		if !ok || !x.fits(len(c.blocks), pass.InDeriv.Rows, pass.OutDeriv.Rows) {
			return misfit(c, pass.InDeriv.Rows, pass.OutDeriv.Rows)
		}
		c.inputDeriv(w, x, pass.OutDeriv, pass.InDeriv, false)
	default:
		kernel.Fill(pass.InDeriv, 0)
		return base.Backprop(w, pass)
	}
	pass.InDeriv = kernel.Matrix{}
	return base.Backprop(w, pass)
}
