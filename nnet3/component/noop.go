package component

import (
	"github.com/nnopt/nnopt/kernel"
)

// NoOp copies its input.
type NoOp struct {
	columns
	backpropScale float32
}

// Type is "NoOpComponent".
func (c *NoOp) Type() string { return "NoOpComponent" }

// BackpropScale is what derivatives are multiplied by on their way back.
func (c *NoOp) BackpropScale() float32 { return c.backpropScale }

// Properties of doing nothing.
func (c *NoOp) Properties() Properties { return Simple | PropagateInPlace | BackpropInPlace }

// IsIdentity is true.
func (c *NoOp) IsIdentity() bool { return true }

// IsIdentityBackward reports whether derivatives are not scaled.
func (c *NoOp) IsIdentityBackward() bool { return c.backpropScale == 1 }

// Init knows dim and backprop-scale.
func (c *NoOp) Init(cfg *ConfigLine) error {
	c.dim = cfg.dim("dim")
	c.backpropScale = cfg.Float("backprop-scale", 1)
	return cfg.Err()
}

// Fields of the component.
func (c *NoOp) Fields(f *Fields) {
	f.Dim("<Dim>", &c.dim)
	Since(f, f.Float, "<BackpropScale>", &c.backpropScale, 1)
	// Old files have the form of a nonlinearity.
	Skip(f, f.Vector, "<ValueAvg>")
	Skip(f, f.Vector, "<DerivAvg>")
	Skip(f, f.Double, "<Count>")
	Skip(f, f.Vector, "<OderivRms>")
	Skip(f, f.Double, "<OderivCount>")
	Skip(f, f.Double, "<NumDimsSelfRepaired>")
	Skip(f, f.Double, "<NumDimsProcessed>")
	Skip(f, f.Float, "<SelfRepairLowerThreshold>")
	Skip(f, f.Float, "<SelfRepairUpperThreshold>")
	Skip(f, f.Float, "<SelfRepairScale>")
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
