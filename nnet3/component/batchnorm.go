package component

import (
	"fmt"
	"math"

	"github.com/nnopt/nnopt/internal/kernel"
)

// BatchNorm is a component that normalizes columns: in training with the statistics of the
// minibatch, in test mode with those that it has stored.
type BatchNorm interface {
	Component
	TestModer
	StatsStorer
	StatsZeroer
}

// batchNorm shifts and scales each column so that it has mean 0 and root mean square targetRMS:
// over the rows of the minibatch in training, according to stored statistics in test mode. With a
// block-dim, columns block-dim apart are normalized as one.
type batchNorm struct {
	columns
	blockDim  int
	epsilon   float32
	targetRMS float32
	testMode

	count          float64
	mean, variance []float64 // of the blockDim columns, over count rows

	scale, offset []float32 // in test mode, for all dim columns
}

func (c *batchNorm) Type() string { return "BatchNormComponent" }
func (c *batchNorm) Properties() Properties {
	return (Simple|PropagateInPlace|BackpropInPlace|BackpropNeedsOutput).
		with(InputContiguous|OutputContiguous, c.blockDim != c.dim).
		with(UsesMemo|StoresStats, !c.test)
}

// SetTestMode chooses between the stored statistics and those of the minibatch.
func (c *batchNorm) SetTestMode(test bool) {
	c.test = test
	c.derive()
}

// LacksStats reports whether mean 0 and variance 1 are used for want of statistics.
func (c *batchNorm) LacksStats() bool { return c.test && c.count == 0 }

