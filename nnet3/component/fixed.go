package component

import (
	"github.com/nnopt/nnopt/kernel"
)

// fixedScaleComponent multiplies each column by a factor that is not trained.
type fixedScaleComponent struct{ scales []float32 }

// Type is "FixedScaleComponent".
func (c *fixedScaleComponent) Type() string { return "FixedScaleComponent" }

// InputDim is the number of columns.
func (c *fixedScaleComponent) InputDim() int { return len(c.scales) }

// OutputDim is the number of columns.
func (c *fixedScaleComponent) OutputDim() int { return len(c.scales) }

// Scale returns the factors. They are shared with the component.
func (c *fixedScaleComponent) Scale() []float32 { return c.scales }

// Properties of a fixed scale.
func (c *fixedScaleComponent) Properties() Properties {
	return Simple | PropagateInPlace | BackpropInPlace
}

// Init knows scales, a file; or dim, for factors at random.
func (c *fixedScaleComponent) Init(cfg *ConfigLine) (err error) {
	c.scales, err = fixedVector(cfg, "scales")
	return err
}

// fixedVector reads a vector from the file named by a key's value, or makes one of length dim at random.
func fixedVector(cfg *ConfigLine, key string) ([]float32, error) {
	v, ok := cfg.vector(key)
	switch {
	case !ok:
		v = cfg.randnVector(cfg.dim("dim"), 0, 1)
	case len(v) == 0 && cfg.Err() == nil:
		cfg.Fail("the vector is empty")
	}
	return v, cfg.Err()
}

// Fields of the component.
func (c *fixedScaleComponent) Fields(f *Fields) {
	f.Vector("<Scales>", &c.scales)
	f.Check(len(c.scales) > 0, "there are no scales")
}

// Propagate computes y = x∘s.
func (c *fixedScaleComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	kernel.ScaleCols(out, in, c.scales)
	return nil, nil
}

// Backprop computes dx = dy∘s.
func (c *fixedScaleComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	kernel.ScaleCols(inDeriv, outDeriv, c.scales)
	return nil
}

// fixedBiasComponent adds to each column an offset that is not trained.
type fixedBiasComponent struct{ bias []float32 }

// Type is "FixedBiasComponent".
func (c *fixedBiasComponent) Type() string { return "FixedBiasComponent" }

// InputDim is the number of columns.
func (c *fixedBiasComponent) InputDim() int { return len(c.bias) }

// OutputDim is the number of columns.
func (c *fixedBiasComponent) OutputDim() int { return len(c.bias) }

// Offset returns the offsets. They are shared with the component.
func (c *fixedBiasComponent) Offset() []float32 { return c.bias }

// Properties of a fixed bias.
func (c *fixedBiasComponent) Properties() Properties {
	return Simple | PropagateInPlace | BackpropInPlace
}

// Init knows bias, a file; or dim, for offsets at random.
func (c *fixedBiasComponent) Init(cfg *ConfigLine) (err error) {
	c.bias, err = fixedVector(cfg, "bias")
	return err
}

// Fields of the component.
func (c *fixedBiasComponent) Fields(f *Fields) {
	f.Vector("<Bias>", &c.bias)
	f.Check(len(c.bias) > 0, "there is no bias")
}

// Propagate computes y = x + b.
func (c *fixedBiasComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	kernel.Copy(out, in)
	kernel.AddRow(out, 1, c.bias)
	return nil, nil
}

// Backprop computes dx = dy.
func (c *fixedBiasComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	kernel.Copy(inDeriv, outDeriv)
	return nil
}
