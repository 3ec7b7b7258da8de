package component

import (
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/internal/kernel"
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
func (d *derived) Init(cfg *ConfigLine) { cfg.fail(errDerived) }

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

// inputColumns is an affine component without bias, reduced to some of its input columns, which it
// shares with its base. Its backward pass computes the derivative of these columns, overwrites it,
// and updates nothing.
type inputColumns struct {
	derived
	w     *weights
	first int
}

// NewInputColumns derives from an affine or linear component the one that has only the input
// columns [first, first+n), no bias, and no effects. It reports false for other components.
func NewInputColumns(c Component, first, n int) (Component, bool) {
	a, ok := c.(interface{ factor() *affine })
	if !ok || !c.Properties().Has(Simple) || first < 0 || n < 1 || first+n > c.InputDim() {
		return nil, false
	}
	return &inputColumns{derived{c}, a.factor().part(first, n), first}, true
}

func (c *inputColumns) Type() string {
	return strings.TrimSuffix(c.base.Type(), "Component") + "+Columns"
}

// InputDim returns the number of the columns.
func (c *inputColumns) InputDim() int { return c.w.m.Cols }

func (c *inputColumns) Properties() Properties { return Simple }

// Propagate computes y = x·Vᵀ, where V is the columns of the parameters.
func (c *inputColumns) Propagate(w *Workspace, _ ForwardPass, in, out kernel.Matrix) (Memo, error) {
	c.w.mul(in, kernel.Epilogue{Threads: w.Threads}, out)
	return nil, nil
}

// Backprop computes dx = dy·V.
func (c *inputColumns) Backprop(w *Workspace, pass BackwardPass) error {
	w.mulBackward(c.w, pass.OutDeriv, pass.InDeriv, false)
	return nil
}

// Operations counts a multiply-add for each element of V and row. There is no update.
func (c *inputColumns) Operations(_ Precomputed, _, outRows int) Operations {
	ops := productOps(outRows, c.w.m.Rows, c.w.m.Cols)
	ops.Update = 0
	return ops
}

// maskedReLU is a RectifiedLinear whose memo says, in a bit per element, which outputs were
// positive. Its backward pass doesn't need the output itself.
type maskedReLU struct {
	derived
	relu        *nonlinearity
	first, rows int // the rows of the backward pass; all of them if rows is 0
}

// NewMaskedReLU derives a component from c, if c is a RectifiedLinear, that keeps one bit an
// element for its backward pass instead of the output. The backward pass is over rows consecutive
// rows of the forward pass, from row first on, or over all of them if rows is 0.
func NewMaskedReLU(c Component, first, rows int) (Component, bool) {
	relu, ok := c.(*nonlinearity)
	if !ok || relu.function != &rectifiedLinear {
		return nil, false
	}
	return &maskedReLU{derived{c}, relu, first, rows}, true
}

func (c *maskedReLU) Type() string { return "RectifiedLinear+Mask" }
func (c *maskedReLU) Properties() Properties {
	return c.relu.Properties()&^BackpropNeedsOutput | UsesMemo | BackpropInPlace
}

// StoreStats stores the statistics of the RectifiedLinear.
func (c *maskedReLU) StoreStats(in, out kernel.Matrix, memo Memo) { c.relu.StoreStats(in, out, nil) }

// Propagate computes y, and the memo unless it is dropped.
func (c *maskedReLU) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	if pass.DropMemo {
		return c.relu.Propagate(w, pass, in, out)
	}
	first, rows := c.first, c.rows
	if rows == 0 {
		first, rows = 0, out.Rows
	}
	if first+rows > out.Rows {
		return nil, fmt.Errorf("%s: there are no rows %d to %d: %w", c.Type(), first, first+rows, ErrShape)
	}
	s := w.newSigns()
	w.Threads.ReLUSigns(out, in, s, first, rows)
	return s, nil
}

// Backprop computes dx = dy where y was positive, and 0 elsewhere.
func (c *maskedReLU) Backprop(w *Workspace, pass BackwardPass) error {
	s, ok := pass.Memo.(*kernel.Signs)
	if !ok || s.Rows != pass.OutDeriv.Rows || s.Cols != pass.OutDeriv.Cols {
		return missingMemo(c)
	}
	u, update := pass.ToUpdate.(*nonlinearity)
	var sumsq []float64
	if update {
		sumsq = u.derivStats(pass.OutDeriv.Rows)
	}
	w.Threads.ReLUSignsDeriv(pass.InDeriv, pass.OutDeriv, s, sumsq)
	if update {
		c.relu.repair(c.relu, u, kernel.Matrix{}, pass.InDeriv)
	}
	w.freeSigns(s)
	return nil
}
