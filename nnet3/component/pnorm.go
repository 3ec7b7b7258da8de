package component

import (
	"math"

	"github.com/nnopt/nnopt/internal/kernel"
)

// pnormComponent is the 2-norm of each group of consecutive columns.
type pnormComponent struct{ equalBlocks }

func (c *pnormComponent) Type() string { return "PnormComponent" }
func (c *pnormComponent) Properties() Properties {
	return Simple | BackpropNeedsInput | BackpropNeedsOutput
}

// Propagate computes y_j = |x of group j|.
func (c *pnormComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	n := c.inputDim / c.outputDim
	for i := range in.Rows {
		x, y := kernel.Row(in, i), kernel.Row(out, i)
		for j := range y {
			g := x[j*n : (j+1)*n]
			y[j] = float32(math.Sqrt(float64(kernel.Dot(g, g))))
		}
	}
	return nil, nil
}

// Backprop computes dx = dy·x/y, and 0 where y is 0.
func (c *pnormComponent) Backprop(w *Workspace, pass BackwardPass) error {
	n := c.inputDim / c.outputDim
	for i := range pass.OutDeriv.Rows {
		x, y := kernel.Row(pass.InValue, i), kernel.Row(pass.OutValue, i)
		dx, dy := kernel.Row(pass.InDeriv, i), kernel.Row(pass.OutDeriv, i)
		for j, v := range y {
			f := float32(0)
			if v != 0 {
				f = dy[j] / v
			}
			for k := j * n; k < (j+1)*n; k++ {
				dx[k] = f * x[k]
			}
		}
	}
	return nil
}
