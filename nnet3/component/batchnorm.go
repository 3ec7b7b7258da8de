package component

import (
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/kernel"
)

// BatchNorm shifts and scales each column so that it has mean 0 and root mean square TargetRMS: over the rows of the
// minibatch in training, according to stored statistics in test mode. With a block-dim, the columns that lie block-dim
// apart are normalized as one.
type BatchNorm struct {
	columns
	blockDim  int
	epsilon   float32
	targetRMS float32
	testMode  bool

	count          float64
	mean, variance []float64 // of the blockDim columns, over count rows

	scale, offset []float32 // in test mode, for all dim columns
}

// Type is "BatchNormComponent".
func (c *BatchNorm) Type() string { return "BatchNormComponent" }

// Properties of batch normalization, which depend on the mode.
func (c *BatchNorm) Properties() Properties {
	return (Simple|PropagateInPlace|BackpropInPlace|BackpropNeedsOutput).
		with(InputContiguous|OutputContiguous, c.blockDim != c.dim).
		with(UsesMemo|StoresStats, !c.testMode)
}

// Scale returns, in test mode, what each column is multiplied by, and otherwise nil. It is shared with the component.
func (c *BatchNorm) Scale() []float32 { return c.scale }

// Offset returns, in test mode, what is added to each column after the scale, and otherwise nil. It is shared with the
// component.
func (c *BatchNorm) Offset() []float32 { return c.offset }

// TestMode reports whether the stored statistics are used.
func (c *BatchNorm) TestMode() bool { return c.testMode }

// SetTestMode chooses between the stored statistics and those of the minibatch.
func (c *BatchNorm) SetTestMode(test bool) {
	c.testMode = test
	c.derive()
}

// derive computes scale and offset from the statistics. Without any, mean 0 and variance 1 are assumed.
//
// The precision of the steps is Kaldi's: the mean and the variance, as they stand in the file, and from there on all is single
// precision. Kaldi's own numbers come out of it bit by bit.
func (c *BatchNorm) derive() {
	c.scale, c.offset = nil, nil
	if !c.testMode {
		return
	}
	c.scale, c.offset = make([]float32, c.dim), make([]float32, c.dim)
	for j := range c.scale {
		mean, variance := float32(0), float32(1)
		if k := j % c.blockDim; c.count != 0 && k < len(c.mean) {
			mean, variance = float32(c.mean[k]), float32(c.variance[k])
		}
		s := float32(1/math.Sqrt(float64(max(variance, 0)+c.epsilon))) * c.targetRMS
		c.scale[j], c.offset[j] = s, -mean*s
	}
}

// Init knows dim, block-dim, epsilon, target-rms, test-mode.
func (c *BatchNorm) Init(cfg *ConfigLine) error {
	dim := cfg.dim("dim")
	*c = BatchNorm{
		columns:   columns{dim},
		blockDim:  dim,
		epsilon:   cfg.Float("epsilon", 1e-3),
		targetRMS: cfg.Float("target-rms", 1),
		testMode:  cfg.Bool("test-mode", false),
	}
	// A block-dim of -1 stands for none.
	if cfg.Int("block-dim", -1) != -1 {
		c.blockDim = cfg.dim("block-dim")
	}
	if c.dim%c.blockDim != 0 || c.epsilon <= 0 || c.targetRMS <= 0 {
		cfg.Fail("dim must be a multiple of block-dim, epsilon and target-rms must be positive")
		return cfg.Err()
	}
	if !cfg.makeRoom(6, c.dim) { // two of them in double precision
		return cfg.Err()
	}
	c.mean, c.variance = make([]float64, c.blockDim), make([]float64, c.blockDim)
	c.derive()
	return cfg.Err()
}

// Fields of the component.
func (c *BatchNorm) Fields(f *Fields) {
	mean, variance := averages(c.mean, 1), averages(c.variance, 1)
	f.Dim("<Dim>", &c.dim)
	f.Dim("<BlockDim>", &c.blockDim)
	f.Float("<Epsilon>", &c.epsilon)
	f.Float("<TargetRms>", &c.targetRMS)
	f.Bool("<TestMode>", &c.testMode)
	f.Double("<Count>", &c.count)
	f.Vector("<StatsMean>", &mean)
	f.Vector("<StatsVar>", &variance)
	f.Check(divides(c.blockDim, c.dim), "dimension %d is no multiple of the block's %d", c.dim, c.blockDim)
	f.Check(c.epsilon > 0 && c.targetRMS > 0, "epsilon %g or target rms %g is not positive", c.epsilon, c.targetRMS)
	f.Check(len(mean) == c.blockDim && len(variance) == c.blockDim, "statistics of %d and %d elements for a block of %d",
		len(mean), len(variance), c.blockDim)
	if c.testMode {
		f.Claim(8 * (c.dim - c.blockDim)) // scale and offset
	}
	switch {
	case f.Reading():
		c.mean, c.variance = sums(mean, 1), sums(variance, 1)
		c.derive()
	case f.Copying():
		c.mean, c.variance = slices.Clone(c.mean), slices.Clone(c.variance)
		c.derive()
	}
}

// The memo of training has the means of the columns in a row, and below them the variances and the scales that follow.
const (
	memoMean = iota
	memoVariance
	memoScale
	memoRows
)

