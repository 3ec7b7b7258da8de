package component

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/internal/lists"

	"github.com/nnopt/nnopt/internal/kernel"
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

// function is what a nonlinearity computes.
type function struct {
	typ        string
	properties Properties // in addition to those of every nonlinearity
	withBlocks Properties // in addition, if there is a block-dim
	value      func(t *kernel.Threads, y, x kernel.Matrix)
	deriv      func(t *kernel.Threads, dx, y, dy kernel.Matrix) // dx may be dy
	stats      int
	lower      float32 // units with a smaller average derivative are repaired
	// repair repairs the derivatives dx of c, and counts the repairs in to. It may be nil.
	repair func(c, to *nonlinearity, y, dx kernel.Matrix)
}

// What StoreStats gathers.
const (
	noAverages    = iota
	averageValues // of the output
	averageDerivs // of the output and the derivative
)

var (
	// sigmoid is y = 1/(1+exp(-x)), dx = dy·y·(1-y).
	sigmoid = function{
		typ: "SigmoidComponent", properties: PropagateInPlace,
		value: eachRow(kernel.SigmoidVec), deriv: eachRow2(kernel.SigmoidDerivVec), stats: averageDerivs,
		lower: 0.05, repair: repairSigmoid,
	}
	// tanh is the hyperbolic tangent, dx = dy·(1-y²).
	tanh = function{
		typ: "TanhComponent", properties: PropagateInPlace,
		value: eachRow(kernel.TanhVec), deriv: eachRow2(kernel.TanhDerivVec), stats: averageDerivs,
		lower: 0.2, repair: repairTanh,
	}
	// rectifiedLinear is y = max(x, 0), dx = dy where y > 0, and 0 elsewhere.
	rectifiedLinear = function{
		typ: "RectifiedLinearComponent", properties: PropagateInPlace, withBlocks: InputContiguous,
		value: eachRow(kernel.ReLUVec), deriv: eachRow2(kernel.ReLUDerivVec), stats: averageDerivs,
		lower: 0.05, repair: repairReLU,
	}
	// softmax normalizes the exponentials of each row to the sum 1, dx = y∘(dy - Σy·dy).
	softmax = function{
		typ: "SoftmaxComponent", properties: PropagateInPlace | BackpropInPlace,
		value: eachRow(func(y, x []float32) { kernel.SoftmaxVec(y, x, softmaxFloor) }), deriv: (*kernel.Threads).SoftmaxDeriv,
		stats: averageValues,
	}
	// logSoftmax is y = x - log Σexp(x), dx = dy - exp(y)·Σdy. Averages of logarithms mean nothing.
	logSoftmax = function{typ: "LogSoftmaxComponent", value: (*kernel.Threads).LogSoftmax, deriv: (*kernel.Threads).LogSoftmaxDeriv}
)

// softmaxFloor is the least value of a softmax.
const softmaxFloor = 1e-20

// eachRow returns f as a function of matrices.
func eachRow(f func(y, x []float32)) func(t *kernel.Threads, y, x kernel.Matrix) {
	return func(t *kernel.Threads, y, x kernel.Matrix) { t.MapRows(y, x, f) }
}

// eachRow2 returns f as a function of matrices.
func eachRow2(f func(dx, y, dy []float32)) func(t *kernel.Threads, dx, y, dy kernel.Matrix) {
	return func(t *kernel.Threads, dx, y, dy kernel.Matrix) { t.MapRows2(dx, y, dy, f) }
}

// repairSigmoid repairs the units of a sigmoid, whose middle is 1/2.
func repairSigmoid(c, to *nonlinearity, y, dx kernel.Matrix) {
	c.repairSaturated(to, y, dx, func(y float32) float32 { return float32(2*y) - 1 })
}

// repairTanh repairs the units of a hyperbolic tangent, whose middle is 0.
func repairTanh(c, to *nonlinearity, y, dx kernel.Matrix) {
	c.repairSaturated(to, y, dx, func(y float32) float32 { return y })
}

// repairSaturated adds a term to dx that pushes units whose derivative is too small on average
// towards the middle, in proportion to their distance from it.
func (c *nonlinearity) repairSaturated(to *nonlinearity, y, dx kernel.Matrix, distance func(y float32) float32) {
	to.numDimsProcessed += float64(c.dim)
	if !c.repairs() {
		return
	}
	least := orDefault(c.lowerThreshold, c.lower) * c.count
	for j, sum := range c.derivSum {
		if sum >= least {
			continue
		}
		to.numDimsSelfRepaired++
		for i := range dx.Rows {
			kernel.Row(dx, i)[j] -= float32(c.selfRepairScale * distance(kernel.Row(y, i)[j]))
		}
	}
}

// repairReLU adds a constant to the derivatives of units that are nearly always off, and subtracts
// it from those of units that are nearly always on. It repairs the units in one place of all blocks
// together.
func repairReLU(c, to *nonlinearity, _, dx kernel.Matrix) {
	if !c.repairs() {
		return
	}
	to.numDimsProcessed += float64(c.blockDim)
	least := orDefault(c.lowerThreshold, c.lower) * c.count
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

// orDefault returns the threshold, or def if it was not given.
func orDefault(threshold, def float32) float64 {
	if threshold == unsetThreshold {
		return float64(def)
	}
	return float64(threshold)
}

// averages visits a vector of sums, which files divide by a count. The count comes later in files,
// so a walk that reads sets sums to the averages, for multiply.
func (f *Fields) averages(token string, sums *[]float64, count float64) {
	switch {
	case f.Copying():
		*sums = slices.Clone(*sums)
	case f.info == nil:
		v := divided(*sums, count)
		f.Vector(token, &v)
		if f.r != nil {
			*sums = doubles(v)
		}
	}
}

// divided returns sums divided by count, or the sums if the count is zero.
func divided(sums []float64, count float64) []float32 {
	if count == 0 {
		count = 1
	}
	return lists.Map(sums, func(s float64) float32 { return float32(s / count) })
}

// doubles returns v in double precision.
func doubles(v []float32) []float64 {
	return lists.Map(v, func(x float32) float64 { return float64(x) })
}

// multiply makes sums of averages.
func multiply(averages []float64, count float64) {
	for i := range averages {
		averages[i] *= count
	}
}

// rootMeans returns the square roots of sums divided by count.
func rootMeans(sumsq []float64, count float64) []float32 {
	if count == 0 {
		count = 1
	}
	return lists.Map(sumsq, func(s float64) float32 { return float32(math.Sqrt(s / count)) })
}
