package component

import (
	"fmt"
	"math"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/kernel/elementary"
	"github.com/nnopt/nnopt/nnet3/index"
)

// statisticsPoolingComponent turns the output of StatisticsExtraction within a window around each
// time into averages: it divides the sums by the count and, with outputStddevs, turns the sums of
// squares into standard deviations. The logarithm of the count, repeated logCounts times, is
// before them. The first column of the input is the count.
type statisticsPoolingComponent struct {
	inputDim      int
	inputPeriod   int
	left, right   int
	logCounts     int
	outputStddevs bool
	varianceFloor float32
}

func (c *statisticsPoolingComponent) Type() string   { return "StatisticsPoolingComponent" }
func (c *statisticsPoolingComponent) InputDim() int  { return c.inputDim }
func (c *statisticsPoolingComponent) OutputDim() int { return c.inputDim - 1 + c.logCounts }
func (c *statisticsPoolingComponent) Properties() Properties {
	return BackpropAdds.with(BackpropNeedsOutput, c.outputStddevs || c.logCounts > 0).with(BackpropNeedsInput, c.logCounts == 0)
}

// Init reads input-dim, input-period, left-context, right-context, num-log-count-features,
// output-stddevs and variance-floor.
func (c *statisticsPoolingComponent) Init(cfg *ConfigLine) {
	c.inputDim = cfg.dim("input-dim")
	c.inputPeriod = cfg.Int("input-period", 1)
	cfg.require("left-context", "right-context")
	c.left, c.right = cfg.Int("left-context", -1), cfg.Int("right-context", -1)
	c.logCounts = cfg.Int("num-log-count-features", 0)
	c.outputStddevs = cfg.Bool("output-stddevs", false)
	c.varianceFloor = cfg.Float("variance-floor", 1e-10)
	cfg.check(c.problem())
}

func (c *statisticsPoolingComponent) problem() string {
	switch {
	case c.inputPeriod <= 0 || c.left < 0 || c.right < 0 || c.left+c.right <= 0:
		return "period and contexts must be positive"
	case c.left%c.inputPeriod != 0 || c.right%c.inputPeriod != 0 || (c.left+c.right)/c.inputPeriod >= maxWindow:
		return fmt.Sprintf("contexts must be multiples of the period, and at most %d times as long", maxWindow)
	case c.inputDim < 2 || c.outputStddevs && c.inputDim%2 == 0:
		return "the input must be a count, sums and, for standard deviations, as many sums of squares"
	case c.logCounts < 0 || c.logCounts > maxDim-c.inputDim:
		return "the number of logarithms is negative or too large"
	case !(c.varianceFloor > 0 && c.varianceFloor < 1):
		return "the variance floor must be between 0 and 1"
	}
	return ""
}

func (c *statisticsPoolingComponent) Fields(f *Fields) {
	f.Dim("<InputDim>", &c.inputDim)
	f.Int("<InputPeriod>", &c.inputPeriod)
	f.Int("<LeftContext>", &c.left)
	f.Int("<RightContext>", &c.right)
	f.Int("<NumLogCountFeatures>", &c.logCounts)
	f.Bool("<OutputStddevs>", &c.outputStddevs)
	f.Float("<VarianceFloor>", &c.varianceFloor)
	f.check(c.problem())
}

// window returns the times of the window around t.
func (c *statisticsPoolingComponent) window(t int32) window {
	return window{int64(t) - int64(c.left), int64(t) + int64(c.right), int64(c.inputPeriod)}
}

// InputIndexes appends the indexes of the window.
func (c *statisticsPoolingComponent) InputIndexes(out index.Index, dst []index.Index) []index.Index {
	return c.window(out.T).inputs(out, dst)
}

// IsComputable needs a time that is a multiple of the period, and at least one input of the window.
func (c *statisticsPoolingComponent) IsComputable(out index.Index, has func(index.Index) bool, used *[]index.Index) bool {
	return int(out.T)%c.inputPeriod == 0 && c.window(out.T).computable(out, has, used)
}

// PrecomputeIndexes finds the input rows of each output row.
func (c *statisticsPoolingComponent) PrecomputeIndexes(in, out []index.Index, needBackprop bool) (Precomputed, error) {
	return newRowSets(c, in, out)
}

// Propagate computes logarithms, means and standard deviations.
func (c *statisticsPoolingComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	s, ok := pass.Pre.(*rowSets)
	if !ok || !s.fits(in.Rows, out.Rows) {
		return nil, misfit(c, in.Rows, out.Rows)
	}
	half := (c.inputDim - 1) / 2
	for i := range out.Rows {
		logs, y := kernel.Row(out, i)[:c.logCounts], kernel.Row(out, i)[c.logCounts:]
		clear(y)
		count := float32(0)
		for _, r := range s.set(i) {
			x := kernel.Row(in, int(r))
			count += x[0]
			kernel.AddVec(y, 1, x[1:])
		}
		kernel.ScaleVec(y, 1/count, y)
		for j := range logs {
			logs[j] = float32(elementary.Log(float64(count)))
		}
		if c.outputStddevs {
			for j, mean := range y[:half] {
				variance := max(y[half+j]-float32(mean*mean), c.varianceFloor)
				y[half+j] = float32(math.Sqrt(float64(variance)))
			}
		}
	}
	return nil, nil
}

// Backprop computes the derivatives of the sums. The count gets none, and the floor of the variance
// is ignored. If a window hardly varies, its derivatives are large and nearly cancel in the frames,
// so each step rounds as Kaldi does.
func (c *statisticsPoolingComponent) Backprop(w *Workspace, pass BackwardPass) error {
	s, ok := pass.Pre.(*rowSets)
	if !ok || !s.fits(pass.InDeriv.Rows, pass.OutDeriv.Rows) {
		return misfit(c, pass.InDeriv.Rows, pass.OutDeriv.Rows)
	}
	defer w.Release(w.Mark())
	d := w.Vector(c.inputDim - 1)
	half := (c.inputDim - 1) / 2
	for i := range pass.OutDeriv.Rows {
		copy(d, kernel.Row(pass.OutDeriv, i)[c.logCounts:])
		if c.outputStddevs {
			y := kernel.Row(pass.OutValue, i)[c.logCounts:]
			for j := range half {
				d[half+j] = d[half+j] / y[half+j] * 0.5
				d[j] -= float32(2 * y[j] * d[half+j])
			}
		}
		var count float32
		if c.logCounts > 0 {
			count = float32(elementary.Exp(float64(kernel.Row(pass.OutValue, i)[0])))
		} else {
			for _, r := range s.set(i) {
				count += kernel.Row(pass.InValue, int(r))[0]
			}
		}
		kernel.ScaleVec(d, 1/count, d)
		for _, r := range s.set(i) {
			kernel.AddVec(kernel.Row(pass.InDeriv, int(r))[1:], 1, d)
		}
	}
	return nil
}
