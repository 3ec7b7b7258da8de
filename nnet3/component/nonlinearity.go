package component

import (
	"slices"

	"github.com/nnopt/nnopt/kernel"
)

// unsetThreshold stands for a threshold of self-repair that was not given.
const unsetThreshold = -1000

// nonlinearity is what the element-wise nonlinearities have in common: a dimension, statistics, and the settings of
// self-repair, which pushes units whose average derivative is out of range back into it.
type nonlinearity struct {
	columns
	blockDim int

	valueSum, derivSum []float64 // empty until statistics come in
	count              float64
	oderivSumsq        []float64
	oderivCount        float64
	derivRow           []float32 // scratch memory of storeStats

	numDimsSelfRepaired, numDimsProcessed float64
	lowerThreshold, upperThreshold        float32
	selfRepairScale                       float32
}

// ZeroStats forgets the statistics.
func (n *nonlinearity) ZeroStats() {
	clear(n.valueSum)
	clear(n.derivSum)
	clear(n.oderivSumsq)
	n.count, n.oderivCount, n.numDimsSelfRepaired, n.numDimsProcessed = 0, 0, 0, 0
}

func (n *nonlinearity) init(cfg *ConfigLine) error {
	dim := cfg.dim("dim")
	*n = nonlinearity{
		columns:         columns{dim},
		blockDim:        cfg.dimOr("block-dim", dim),
		lowerThreshold:  cfg.Float("self-repair-lower-threshold", unsetThreshold),
		upperThreshold:  cfg.Float("self-repair-upper-threshold", unsetThreshold),
		selfRepairScale: cfg.Float("self-repair-scale", 0),
	}
	if n.dim%n.blockDim != 0 {
		cfg.Fail("dim=%d is no multiple of block-dim=%d", n.dim, n.blockDim)
	}
	return cfg.Err()
}

// Fields names the settings and the statistics.
func (n *nonlinearity) Fields(f *Fields) {
	values, derivs, rms := averages(n.valueSum, n.count), averages(n.derivSum, n.count), rootMeans(n.oderivSumsq, n.oderivCount)
	f.Dim("<Dim>", &n.dim)
	Optional(f, f.Dim, "<BlockDim>", &n.blockDim, n.dim)
	f.Check(divides(n.blockDim, n.dim), "dimension %d is no multiple of the block's %d", n.dim, n.blockDim)
	f.Vector("<ValueAvg>", &values)
	f.Vector("<DerivAvg>", &derivs)
	f.Double("<Count>", &n.count)
	Since(f, f.Vector, "<OderivRms>", &rms, nil)
	Since(f, f.Double, "<OderivCount>", &n.oderivCount, 0)
	for _, v := range [][]float32{values, derivs, rms} {
		f.Check(len(v) == 0 || len(v) == n.dim, "statistics of %d elements for dimension %d", len(v), n.dim)
	}
	Since(f, f.Double, "<NumDimsSelfRepaired>", &n.numDimsSelfRepaired, 0)
	Since(f, f.Double, "<NumDimsProcessed>", &n.numDimsProcessed, 0)
	Optional(f, f.Float, "<SelfRepairLowerThreshold>", &n.lowerThreshold, unsetThreshold)
	Optional(f, f.Float, "<SelfRepairUpperThreshold>", &n.upperThreshold, unsetThreshold)
	Optional(f, f.Float, "<SelfRepairScale>", &n.selfRepairScale, 0)
	switch {
	case f.Reading():
		n.valueSum, n.derivSum = sums(values, n.count), sums(derivs, n.count)
		n.oderivSumsq = make([]float64, len(rms))
		for i, v := range rms {
			n.oderivSumsq[i] = float64(v) * float64(v) * n.oderivCount
		}
	case f.Copying():
		n.valueSum, n.derivSum, n.oderivSumsq = slices.Clone(n.valueSum), slices.Clone(n.derivSum), slices.Clone(n.oderivSumsq)
		n.derivRow = nil
	}
}

// storeStats adds the rows of out to the statistics. deriv computes dx from y and dy; it may
// be nil.
func (n *nonlinearity) storeStats(out kernel.Matrix, deriv func(dx, y, dy kernel.Matrix)) {
	if out.Cols != n.dim {
		return
	}
	if len(n.valueSum) != n.dim || deriv != nil && len(n.derivSum) != n.dim {
		n.valueSum = make([]float64, n.dim)
		n.derivSum = make([]float64, n.dim)
		n.count = 0
	}
	if deriv != nil && len(n.derivRow) != n.dim {
		n.derivRow = make([]float32, n.dim)
	}
	for i := range out.Rows {
		kernel.AddVecToDoubles(n.valueSum, kernel.Row(out, i))
		if deriv != nil {
			row := kernel.Matrix{Rows: 1, Cols: n.dim, Stride: n.dim, Data: n.derivRow}
			kernel.Fill(row, 1)
			deriv(row, kernel.Rows(out, i, 1), row)
			kernel.AddVecToDoubles(n.derivSum, n.derivRow)
		}
	}
	n.count += float64(out.Rows)
}

// backpropStats counts the rows of an output derivative, and returns what its squares are to be added to.
func (n *nonlinearity) backpropStats(rows int) []float64 {
	if len(n.oderivSumsq) != n.dim {
		n.oderivSumsq = make([]float64, n.dim)
		n.oderivCount = 0
	}
	n.oderivCount += float64(rows)
	return n.oderivSumsq
}

// storeBackpropStats adds the rows of an output derivative to the statistics.
func (n *nonlinearity) storeBackpropStats(outDeriv kernel.Matrix) {
	kernel.AddColSquares(n.backpropStats(outDeriv.Rows), outDeriv)
}

// repairs reports whether gradients are to be repaired. Kaldi repairs those of a random half of the minibatches, with twice
// the strength; here every minibatch gets the average of that, so that a result depends on nothing but its input.
func (n *nonlinearity) repairs() bool {
	return n.selfRepairScale != 0 && n.count != 0 && len(n.derivSum) == n.dim
}

// orDefault returns the threshold, or def if it was not given.
func orDefault(threshold, def float32) float64 {
	if threshold == unsetThreshold {
		return float64(def)
	}
	return float64(threshold)
}
