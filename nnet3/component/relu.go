package component

import (
	"github.com/nnopt/nnopt/kernel"
)

// rectifiedLinearComponent is y = max(x, 0).
type rectifiedLinearComponent struct{ nonlinearity }

// Type is "RectifiedLinearComponent".
func (c *rectifiedLinearComponent) Type() string { return "RectifiedLinearComponent" }

// Properties of a rectified linear unit.
func (c *rectifiedLinearComponent) Properties() Properties {
	return (Simple | PropagateInPlace | BackpropNeedsOutput | StoresStats).with(InputContiguous, c.blockDim != c.dim)
}

// Init knows dim, block-dim, self-repair-scale, self-repair-lower-threshold, self-repair-upper-threshold.
func (c *rectifiedLinearComponent) Init(cfg *ConfigLine) error { return c.init(cfg) }

// Propagate computes y.
func (c *rectifiedLinearComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	kernel.ReLU(out, in)
	return nil, nil
}

// Backprop computes dx = dy where y > 0, and 0 elsewhere.
func (c *rectifiedLinearComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	kernel.ReLUDeriv(inDeriv, outValue, outDeriv)
	if u, ok := toUpdate.(*rectifiedLinearComponent); ok {
		c.repair(u, inDeriv)
		u.storeBackpropStats(outDeriv)
	}
	return nil
}

// repair adds a constant to the derivatives of units that are nearly always off, and subtracts it from those of units that
// are nearly always on. The units at one place of all blocks are repaired together.
func (c *rectifiedLinearComponent) repair(to *rectifiedLinearComponent, dx kernel.Matrix) {
	if !c.repairs() {
		return
	}
	to.numDimsProcessed += float64(c.blockDim)
	least := orDefault(c.lowerThreshold, 0.05) * c.count
	most := orDefault(c.upperThreshold, 0.95) * c.count
	blocks := c.dim / c.blockDim
	for j := range c.blockDim {
		sum := 0.0
		for b := range blocks {
			sum += c.derivSum[b*c.blockDim+j]
		}
		sum /= float64(blocks)
		push := c.selfRepairScale
		switch {
		case sum > most:
			push = -push
		case sum > least:
			continue
		}
		to.numDimsSelfRepaired++
		for i := range dx.Rows {
			row := kernel.Row(dx, i)
			for b := range blocks {
				row[b*c.blockDim+j] += push
			}
		}
	}
}

// StoreStats accumulates the averages of the output and of the derivative.
func (c *rectifiedLinearComponent) StoreStats(in, out kernel.Matrix, memo Memo) {
	c.storeStats(out, kernel.ReLUDeriv)
}