// derive computes scale and offset from the statistics, or from mean 0 and variance 1 if there are
// none.
//
// Like Kaldi, it rounds the mean and the variance to single precision, as files do, and computes in
// single precision from there. The bits are Kaldi's.
func (c *batchNorm) derive() {
	c.scale, c.offset = nil, nil
	if !c.test {
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

// Init reads dim, block-dim, epsilon, target-rms and test-mode.
func (c *batchNorm) Init(cfg *ConfigLine) {
	c.dim = cfg.dim("dim")
	c.blockDim = c.dim
	// A block-dim of -1 means none.
	if cfg.Int("block-dim", -1) != -1 {
		c.blockDim = cfg.dim("block-dim")
	}
	c.epsilon = cfg.Float("epsilon", 1e-3)
	c.targetRMS = cfg.Float("target-rms", 1)
	c.test = cfg.Bool("test-mode", false)
	if problem := c.problem(); problem != "" {
		cfg.check(problem)
		return
	}
	if cfg.makeRoom(6, c.dim) { // two of them in double precision
		c.mean, c.variance = make([]float64, c.blockDim), make([]float64, c.blockDim)
		c.derive()
	}
}

func (c *batchNorm) problem() string {
	if c.epsilon <= 0 || c.targetRMS <= 0 {
		return fmt.Sprintf("epsilon %g or target rms %g is not positive", c.epsilon, c.targetRMS)
	}
	return noMultiple("dimension", c.dim, "block dimension", c.blockDim)
}

func (c *batchNorm) Fields(f *Fields) {
	f.Dim("<Dim>", &c.dim)
	f.Dim("<BlockDim>", &c.blockDim)
	f.Float("<Epsilon>", &c.epsilon)
	f.Float("<TargetRms>", &c.targetRMS)
	f.Bool("<TestMode>", &c.test)
	f.Double("<Count>", &c.count)
	f.averages("<StatsMean>", &c.mean, 1)
	f.averages("<StatsVar>", &c.variance, 1)
	f.check(c.problem())
	f.Check(len(c.mean) == c.blockDim && len(c.variance) == c.blockDim, "statistics of %d and %d elements for a block of %d",
		len(c.mean), len(c.variance), c.blockDim)
	if c.test {
		f.Claim(8 * (c.dim - c.blockDim)) // scale and offset
	}
	if f.Reading() || f.Copying() {
		c.derive()
	}
}

// The rows of the memo in training: the means of the columns, the variances, and the scales that
// follow from them.
const (
	memoMean = iota
	memoVariance
	memoScale
	memoRows
)

// Propagate computes y = (x - mean)·targetRMS/√(variance + epsilon).
func (c *batchNorm) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	if c.test {
		w.Threads.ScaleOffset(out, in, c.scale, c.offset)
		return nil, nil
	}
	m := w.newMemo(memoRows, c.blockDim)
	c.moments(w, in, m.Matrix)
	defer w.Release(w.Mark())
	mean, scale := c.spread(w, kernel.Row(m.Matrix, memoMean)), c.spread(w, kernel.Row(m.Matrix, memoScale))
	w.Threads.Standardize(out, in, mean, scale)
	w.lend(m, pass)
	return m, nil
}

// spread repeats a vector for all blocks of columns.
func (c *batchNorm) spread(w *Workspace, v []float32) []float32 {
	if c.blockDim == c.dim {
		return v
	}
	all := w.Vector(c.dim)
	for b := 0; b < c.dim; b += c.blockDim {
		copy(all[b:], v)
	}
	return all
}

// blocks returns m with n columns, each block of n in a row of its own: a view, or a copy if m has
// gaps between its rows.
func blocks(w *Workspace, m kernel.Matrix, n int) kernel.Matrix {
	if n == m.Cols {
		return m
	}
	if m.Stride != m.Cols {
		dense := w.Matrix(m.Rows, m.Cols)
		w.Threads.Copy(dense, m)
		m = dense
	}
	return kernel.Matrix{Data: m.Data, Rows: m.Rows * (m.Cols / n), Cols: n, Stride: n}
}

// moments measures a minibatch and fills in its memo. As in derive, the precision of each step is
// Kaldi's: if the mean is much larger than the deviation, as it often is with few rows, the
// variance depends on it.
func (c *batchNorm) moments(w *Workspace, in, memo kernel.Matrix) {
	defer w.Release(w.Mark())
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
func (c *batchNorm) means(w *Workspace, mean []float32, x, y kernel.Matrix) (products []float64) {
	n := c.blockDim
	same := kernel.Same(x, y)
	x = blocks(w, x, n)
	if same {
		y = x
	} else {
		y = blocks(w, y, n)
	}
	clear(mean)
	products = w.newDoubles(n)
	clear(products)
	w.Threads.AddColMoments(mean, float32(1/float64(max(x.Rows, 1))), products, x, y)
	return products
}

// rows returns the number of values that a mean is taken over, at least 1.
func (c *batchNorm) rows(rows int) float64 { return float64(max(rows*(c.dim/c.blockDim), 1)) }

// Backprop computes dx = s·dy in test mode. In training, where the mean and the variance depend on
// x, it computes
//
//	dx = s·(dy - mean(dy)) - y·s·mean(y·dy)/targetRMS²
func (c *batchNorm) Backprop(w *Workspace, pass BackwardPass) error {
	if c.test {
		w.Threads.ScaleCols(pass.InDeriv, pass.OutDeriv, c.scale)
		return nil
	}
	m, ok := memoOf(pass.Memo, memoRows, c.blockDim)
	if !ok {
		return missingMemo(c)
	}
	defer w.Release(w.Mark())
	mean, slope, scale := w.Vector(c.blockDim), w.Vector(c.blockDim), kernel.Row(m.Matrix, memoScale)
	perSquare := float32(-1 / (c.rows(pass.OutDeriv.Rows) * float64(c.targetRMS*c.targetRMS)))
	for j, dot := range c.means(w, mean, pass.OutDeriv, pass.OutValue) {
		slope[j] = float32(perSquare*float32(dot)) * scale[j]
	}
	w.Threads.StandardizeDeriv(pass.InDeriv, pass.OutDeriv, pass.OutValue, c.spread(w, mean), c.spread(w, scale), c.spread(w, slope))
	w.free(m)
	return nil
}

// StoreStats adds the mean and the variance of a minibatch to the statistics. It does nothing in
// test mode.
func (c *batchNorm) StoreStats(in, out kernel.Matrix, memo Memo) {
	m, ok := memoOf(memo, memoRows, len(c.mean))
	if !ok || out.Rows == 0 {
		return
	}
	rows := c.rows(out.Rows)
	total := c.count + rows
	mean, variance := kernel.Row(m.Matrix, memoMean), kernel.Row(m.Matrix, memoVariance)
	for j := range c.mean {
		// The parallel formula of Chan, Golub and LeVeque: unlike sums of squares it does not
		// subtract large numbers that are almost equal.
		d := float64(mean[j]) - c.mean[j]
		c.mean[j] += d * rows / total
		c.variance[j] = (float64(c.variance[j]*c.count)+float64(float64(variance[j])*rows))/total + d*d*c.count*rows/(total*total)
	}
	c.count = total
}

// ZeroStats resets the statistics, except in test mode, where the component computes with them.
func (c *batchNorm) ZeroStats() {
	if c.test {
		return
	}
	c.count = 0
	clear(c.mean)
	clear(c.variance)
}
