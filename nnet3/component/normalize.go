package component

import (
	"fmt"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/kernel/elementary"
)

// normalizeComponent scales each row, or each block of it, to the root mean square targetRMS. It
// can append to each block the logarithm of the root mean square that the block had.
type normalizeComponent struct {
	columns
	blockDim     int
	targetRMS    float32
	addLogStddev bool
}

func (c *normalizeComponent) Type() string { return "NormalizeComponent" }
func (c *normalizeComponent) OutputDim() int {
	if c.addLogStddev {
		return c.dim + c.dim/c.blockDim
	}
	return c.dim
}

func (c *normalizeComponent) Properties() Properties {
	return (Simple|BackpropNeedsInput|BackpropAdds).
		with(PropagateInPlace|BackpropInPlace, !c.addLogStddev).
		with(InputContiguous|OutputContiguous, c.blockDim != c.dim)
}

// Init reads dim or input-dim, block-dim, target-rms and add-log-stddev.
func (c *normalizeComponent) Init(cfg *ConfigLine) {
	key := "dim"
	if !cfg.Has(key) {
		key = "input-dim"
	}
	c.dim = cfg.dim(key)
	c.blockDim = cfg.dimOr("block-dim", c.dim)
	c.targetRMS = cfg.Float("target-rms", 1)
	c.addLogStddev = cfg.Bool("add-log-stddev", false)
	cfg.check(c.problem())
}

func (c *normalizeComponent) problem() string {
	if c.targetRMS <= 0 {
		return fmt.Sprintf("target rms %g is not positive", c.targetRMS)
	}
	return noMultiple("dimension", c.dim, "block dimension", c.blockDim)
}

func (c *normalizeComponent) Fields(f *Fields) {
	if f.r != nil && f.Has("<Dim>") {
		f.Dim("<Dim>", &c.dim)
	} else {
		f.Dim("<InputDim>", &c.dim)
	}
	Optional(f, f.Dim, "<BlockDim>", &c.blockDim, c.dim)
	Since(f, f.Float, "<TargetRms>", &c.targetRMS, 1)
	Since(f, f.Bool, "<AddLogStddev>", &c.addLogStddev, false)
	Skip(f, f.DoubleVector, "<ValueAvg>")
	Skip(f, f.DoubleVector, "<DerivAvg>")
	Skip(f, f.Double, "<Count>")
	f.check(c.problem())
}

// outBlock returns the number of output columns of a block.
func (c *normalizeComponent) outBlock() int {
	if c.addLogStddev {
		return c.blockDim + 1
	}
	return c.blockDim
}

// Propagate computes y = f·x with f = targetRMS/rms(x), and log(rms(x)) = log(targetRMS) - log(f).
func (c *normalizeComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	w.forwardRows(c, in, out, 200)
	return nil, nil
}

func (c *normalizeComponent) propagateRows(_ *Workspace, in, out kernel.Matrix) {
	n, o := c.blockDim, c.outBlock()
	for i := range in.Rows {
		x, y := kernel.Row(in, i), kernel.Row(out, i)
		for len(x) > 0 {
			f := kernel.NormalizeRow(y[:n], x[:n], c.targetRMS)
			if c.addLogStddev {
				y[n] = float32(elementary.Log(float64(c.targetRMS)) - elementary.Log(float64(f)))
			}
			x, y = x[n:], y[o:]
		}
	}
}

// Backprop computes dx += f·dy - f³/(D·targetRMS²)·(dy·x)·x, plus x/|x|² times the derivative of
// the appended logarithm.
func (c *normalizeComponent) Backprop(w *Workspace, pass BackwardPass) error {
	w.backwardRows(c, pass, 400)
	return nil
}

func (c *normalizeComponent) backpropRows(pass BackwardPass) {
	n, o := c.blockDim, c.outBlock()
	least := float32(n) * 1.0 / (1 << 33) / (1 << 33)
	for i := range pass.InValue.Rows {
		dx, x, dy := kernel.Row(pass.InDeriv, i), kernel.Row(pass.InValue, i), kernel.Row(pass.OutDeriv, i)
		for len(x) > 0 {
			kernel.NormalizeRowDeriv(dx[:n], x[:n], dy[:n], c.targetRMS)
			if c.addLogStddev {
				kernel.AddVec(dx[:n], dy[n]/max(kernel.Dot(x[:n], x[:n]), least), x[:n])
			}
			dx, x, dy = dx[n:], x[n:], dy[o:]
		}
	}
}
