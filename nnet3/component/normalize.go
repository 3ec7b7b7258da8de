package component

import (
	"math"

	"github.com/nnopt/nnopt/exec/kernel"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// Normalize scales each row, or each block of it, to the root mean square TargetRMS. It may append to each block the
// logarithm of the root mean square that it had.
type Normalize struct {
	dim, blockDim int
	targetRMS     float32
	addLogStddev  bool
}

// Type is "NormalizeComponent".
func (c *Normalize) Type() string { return "NormalizeComponent" }

// InputDim is the number of columns.
func (c *Normalize) InputDim() int { return c.dim }

// OutputDim is InputDim, plus the number of blocks if logarithms are appended.
func (c *Normalize) OutputDim() int {
	if c.addLogStddev {
		return c.dim + c.dim/c.blockDim
	}
	return c.dim
}

// TargetRMS is the root mean square of the output.
func (c *Normalize) TargetRMS() float32 { return c.targetRMS }

// Properties of normalization.
func (c *Normalize) Properties() Properties {
	return (Simple|BackpropNeedsInput|BackpropAdds).
		with(PropagateInPlace|BackpropInPlace, !c.addLogStddev).
		with(InputContiguous|OutputContiguous, c.blockDim != c.dim)
}

// Info describes the component.
func (c *Normalize) Info() string {
	return describe(c, "block-dim=%d, target-rms=%g, add-log-stddev=%t", c.blockDim, c.targetRMS, c.addLogStddev)
}

// Init knows dim or input-dim, block-dim, target-rms, add-log-stddev.
func (c *Normalize) Init(cfg *ConfigLine) error {
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

// Read reads what Write writes, and older forms.
func (c *Normalize) Read(r *kaldiio.Reader, typ string) error {
	p := newParser(r, typ)
	if !p.maybe("<Dim>") {
		p.expect("<InputDim>")
	}
	c.dim = p.dim()
	c.blockDim = optional(p, "<BlockDim>", (*parser).dim, c.dim)
	c.targetRMS = optional(p, "<TargetRms>", (*parser).float, 1)
	c.addLogStddev = optional(p, "<AddLogStddev>", (*parser).bool, false)
	if p.maybe("<ValueAvg>") {
		p.doubleVector()
		field(p, "<DerivAvg>", (*parser).doubleVector)
		field(p, "<Count>", (*parser).double)
	}
	p.check(c.dim%c.blockDim == 0, "dimension %d is no multiple of the block's %d", c.dim, c.blockDim)
	p.check(c.targetRMS > 0, "target rms %g is not positive", c.targetRMS)
	return p.end()
}

// Write writes the component.
func (c *Normalize) Write(w *kaldiio.Writer) error {
	p := begin(w, c)
	p.int("<InputDim>", c.dim)
	if c.blockDim != c.dim {
		p.int("<BlockDim>", c.blockDim)
	}
	p.float("<TargetRms>", c.targetRMS)
	p.bool("<AddLogStddev>", c.addLogStddev)
	return p.end(c)
}

// outBlock is the number of output columns of a block.
func (c *Normalize) outBlock() int {
	if c.addLogStddev {
		return c.blockDim + 1
	}
	return c.blockDim
}

// Propagate computes y = f·x with f = TargetRMS/rms(x), and log(rms(x)) = log(TargetRMS) - log(f).
func (c *Normalize) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	n, o := c.blockDim, c.outBlock()
	for i := range in.Rows {
		x, y := kernel.Row(in, i), kernel.Row(out, i)
		for len(x) > 0 {
			f := kernel.NormalizeRow(y[:n], x[:n], c.targetRMS)
			if c.addLogStddev {
				y[n] = float32(math.Log(float64(c.targetRMS)) - math.Log(float64(f)))
			}
			x, y = x[n:], y[o:]
		}
	}
	return nil, nil
}

// Backprop computes dx += f·dy - f³/(D·TargetRMS²)·(dy·x)·x, and + x/|x|² times the derivative of the appended logarithm.
func (c *Normalize) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
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

// Copy returns a copy.
func (c *Normalize) Copy() Component {
	d := *c
	return &d
}
