package component

import (
	"strings"

	"github.com/nnopt/nnopt/kernel"
)

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
