package component

import "github.com/nnopt/nnopt/kernel"

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
