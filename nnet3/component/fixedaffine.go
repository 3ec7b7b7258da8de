package component

import (
	"github.com/nnopt/nnopt/kernel"
)

// fixedAffineComponent is y = x·Wᵀ + b with parameters that are not trained, such as a transform of the features.
type fixedAffineComponent struct {
	affine
}

// Type is "FixedAffineComponent".
func (c *fixedAffineComponent) Type() string { return "FixedAffineComponent" }

// InputDim is the number of columns of W.
func (c *fixedAffineComponent) InputDim() int { return c.m.Cols }

// OutputDim is the number of rows of W.
func (c *fixedAffineComponent) OutputDim() int { return c.m.Rows }

// Properties of a fixed affine component.
func (c *fixedAffineComponent) Properties() Properties { return Simple | BackpropAdds }

// Init knows matrix, a file with the bias as last column; or input-dim and output-dim, for parameters at random.
func (c *fixedAffineComponent) Init(cfg *ConfigLine) error {
	if m, ok := cfg.matrix("matrix"); ok {
		c.affine = splitBias(cfg, m)
		return cfg.Err()
	}
	in, out := cfg.dim("input-dim"), cfg.dim("output-dim")
	c.affine = affine{weights: weights{m: cfg.randn(out, in, 0, 1)}, bias: cfg.randnVector(out, 0, 1)}
	return cfg.Err()
}

// Fields of the component.
func (c *fixedAffineComponent) Fields(f *Fields) {
	c.affine.fields(f, false)
}

// Propagate computes y = x·Wᵀ + b.
func (c *fixedAffineComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	c.propagate(in, out)
	return nil, nil
}

// Backprop computes dx += dy·W.
func (c *fixedAffineComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil {
		return err
	}
	if wanted(inDeriv) {
		w.mulBackward(&c.weights, outDeriv, inDeriv, true)
	}
	return nil
}
