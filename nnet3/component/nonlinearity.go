package component

import (
	"slices"

	"github.com/nnopt/nnopt/kernel"
)

// unsetThreshold is a threshold of self-repair that was not given.
const unsetThreshold = -1000

// nonlinearity is a component that applies a function to each element or, for a softmax, to each
// row. It gathers statistics, and self-repair pushes units whose average derivative is out of range
// back into it.
type nonlinearity struct {
	*function
	columns
	blockDim int

	valueSum, derivSum []float64 // empty until statistics come in
	count              float64
	oderivSumsq        []float64
	oderivCount        float64
	derivRow           []float32 // scratch memory of StoreStats

	numDimsSelfRepaired, numDimsProcessed float64
	lowerThreshold, upperThreshold        float32
	selfRepairScale                       float32
}

func (c *nonlinearity) Type() string { return c.typ }
func (c *nonlinearity) Properties() Properties {
	return (Simple | StoresStats | BackpropNeedsOutput | c.properties).with(c.withBlocks, c.blockDim != c.dim)
}

// Init reads dim, block-dim, self-repair-scale, self-repair-lower-threshold and
// self-repair-upper-threshold.
func (c *nonlinearity) Init(cfg *ConfigLine) {
	c.dim, c.blockDim = cfg.dimAndBlock()
	c.lowerThreshold = cfg.Float("self-repair-lower-threshold", unsetThreshold)
	c.upperThreshold = cfg.Float("self-repair-upper-threshold", unsetThreshold)
	c.selfRepairScale = cfg.Float("self-repair-scale", 0)
}

func (c *nonlinearity) Fields(f *Fields) {
	rms := rootMeans(c.oderivSumsq, c.oderivCount)
	f.Dim("<Dim>", &c.dim)
	Optional(f, f.Dim, "<BlockDim>", &c.blockDim, c.dim)
	f.check(noMultiple("dimension", c.dim, "block dimension", c.blockDim))
	f.averages("<ValueAvg>", &c.valueSum, c.count)
	f.averages("<DerivAvg>", &c.derivSum, c.count)
	f.Double("<Count>", &c.count)
	Since(f, f.Vector, "<OderivRms>", &rms, nil)
	Since(f, f.Double, "<OderivCount>", &c.oderivCount, 0)
	for _, n := range []int{len(c.valueSum), len(c.derivSum), len(rms)} {
		f.Check(n == 0 || n == c.dim, "statistics of %d elements for dimension %d", n, c.dim)
	}
	Since(f, f.Double, "<NumDimsSelfRepaired>", &c.numDimsSelfRepaired, 0)
	Since(f, f.Double, "<NumDimsProcessed>", &c.numDimsProcessed, 0)
	Optional(f, f.Float, "<SelfRepairLowerThreshold>", &c.lowerThreshold, unsetThreshold)
	Optional(f, f.Float, "<SelfRepairUpperThreshold>", &c.upperThreshold, unsetThreshold)
	Optional(f, f.Float, "<SelfRepairScale>", &c.selfRepairScale, 0)
	switch {
	case f.Reading():
		multiply(c.valueSum, c.count)
		multiply(c.derivSum, c.count)
		c.oderivSumsq = make([]float64, len(rms))
		for i, v := range rms {
			c.oderivSumsq[i] = float64(v) * float64(v) * c.oderivCount
		}
	case f.Copying():
		c.oderivSumsq, c.derivRow = slices.Clone(c.oderivSumsq), nil
	}
}

// Propagate computes y.
func (c *nonlinearity) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	c.value(w.Threads, out, in)
	return nil, nil
}

// Backprop computes dx from y and dy. ToUpdate gathers statistics of dy before dx may take its
// place.
func (c *nonlinearity) Backprop(w *Workspace, pass BackwardPass) error {
	u, update := pass.ToUpdate.(*nonlinearity)
	if update {
		w.Threads.AddColSquares(u.derivStats(pass.OutDeriv.Rows), pass.OutDeriv)
	}
	c.deriv(w.Threads, pass.InDeriv, pass.OutValue, pass.OutDeriv)
	if update && c.repair != nil {
		c.repair(c, u, pass.OutValue, pass.InDeriv)
	}
	return nil
}

// derivStats counts the rows of an output derivative, and returns the sums that its squares are to
// be added to.
func (c *nonlinearity) derivStats(rows int) []float64 {
	if len(c.oderivSumsq) != c.dim {
		c.oderivSumsq = make([]float64, c.dim)
		c.oderivCount = 0
	}
	c.oderivCount += float64(rows)
	return c.oderivSumsq
}

// StoreStats accumulates the averages of the output and of the derivative, if they mean something.
func (c *nonlinearity) StoreStats(in, out kernel.Matrix, memo Memo) {
	if out.Cols != c.dim || c.stats == noAverages {
		return
	}
	derivs := c.stats == averageDerivs
	if len(c.valueSum) != c.dim || derivs && len(c.derivSum) != c.dim {
		c.valueSum = make([]float64, c.dim)
		c.derivSum = make([]float64, c.dim)
		c.count = 0
	}
	if derivs && len(c.derivRow) != c.dim {
		c.derivRow = make([]float32, c.dim)
	}
	for i := range out.Rows {
		kernel.AddVecToDoubles(c.valueSum, kernel.Row(out, i))
		if derivs {
			row := kernel.Matrix{Rows: 1, Cols: c.dim, Stride: c.dim, Data: c.derivRow}
			kernel.Fill(row, 1)
			c.deriv(nil, row, kernel.Rows(out, i, 1), row)
			kernel.AddVecToDoubles(c.derivSum, c.derivRow)
		}
	}
	c.count += float64(out.Rows)
}

// ZeroStats resets the statistics.
func (c *nonlinearity) ZeroStats() {
	clear(c.valueSum)
	clear(c.derivSum)
	clear(c.oderivSumsq)
	c.count, c.oderivCount, c.numDimsSelfRepaired, c.numDimsProcessed = 0, 0, 0, 0
}

// repairs reports whether derivatives are to be repaired. Kaldi repairs a random half of the
// minibatches, with twice the strength. Here every minibatch gets the average of that, so that a
// result depends on nothing but its input.
func (c *nonlinearity) repairs() bool {
	return c.selfRepairScale != 0 && c.count != 0 && len(c.derivSum) == c.dim
}