// Propagate computes y = (x - mean)·TargetRMS/√(variance + epsilon).
func (c *BatchNorm) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	if c.testMode {
		kernel.ScaleOffset(out, in, c.scale, c.offset)
		return nil, nil
	}
	m := w.newMemo(memoRows, c.blockDim)
	c.moments(w, in, m.Matrix)
	mark := w.Mark()
	defer w.Release(mark)
	mean, scale := c.spread(w, kernel.Row(m.Matrix, memoMean)), c.spread(w, kernel.Row(m.Matrix, memoScale))
	kernel.Standardize(out, in, mean, scale)
	w.lend(m)
	return m, nil
}

// spread repeats a vector for all blocks of columns.
func (c *BatchNorm) spread(w *Workspace, v []float32) []float32 {
	if c.blockDim == c.dim {
		return v
	}
	all := w.Vector(c.dim)
	for b := 0; b < c.dim; b += c.blockDim {
		copy(all[b:], v)
	}
	return all
}

// blocks shows m with n columns, each block of n in a row of its own. Where there is a gap between the rows of m, it is a copy.
func blocks(w *Workspace, m kernel.Matrix, n int) kernel.Matrix {
	if n == m.Cols {
		return m
	}
	if m.Stride != m.Cols {
		dense := w.Matrix(m.Rows, m.Cols)
		kernel.Copy(dense, m)
		m = dense
	}
	return kernel.Matrix{Data: m.Data, Rows: m.Rows * (m.Cols / n), Cols: n, Stride: n}
}

// moments measures a minibatch and fills in its memo. As in derive, the precision of the steps is Kaldi's: where the mean is
// much larger than the deviation, as it often is for few rows, the variance depends on it.
func (c *BatchNorm) moments(w *Workspace, in, memo kernel.Matrix) {
	mark := w.Mark()
	defer w.Release(mark)
	mean, variance, scale := kernel.Row(memo, memoMean), kernel.Row(memo, memoVariance), kernel.Row(memo, memoScale)
	sumsq := c.means(w, mean, in, in)
	perRow, perSquare := float32(1/c.rows(in.Rows)), 1/(c.targetRMS*c.targetRMS)
	for j, s := range sumsq {
		uncentered := float32(perRow * float32(s))
		variance[j] = max(uncentered-float32(mean[j]*mean[j]), 0)
		square := float32(float32(perSquare*mean[j]) * mean[j])
		scaled := max(float32(perSquare*uncentered)-square, 0) + float32(perSquare*c.epsilon)
		scale[j] = float32(1 / math.Sqrt(float64(scaled)))
	}
}

// means sets mean to the means of the columns of x, and returns the sums of x∘y.
func (c *BatchNorm) means(w *Workspace, mean []float32, x, y kernel.Matrix) (products []float64) {
	n := c.blockDim
	same := kernel.Same(x, y)
	x = blocks(w, x, n)
	if same {
		y = x
	} else {
		y = blocks(w, y, n)
	}
	clear(mean)
	products = w.zeroDoubles(n)
	kernel.AddColMoments(mean, float32(1/float64(max(x.Rows, 1))), products, x, y)
	return products
}

// rows is the number of values that a mean is taken over, at least 1.
func (c *BatchNorm) rows(rows int) float64 { return float64(max(rows*(c.dim/c.blockDim), 1)) }

// Backprop computes dx = s·dy in test mode. In training the mean and the variance depend on x too:
//
//	dx = s·(dy - mean(dy)) - y·s·mean(y·dy)/TargetRMS²
func (c *BatchNorm) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	if c.testMode {
		kernel.ScaleCols(inDeriv, outDeriv, c.scale)
		return nil
	}
	m, ok := memoOf(memo, memoRows, c.blockDim)
	if !ok {
		return fmt.Errorf("%s: backprop: the memo of the propagation is missing: %w", c.Type(), ErrShape)
	}
	mark := w.Mark()
	defer w.Release(mark)
	mean, slope, scale := w.Vector(c.blockDim), w.Vector(c.blockDim), kernel.Row(m.Matrix, memoScale)
	perSquare := float32(-1 / (c.rows(outDeriv.Rows) * float64(c.targetRMS*c.targetRMS)))
	for j, dot := range c.means(w, mean, outDeriv, outValue) {
		slope[j] = float32(perSquare*float32(dot)) * scale[j]
	}
	kernel.StandardizeDeriv(inDeriv, outDeriv, outValue, c.spread(w, mean), c.spread(w, scale), c.spread(w, slope))
	w.free(m)
	return nil
}

// StoreStats adds the mean and the variance of a minibatch to the statistics. It does nothing in test mode.
func (c *BatchNorm) StoreStats(in, out kernel.Matrix, memo Memo) {
	m, ok := memoOf(memo, memoRows, len(c.mean))
	if !ok || out.Rows == 0 {
		return
	}
	rows := c.rows(out.Rows)
	total := c.count + rows
	mean, variance := kernel.Row(m.Matrix, memoMean), kernel.Row(m.Matrix, memoVariance)
	for j := range c.mean {
		d := float64(mean[j]) - c.mean[j]
		c.mean[j] += d * rows / total
		c.variance[j] = (float64(c.variance[j]*c.count)+float64(float64(variance[j])*rows))/total + d*d*c.count*rows/(total*total)
	}
	c.count = total
}

// ZeroStats forgets the statistics, except in test mode, where they are what the component computes with.
func (c *BatchNorm) ZeroStats() {
	if c.testMode {
		return
	}
	c.count = 0
	clear(c.mean)
	clear(c.variance)
}
