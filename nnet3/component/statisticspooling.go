package component

import (
	"fmt"
	"math"

	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/kernel/elementary"
	"github.com/nnopt/nnopt/nnet3/index"
)

// statisticsPoolingComponent turns what StatisticsExtraction put out within a window around each time into averages: the sums
// divided by the count, the sums of squares turned into standard deviations if wanted. The logarithm of the count may stand
// before them, any number of times.
type statisticsPoolingComponent struct {
	inputDim      int
	inputPeriod   int
	left, right   int
	logCounts     int
	outputStddevs bool
	varianceFloor float32
}

// Type is "StatisticsPoolingComponent".
func (c *statisticsPoolingComponent) Type() string { return "StatisticsPoolingComponent" }

// InputDim is the number of columns, the first of which is the count.
func (c *statisticsPoolingComponent) InputDim() int { return c.inputDim }

// OutputDim is the number of averages and logarithms.
func (c *statisticsPoolingComponent) OutputDim() int { return c.inputDim - 1 + c.logCounts }

// Properties of pooling.
func (c *statisticsPoolingComponent) Properties() Properties {
	return BackpropAdds.with(BackpropNeedsOutput, c.outputStddevs || c.logCounts > 0).with(BackpropNeedsInput, c.logCounts == 0)
}

// Init knows input-dim, input-period, left-context, right-context, num-log-count-features, output-stddevs, variance-floor.
func (c *statisticsPoolingComponent) Init(cfg *ConfigLine) error {
	c.inputDim = cfg.dim("input-dim")
	c.inputPeriod = cfg.Int("input-period", 1)
	cfg.require("left-context", "right-context")
	c.left, c.right = cfg.Int("left-context", -1), cfg.Int("right-context", -1)
	c.logCounts = cfg.Int("num-log-count-features", 0)
	c.outputStddevs = cfg.Bool("output-stddevs", false)
	c.varianceFloor = cfg.Float("variance-floor", 1e-10)
	if problem := c.problem(); problem != "" {
		cfg.Fail("%s", problem)
	}
	return cfg.Err()
}

// problem says what is wrong with the settings.
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

// Fields of the component.
func (c *statisticsPoolingComponent) Fields(f *Fields) {
	f.Dim("<InputDim>", &c.inputDim)
	f.Int("<InputPeriod>", &c.inputPeriod)
	f.Int("<LeftContext>", &c.left)
	f.Int("<RightContext>", &c.right)
	f.Int("<NumLogCountFeatures>", &c.logCounts)
	f.Bool("<OutputStddevs>", &c.outputStddevs)
	f.Float("<VarianceFloor>", &c.varianceFloor)
	problem := c.problem()
	f.Check(problem == "", "%s", problem)
}

// window returns the times of the window around t.
func (c *statisticsPoolingComponent) window(t int32) window {
	return window{int64(t) - int64(c.left), int64(t) + int64(c.right), int64(c.inputPeriod)}
}

// InputIndexes appends the indexes of the window.
func (c *statisticsPoolingComponent) InputIndexes(out index.Index, dst []index.Index) []index.Index {
	return c.window(out.T).inputs(out, dst)
}

// IsComputable wants a time that is a multiple of the period, and at least one input of the window.
func (c *statisticsPoolingComponent) IsComputable(out index.Index, has func(index.Index) bool, used *[]index.Index) bool {
	return int(out.T)%c.inputPeriod == 0 && c.window(out.T).computable(out, has, used)
}

// ReorderIndexes leaves the indexes as they are.
func (c *statisticsPoolingComponent) ReorderIndexes(in, out *[]index.Index) {}

// PrecomputeIndexes finds the input rows of each output row.
func (c *statisticsPoolingComponent) PrecomputeIndexes(in, out []index.Index, needBackprop bool) (Precomputed, error) {
	s, err := newRowSets(c, c.InputIndexes, in, out)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Propagate computes logarithms, means and standard deviations.
func (c *statisticsPoolingComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkDims(c, in, out); err != nil {
		return nil, err
	}
	s, err := rowSetsOf(c, pre, in.Rows, out.Rows)
	if err != nil {
		return nil, err
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
		scaleVec(1/count, y)
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

// Backprop takes the derivatives back to the sums. The count gets none, and the floor of the variance is ignored. Where a window
// hardly varies, its derivatives are large and nearly cancel in the frames, so the steps are those of Kaldi, one by one.
func (c *statisticsPoolingComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	s, err := rowSetsOf(c, pre, inDeriv.Rows, outDeriv.Rows)
	if err != nil {
		return err
	}
	if c.logCounts == 0 && inValue.Rows != inDeriv.Rows {
		return shapeError(c, "backprop values", inValue, inDeriv)
	}
	mark := w.Mark()
	defer w.Release(mark)
	d := w.Vector(c.inputDim - 1)
	half := (c.inputDim - 1) / 2
	for i := range outDeriv.Rows {
		copy(d, kernel.Row(outDeriv, i)[c.logCounts:])
		if c.outputStddevs {
			y := kernel.Row(outValue, i)[c.logCounts:]
			for j := range half {
				d[half+j] = d[half+j] / y[half+j] * 0.5
				d[j] -= float32(2 * y[j] * d[half+j])
			}
		}
		var count float32
		if c.logCounts > 0 {
			count = float32(elementary.Exp(float64(kernel.Row(outValue, i)[0])))
		} else {
			for _, r := range s.set(i) {
				count += kernel.Row(inValue, int(r))[0]
			}
		}
		scaleVec(1/count, d)
		for _, r := range s.set(i) {
			kernel.AddVec(kernel.Row(inDeriv, int(r))[1:], 1, d)
		}
	}
	return nil
}
