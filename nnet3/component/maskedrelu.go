package component

import (
	"fmt"

	"github.com/nnopt/nnopt/kernel"
)

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
