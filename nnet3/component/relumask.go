package component

import (
	"fmt"

	"github.com/nnopt/nnopt/exec/kernel"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// MaskedReLU is a derived component: a RectifiedLinear whose backward pass takes from a memo, one bit an element, which
// outputs were positive, so that the output itself need not be kept.
type MaskedReLU struct {
	base        *RectifiedLinear
	first, rows int // the rows that the backward pass is about; all of them where rows is 0
}

// signs is the memo of a MaskedReLU: the rows one after the other, 64 columns a word, each row beginning a new one.
type signs struct {
	rows, cols int
	bits       []uint64
}

// NewMaskedReLU returns c with a memo, if it is a RectifiedLinear.
func NewMaskedReLU(c Component) (*MaskedReLU, bool) {
	r, ok := c.(*RectifiedLinear)
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

// Info describes the base component.
func (c *MaskedReLU) Info() string { return c.base.Info() }

// Init fails with ErrDerived.
func (c *MaskedReLU) Init(*ConfigLine) error { return ErrDerived }

// Read fails with ErrDerived.
func (c *MaskedReLU) Read(*kaldiio.Reader, string) error { return ErrDerived }

// Write fails with ErrDerived.
func (c *MaskedReLU) Write(*kaldiio.Writer) error { return ErrDerived }

// Copy returns the component itself: it is immutable.
func (c *MaskedReLU) Copy() Component { return c }

// StoreStats stores the base component's statistics.
func (c *MaskedReLU) StoreStats(in, out kernel.Matrix, memo Memo) { c.base.StoreStats(in, out, nil) }

// Propagate computes y, and the memo if it is wanted.
func (c *MaskedReLU) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if _, err := c.base.Propagate(w, nil, in, out); err != nil || w.DropMemo {
		return nil, err
	}
	if c.rows > 0 {
		if c.first+c.rows > out.Rows {
			return nil, fmt.Errorf("%s: there are no rows %d to %d: %w", c.Type(), c.first, c.first+c.rows, ErrShape)
		}
		out = kernel.Rows(out, c.first, c.rows)
	}
	words := (out.Cols + 63) / 64
	s := &signs{out.Rows, out.Cols, make([]uint64, out.Rows*words)}
	for i := range out.Rows {
		bits := s.bits[i*words : (i+1)*words]
		for j, v := range kernel.Row(out, i) {
			if v > 0 {
				bits[j>>6] |= 1 << (j & 63)
			}
		}
	}
	return s, nil
}

// Backprop computes dx = dy where y was positive, and 0 elsewhere.
func (c *MaskedReLU) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	s, ok := memo.(*signs)
	if !ok || s.rows != outDeriv.Rows || s.cols != outDeriv.Cols {
		return fmt.Errorf("%s: the memo does not belong to these rows: %w", c.Type(), ErrShape)
	}
	if !wanted(inDeriv) {
		return nil
	}
	if inDeriv.Rows != outDeriv.Rows || inDeriv.Cols != outDeriv.Cols {
		return shapeError(c, "backprop", inDeriv, outDeriv)
	}
	u, updates := toUpdate.(*RectifiedLinear)
	if updates {
		u.storeBackpropStats(outDeriv)
	}
	words := (s.cols + 63) / 64
	for i := range s.rows {
		bits := s.bits[i*words : (i+1)*words]
		dx, dy := kernel.Row(inDeriv, i), kernel.Row(outDeriv, i)
		for j := range dx {
			if bits[j>>6]>>(j&63)&1 != 0 {
				dx[j] = dy[j]
			} else {
				dx[j] = 0
			}
		}
	}
	if updates {
		c.base.repair(u, inDeriv)
	}
	return nil
}
