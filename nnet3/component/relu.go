package component

import (
	"github.com/nnopt/nnopt/exec/kernel"
)

// RectifiedLinear is y = max(x, 0).
type RectifiedLinear struct{ nonlinearity }

// Type is "RectifiedLinearComponent".
func (c *RectifiedLinear) Type() string { return "RectifiedLinearComponent" }

// Properties of a rectified linear unit.
func (c *RectifiedLinear) Properties() Properties {
	return (Simple | PropagateInPlace | BackpropNeedsOutput | StoresStats).with(InputContiguous, c.blockDim != c.dim)
}

// Init knows dim, block-dim, self-repair-scale, self-repair-lower-threshold, self-repair-upper-threshold.
func (c *RectifiedLinear) Init(cfg *ConfigLine) error { return c.init(cfg) }

// Propagate computes y.
func (c *RectifiedLinear) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	kernel.ReLU(out, in)
	return nil, nil
}

// Backprop computes dx = dy where y > 0, and 0 elsewhere.
func (c *RectifiedLinear) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	kernel.ReLUDeriv(inDeriv, outValue, outDeriv)
	if u, ok := toUpdate.(*RectifiedLinear); ok {
		c.repair(u, inDeriv)
		u.storeBackpropStats(outDeriv)
	}
	return nil
}

// repair adds a constant to the derivatives of units that are nearly always off, and subtracts it from those of units that
// are nearly always on. The units at one place of all blocks are repaired together.
func (c *RectifiedLinear) repair(to *RectifiedLinear, dx kernel.Matrix) {
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
func (c *RectifiedLinear) StoreStats(in, out kernel.Matrix, memo Memo) {
	c.storeStats(out, kernel.ReLUDeriv)
}
