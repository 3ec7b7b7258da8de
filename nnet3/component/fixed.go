package component

import (
	"github.com/nnopt/nnopt/exec/kernel"
)

// FixedScale multiplies each column by a factor that is not trained.
type FixedScale struct{ scales []float32 }

// Type is "FixedScaleComponent".
func (c *FixedScale) Type() string { return "FixedScaleComponent" }

// InputDim is the number of columns.
func (c *FixedScale) InputDim() int { return len(c.scales) }

// OutputDim is the number of columns.
func (c *FixedScale) OutputDim() int { return len(c.scales) }

// Scale returns the factors. They are shared with the component.
func (c *FixedScale) Scale() []float32 { return c.scales }

// Properties of a fixed scale.
func (c *FixedScale) Properties() Properties { return Simple | PropagateInPlace | BackpropInPlace }

// Init knows scales, a file; or dim, for factors at random.
func (c *FixedScale) Init(cfg *ConfigLine) (err error) {
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
func (c *FixedScale) Fields(f *Fields) {
	f.Vector("<Scales>", &c.scales)
	f.Check(len(c.scales) > 0, "there are no scales")
}

// Propagate computes y = x∘s.
func (c *FixedScale) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	kernel.ScaleCols(out, in, c.scales)
	return nil, nil
}

// Backprop computes dx = dy∘s.
func (c *FixedScale) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	kernel.ScaleCols(inDeriv, outDeriv, c.scales)
	return nil
}

// FixedBias adds to each column an offset that is not trained.
type FixedBias struct{ bias []float32 }

// Type is "FixedBiasComponent".
func (c *FixedBias) Type() string { return "FixedBiasComponent" }

// InputDim is the number of columns.
func (c *FixedBias) InputDim() int { return len(c.bias) }

// OutputDim is the number of columns.
func (c *FixedBias) OutputDim() int { return len(c.bias) }

// Offset returns the offsets. They are shared with the component.
func (c *FixedBias) Offset() []float32 { return c.bias }

// Properties of a fixed bias.
func (c *FixedBias) Properties() Properties { return Simple | PropagateInPlace | BackpropInPlace }

// Init knows bias, a file; or dim, for offsets at random.
func (c *FixedBias) Init(cfg *ConfigLine) (err error) {
	c.bias, err = fixedVector(cfg, "bias")
	return err
}

// Fields of the component.
func (c *FixedBias) Fields(f *Fields) {
	f.Vector("<Bias>", &c.bias)
	f.Check(len(c.bias) > 0, "there is no bias")
}

// Propagate computes y = x + b.
func (c *FixedBias) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	kernel.Copy(out, in)
	kernel.AddRow(out, 1, c.bias)
	return nil, nil
}

// Backprop computes dx = dy.
func (c *FixedBias) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	kernel.Copy(inDeriv, outDeriv)
	return nil
}
