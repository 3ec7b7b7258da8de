package component

import (
	"math"

	"github.com/nnopt/nnopt/kernel"
)

// pnormComponent is the 2-norm of each group of consecutive columns.
type pnormComponent struct{ inputDim, outputDim int }

// Type is "PnormComponent".
func (c *pnormComponent) Type() string { return "PnormComponent" }

// InputDim is the number of columns of all groups.
func (c *pnormComponent) InputDim() int { return c.inputDim }

// OutputDim is the number of groups.
func (c *pnormComponent) OutputDim() int { return c.outputDim }

// Properties of the norm.
func (c *pnormComponent) Properties() Properties {
	return Simple | BackpropNeedsInput | BackpropNeedsOutput
}

// Init knows input-dim and output-dim.
func (c *pnormComponent) Init(cfg *ConfigLine) error {
	c.inputDim, c.outputDim = cfg.dim("input-dim"), cfg.dim("output-dim")
	if c.inputDim%c.outputDim != 0 {
		cfg.Fail("input-dim=%d is no multiple of output-dim=%d", c.inputDim, c.outputDim)
	}
	return cfg.Err()
}

// Fields of the component.
func (c *pnormComponent) Fields(f *Fields) {
	f.blockDims(&c.inputDim, &c.outputDim)
}

// Propagate computes y_j = |x of group j|.
func (c *pnormComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
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
func (c *pnormComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	n := c.inputDim / c.outputDim
	for i := range outDeriv.Rows {
		x, y := kernel.Row(inValue, i), kernel.Row(outValue, i)
		dx, dy := kernel.Row(inDeriv, i), kernel.Row(outDeriv, i)
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
