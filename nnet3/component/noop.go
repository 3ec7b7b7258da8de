package component

import (
	"github.com/nnopt/nnopt/internal/kernel"
)

// noOpComponent copies its input. On the way back it multiplies the derivative by backpropScale.
type noOpComponent struct {
	columns
	backpropScale float32
}

func (c *noOpComponent) Type() string             { return "NoOpComponent" }
func (c *noOpComponent) Properties() Properties   { return Simple | PropagateInPlace | BackpropInPlace }
func (c *noOpComponent) IsIdentity() bool         { return true }
func (c *noOpComponent) IsIdentityBackward() bool { return c.backpropScale == 1 }

// Init reads dim and backprop-scale.
func (c *noOpComponent) Init(cfg *ConfigLine) {
	c.dim = cfg.dim("dim")
	c.backpropScale = cfg.Float("backprop-scale", 1)
}

func (c *noOpComponent) Fields(f *Fields) {
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
func (c *noOpComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	w.Threads.Copy(out, in)
	return nil, nil
}

// Backprop copies the derivative, scaled.
func (c *noOpComponent) Backprop(w *Workspace, pass BackwardPass) error {
	w.Threads.CopyScaled(pass.InDeriv, c.backpropScale, pass.OutDeriv)
	return nil
}
