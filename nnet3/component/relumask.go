package component

import (
	"fmt"

	"github.com/nnopt/nnopt/kernel"
)

// MaskedReLU is a derived component: a RectifiedLinear whose backward pass takes from a memo, one bit an element, which
// outputs were positive, so that the output itself need not be kept.
type MaskedReLU struct {
	base        *rectifiedLinearComponent
	first, rows int // the rows that the backward pass is about; all of them where rows is 0
}

// NewMaskedReLU returns c with a memo, if it is a RectifiedLinear.
func NewMaskedReLU(c Component) (*MaskedReLU, bool) {
	r, ok := c.(*rectifiedLinearComponent)
	return &MaskedReLU{base: r}, ok
}

// OfRows returns the component with a backward pass over some consecutive rows of the forward one alone. There must be at
// least one, and no fewer in the forward pass than first+rows.
func (c *MaskedReLU) OfRows(first, rows int) *MaskedReLU {
	return &MaskedReLU{c.base, first, rows}
}

// Base is the RectifiedLinear.
func (c *MaskedReLU) Base() Component { return c.base }

// Type is "RectifiedLinear+Mask".
func (c *MaskedReLU) Type() string { return "RectifiedLinear+Mask" }

// InputDim is the number of columns.
func (c *MaskedReLU) InputDim() int { return c.base.InputDim() }

// OutputDim is the number of columns.
func (c *MaskedReLU) OutputDim() int { return c.base.OutputDim() }

// Properties are the base component's, with a memo in the place of the output.
func (c *MaskedReLU) Properties() Properties {
	return c.base.Properties()&^BackpropNeedsOutput | UsesMemo | BackpropInPlace
}

// Init fails with ErrDerived.
func (c *MaskedReLU) Init(*ConfigLine) error { return ErrDerived }

// Fields of the component.
func (c *MaskedReLU) Fields(f *Fields) {
	f.derived()
}

// StoreStats stores the base component's statistics.
func (c *MaskedReLU) StoreStats(in, out kernel.Matrix, memo Memo) { c.base.StoreStats(in, out, nil) }

// Propagate computes y, and the memo if it is wanted.
func (c *MaskedReLU) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if w.DropMemo {
		return c.base.Propagate(w, nil, in, out)
	}
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	first, rows := c.first, c.rows
	if rows == 0 {
		first, rows = 0, out.Rows
	}
	if first+rows > out.Rows {
		return nil, fmt.Errorf("%s: there are no rows %d to %d: %w", c.Type(), first, first+rows, ErrShape)
	}
	s := w.newSigns()
	kernel.ReLUSigns(out, in, s, first, rows)
	return s, nil
}

// Backprop computes dx = dy where y was positive, and 0 elsewhere.
func (c *MaskedReLU) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	s, ok := memo.(*kernel.Signs)
	if !ok || s.Rows != outDeriv.Rows || s.Cols != outDeriv.Cols {
		return fmt.Errorf("%s: the memo does not belong to these rows: %w", c.Type(), ErrShape)
	}
	if !wanted(inDeriv) {
		return nil
	}
	if inDeriv.Rows != outDeriv.Rows || inDeriv.Cols != outDeriv.Cols {
		return shapeError(c, "backprop", inDeriv, outDeriv)
	}
	u, updates := toUpdate.(*rectifiedLinearComponent)
	var sumsq []float64
	if updates {
		sumsq = u.backpropStats(outDeriv.Rows)
	}
	kernel.ReLUSignsDeriv(inDeriv, outDeriv, s, sumsq)
	if updates {
		c.base.repair(u, inDeriv)
	}
	w.freeSigns(s)
	return nil
}
