package component

import (
	"github.com/nnopt/nnopt/exec/kernel"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// NoOp copies its input.
type NoOp struct {
	dim           int
	backpropScale float32
}

// Type is "NoOpComponent".
func (c *NoOp) Type() string { return "NoOpComponent" }

// InputDim is the number of columns.
func (c *NoOp) InputDim() int { return c.dim }

// OutputDim is the number of columns.
func (c *NoOp) OutputDim() int { return c.dim }

// BackpropScale is what derivatives are multiplied by on their way back.
func (c *NoOp) BackpropScale() float32 { return c.backpropScale }

// Properties of doing nothing.
func (c *NoOp) Properties() Properties { return Simple | PropagateInPlace | BackpropInPlace }

// IsIdentity is true.
func (c *NoOp) IsIdentity() bool { return true }

// IsIdentityBackward reports whether derivatives are not scaled.
func (c *NoOp) IsIdentityBackward() bool { return c.backpropScale == 1 }

// Info describes the component.
func (c *NoOp) Info() string { return describe(c, "backprop-scale=%g", c.backpropScale) }

// Init knows dim and backprop-scale.
func (c *NoOp) Init(cfg *ConfigLine) error {
	c.dim = cfg.dim("dim")
	c.backpropScale = cfg.Float("backprop-scale", 1)
	return cfg.Err()
}

// Read reads what Write writes, and the form of a nonlinearity, which old files have.
func (c *NoOp) Read(r *kaldiio.Reader, typ string) error {
	p := newParser(r, typ)
	c.dim = field(p, "<Dim>", (*parser).dim)
	c.backpropScale = optional(p, "<BackpropScale>", (*parser).float, 1)
	if p.maybe("<ValueAvg>") {
		p.vector()
		field(p, "<DerivAvg>", (*parser).vector)
		field(p, "<Count>", (*parser).double)
		if p.maybe("<OderivRms>") {
			p.vector()
			field(p, "<OderivCount>", (*parser).double)
		}
		for _, token := range []string{"<NumDimsSelfRepaired>", "<NumDimsProcessed>"} {
			optional(p, token, (*parser).double, 0)
		}
		for _, token := range []string{"<SelfRepairLowerThreshold>", "<SelfRepairUpperThreshold>", "<SelfRepairScale>"} {
			optional(p, token, (*parser).float, 0)
		}
	}
	return p.end()
}

// Write writes the component.
func (c *NoOp) Write(w *kaldiio.Writer) error {
	p := begin(w, c)
	p.int("<Dim>", c.dim)
	p.float("<BackpropScale>", c.backpropScale)
	return p.end(c)
}

// Propagate copies in to out.
func (c *NoOp) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	kernel.Copy(out, in)
	return nil, nil
}

// Backprop copies the derivative, scaled.
func (c *NoOp) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	kernel.CopyScaled(inDeriv, c.backpropScale, outDeriv)
	return nil
}

// Copy returns a copy.
func (c *NoOp) Copy() Component {
	d := *c
	return &d
}
