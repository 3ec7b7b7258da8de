package component

import (
	"slices"

	"github.com/nnopt/nnopt/exec/kernel"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
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

// Info describes the component.
func (c *FixedScale) Info() string { return describe(c, "") }

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

// Read reads what Write writes.
func (c *FixedScale) Read(r *kaldiio.Reader, typ string) error {
	p := newParser(r, typ)
	c.scales = field(p, "<Scales>", (*parser).vector)
	p.check(len(c.scales) > 0, "there are no scales")
	return p.end()
}

// Write writes the component.
func (c *FixedScale) Write(w *kaldiio.Writer) error {
	p := begin(w, c)
	p.vector("<Scales>", c.scales)
	return p.end(c)
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

// Copy returns a copy.
func (c *FixedScale) Copy() Component { return &FixedScale{slices.Clone(c.scales)} }

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

// Info describes the component.
func (c *FixedBias) Info() string { return describe(c, "") }

// Init knows bias, a file; or dim, for offsets at random.
func (c *FixedBias) Init(cfg *ConfigLine) (err error) {
	c.bias, err = fixedVector(cfg, "bias")
	return err
}

// Read reads what Write writes.
func (c *FixedBias) Read(r *kaldiio.Reader, typ string) error {
	p := newParser(r, typ)
	c.bias = field(p, "<Bias>", (*parser).vector)
	p.check(len(c.bias) > 0, "there is no bias")
	return p.end()
}

// Write writes the component.
func (c *FixedBias) Write(w *kaldiio.Writer) error {
	p := begin(w, c)
	p.vector("<Bias>", c.bias)
	return p.end(c)
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

// Copy returns a copy.
func (c *FixedBias) Copy() Component { return &FixedBias{slices.Clone(c.bias)} }
