package component

import (
	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/kernel/elementary"
)

// normalizeComponent scales each row, or each block of it, to the root mean square TargetRMS. It may append to each block the
// logarithm of the root mean square that it had.
type normalizeComponent struct {
	columns
	blockDim     int
	targetRMS    float32
	addLogStddev bool
}

// Type is "NormalizeComponent".
func (c *normalizeComponent) Type() string { return "NormalizeComponent" }

// OutputDim is InputDim, plus the number of blocks if logarithms are appended.
func (c *normalizeComponent) OutputDim() int {
	if c.addLogStddev {
		return c.dim + c.dim/c.blockDim
	}
	return c.dim
}

// Properties of normalization.
func (c *normalizeComponent) Properties() Properties {
	return (Simple|BackpropNeedsInput|BackpropAdds).
		with(PropagateInPlace|BackpropInPlace, !c.addLogStddev).
		with(InputContiguous|OutputContiguous, c.blockDim != c.dim)
}

// Init knows dim or input-dim, block-dim, target-rms, add-log-stddev.
func (c *normalizeComponent) Init(cfg *ConfigLine) error {
	key := "dim"
	if !cfg.Has(key) {
		key = "input-dim"
	}
	c.dim = cfg.dim(key)
	c.blockDim = cfg.dimOr("block-dim", c.dim)
	c.targetRMS = cfg.Float("target-rms", 1)
	c.addLogStddev = cfg.Bool("add-log-stddev", false)
	if c.dim%c.blockDim != 0 || c.targetRMS <= 0 {
		cfg.Fail("dim must be a multiple of block-dim, target-rms must be positive")
	}
	return cfg.Err()
}

// Fields of the component.
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
	f.Check(divides(c.blockDim, c.dim), "dimension %d is no multiple of the block's %d", c.dim, c.blockDim)
	f.Check(c.targetRMS > 0, "target rms %g is not positive", c.targetRMS)
}

// outBlock is the number of output columns of a block.
func (c *normalizeComponent) outBlock() int {
	if c.addLogStddev {
		return c.blockDim + 1
	}
	return c.blockDim
}

// Propagate computes y = f·x with f = TargetRMS/rms(x), and log(rms(x)) = log(TargetRMS) - log(f).
func (c *normalizeComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
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
	return nil, nil
}

// Backprop computes dx += f·dy - f³/(D·TargetRMS²)·(dy·x)·x, and + x/|x|² times the derivative of the appended logarithm.
func (c *normalizeComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	n, o := c.blockDim, c.outBlock()
	least := float32(n) * 1.0 / (1 << 33) / (1 << 33)
	for i := range inValue.Rows {
		dx, x, dy := kernel.Row(inDeriv, i), kernel.Row(inValue, i), kernel.Row(outDeriv, i)
		for len(x) > 0 {
			kernel.NormalizeRowDeriv(dx[:n], x[:n], dy[:n], c.targetRMS)
			if c.addLogStddev {
				kernel.AddVec(dx[:n], dy[n]/max(kernel.Dot(x[:n], x[:n]), least), x[:n])
			}
			dx, x, dy = dx[n:], x[n:], dy[o:]
		}
	}
	return nil
}
