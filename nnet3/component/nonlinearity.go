package component

import (
	"fmt"

	"github.com/nnopt/nnopt/exec/kernel"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// unsetThreshold stands for a threshold of self-repair that was not given.
const unsetThreshold = -1000

// nonlinearity is what the element-wise nonlinearities have in common: a dimension, statistics, and the settings of
// self-repair, which pushes units whose average derivative is out of range back into it.
type nonlinearity struct {
	dim, blockDim int

	valueSum, derivSum []float64 // empty until statistics come in
	count              float64
	oderivSumsq        []float64
	oderivCount        float64
	derivRow           []float32 // scratch memory of storeStats

	numDimsSelfRepaired, numDimsProcessed float64
	lowerThreshold, upperThreshold        float32
	selfRepairScale                       float32
}

// InputDim is the number of columns.
func (n *nonlinearity) InputDim() int { return n.dim }

// OutputDim is the number of columns.
func (n *nonlinearity) OutputDim() int { return n.dim }

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
		dim:             dim,
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

func (n *nonlinearity) read(r *kaldiio.Reader, typ string) error {
	p := newParser(r, typ)
	*n = nonlinearity{lowerThreshold: unsetThreshold, upperThreshold: unsetThreshold}
	n.dim = field(p, "<Dim>", (*parser).dim)
	n.blockDim = optional(p, "<BlockDim>", (*parser).dim, n.dim)
	p.check(n.dim%n.blockDim == 0, "dimension %d is no multiple of the block's %d", n.dim, n.blockDim)
	values := field(p, "<ValueAvg>", (*parser).vector)
	derivs := field(p, "<DerivAvg>", (*parser).vector)
	n.count = field(p, "<Count>", (*parser).double)
	n.valueSum, n.derivSum = sums(values, n.count), sums(derivs, n.count)
	if p.maybe("<OderivRms>") {
		rms := p.vector()
		n.oderivCount = field(p, "<OderivCount>", (*parser).double)
		n.oderivSumsq = make([]float64, len(rms))
		for i, v := range rms {
			n.oderivSumsq[i] = float64(v) * float64(v) * n.oderivCount
		}
	}
	for _, v := range [][]float64{n.valueSum, n.derivSum, n.oderivSumsq} {
		p.check(len(v) == 0 || len(v) == n.dim, "statistics of %d elements for dimension %d", len(v), n.dim)
	}
	n.numDimsSelfRepaired = optional(p, "<NumDimsSelfRepaired>", (*parser).double, 0)
	n.numDimsProcessed = optional(p, "<NumDimsProcessed>", (*parser).double, 0)
	n.lowerThreshold = optional(p, "<SelfRepairLowerThreshold>", (*parser).float, unsetThreshold)
	n.upperThreshold = optional(p, "<SelfRepairUpperThreshold>", (*parser).float, unsetThreshold)
	n.selfRepairScale = optional(p, "<SelfRepairScale>", (*parser).float, 0)
	return p.end()
}

func (n *nonlinearity) write(w *kaldiio.Writer, c Component) error {
	p := begin(w, c)
	p.int("<Dim>", n.dim)
	if n.blockDim != n.dim {
		p.int("<BlockDim>", n.blockDim)
	}
	p.vector("<ValueAvg>", averages(n.valueSum, n.count))
	p.vector("<DerivAvg>", averages(n.derivSum, n.count))
	p.double("<Count>", n.count)
	p.vector("<OderivRms>", rootMeans(n.oderivSumsq, n.oderivCount))
	p.double("<OderivCount>", n.oderivCount)
	p.double("<NumDimsSelfRepaired>", n.numDimsSelfRepaired)
	p.double("<NumDimsProcessed>", n.numDimsProcessed)
	if n.lowerThreshold != unsetThreshold {
		p.float("<SelfRepairLowerThreshold>", n.lowerThreshold)
	}
	if n.upperThreshold != unsetThreshold {
		p.float("<SelfRepairUpperThreshold>", n.upperThreshold)
	}
	if n.selfRepairScale != 0 {
		p.float("<SelfRepairScale>", n.selfRepairScale)
	}
	return p.end(c)
}

func (n *nonlinearity) info(c Component) string {
	s := describe(c, "count=%.3g", n.count)
	if n.blockDim != n.dim {
		s += fmt.Sprintf(", block-dim=%d", n.blockDim)
	}
	if n.selfRepairScale != 0 {
		s += fmt.Sprintf(", self-repair-scale=%g", n.selfRepairScale)
	}
	return s
}

func (n *nonlinearity) copy() nonlinearity {
	d := *n
	d.valueSum = append([]float64(nil), n.valueSum...)
	d.derivSum = append([]float64(nil), n.derivSum...)
	d.oderivSumsq = append([]float64(nil), n.oderivSumsq...)
	d.derivRow = nil
	return d
}

// storeStats adds the rows of out to the statistics. deriv gives the derivatives of the nonlinearity for a row of out; it may
// be nil.
func (n *nonlinearity) storeStats(out kernel.Matrix, deriv func(dst, y kernel.Matrix)) {
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
			deriv(row, kernel.Rows(out, i, 1))
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

// repairSaturated adds a term to dx that pushes units of sigmoid shape, whose derivative is too small on average, towards the
// middle. centre maps an output to -1..1.
func (n *nonlinearity) repairSaturated(to *nonlinearity, defaultLower float32, out, dx kernel.Matrix, centre func(y float32) float32) {
	to.numDimsProcessed += float64(n.dim)
	if !n.repairs() {
		return
	}
	least := orDefault(n.lowerThreshold, defaultLower) * n.count
	scale := n.selfRepairScale
	for j, sum := range n.derivSum {
		if sum >= least {
			continue
		}
		to.numDimsSelfRepaired++
		for i := range dx.Rows {
			kernel.Row(dx, i)[j] -= scale * centre(kernel.Row(out, i)[j])
		}
	}
}
