package component

import (
	"github.com/nnopt/nnopt/kernel"
)

// repeatedAffineComponent applies one affine transform to each of NumRepeats blocks of its input.
type repeatedAffineComponent struct {
	training
	affine
	numRepeats int
}

// Type is "RepeatedAffineComponent".
func (c *repeatedAffineComponent) Type() string { return "RepeatedAffineComponent" }

// InputDim is the number of columns of all blocks.
func (c *repeatedAffineComponent) InputDim() int { return c.m.Cols * c.numRepeats }

// OutputDim is the number of columns of all blocks.
func (c *repeatedAffineComponent) OutputDim() int { return c.m.Rows * c.numRepeats }

// Properties of a repeated affine component.
func (c *repeatedAffineComponent) Properties() Properties {
	return Simple | Updatable | BackpropNeedsInput | BackpropAdds | InputContiguous | OutputContiguous
}

// Params returns W and b.
func (c *repeatedAffineComponent) Params() []Param { return c.params() }

// Init knows input-dim, output-dim, num-repeats, param-stddev, bias-mean, bias-stddev.
func (c *repeatedAffineComponent) Init(cfg *ConfigLine) error {
	c.training.init(cfg)
	var in, out int
	in, out, c.numRepeats = cfg.blocks("num-repeats")
	c.affine.random(cfg, in, out, 0)
	return cfg.Err()
}

// Fields of the component.
func (c *repeatedAffineComponent) Fields(f *Fields) {
	c.training.fields(f)
	f.Dim("<NumRepeats>", &c.numRepeats)
	c.affine.fields(f, false)
	f.oldGradient(&c.training)
	f.Check(max(c.m.Cols, c.m.Rows) <= maxDim/max(c.numRepeats, 1), "%d repeats of %d×%d are too many", c.numRepeats, c.m.Rows, c.m.Cols)
}

// eachBlock calls f with the corresponding blocks of two or three matrices (the third may be empty): all at once where
// none of them has gaps between its rows.
func (c *repeatedAffineComponent) eachBlock(x, y, z kernel.Matrix, f func(x, y, z kernel.Matrix)) {
	rx, okx := kernel.Reshape(x, x.Cols/c.numRepeats)
	ry, oky := kernel.Reshape(y, y.Cols/c.numRepeats)
	rz, okz := z, true
	if wanted(z) {
		rz, okz = kernel.Reshape(z, z.Cols/c.numRepeats)
	}
	if okx && oky && okz {
		f(rx, ry, rz)
		return
	}
	for b := range c.numRepeats {
		zb := z
		if wanted(z) {
			zb = block(z, b, c.numRepeats)
		}
		f(block(x, b, c.numRepeats), block(y, b, c.numRepeats), zb)
	}
}

// block returns block b of the n equal blocks of columns of m.
func block(m kernel.Matrix, b, n int) kernel.Matrix {
	cols := m.Cols / n
	return kernel.Cols(m, b*cols, cols)
}

// Propagate computes y = x·Wᵀ + b block by block.
func (c *repeatedAffineComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	c.eachBlock(in, out, kernel.Matrix{}, func(x, y, _ kernel.Matrix) { c.propagate(x, y) })
	return nil, nil
}

// Backprop computes dx += dy·W, and dW += dyᵀ·x, db += Σdy, block by block.
func (c *repeatedAffineComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil {
		return err
	}
	u, update := toUpdate.(*repeatedAffineComponent)
	c.eachBlock(inValue, outDeriv, inDeriv, func(x, dy, dx kernel.Matrix) {
		if wanted(dx) {
			kernel.MulNN(1, dy, c.m, 1, dx)
		}
		if update {
			u.update(u.learningRate, x, dy)
		}
	})
	return nil
}

// naturalGradientRepeatedAffineComponent is repeatedAffineComponent, for a training that preconditions its updates. Backprop computes the
// plain gradient.
type naturalGradientRepeatedAffineComponent struct{ repeatedAffineComponent }

// Type is "NaturalGradientRepeatedAffineComponent".
func (c *naturalGradientRepeatedAffineComponent) Type() string {
	return "NaturalGradientRepeatedAffineComponent"
}

// Backprop computes dx += dy·W, and dW += dyᵀ·x, db += Σdy, block by block.
func (c *naturalGradientRepeatedAffineComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if u, ok := toUpdate.(*naturalGradientRepeatedAffineComponent); ok {
		toUpdate = &u.repeatedAffineComponent
	} else if toUpdate != nil {
		return checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv)
	}
	return c.repeatedAffineComponent.Backprop(w, pre, inValue, outValue, outDeriv, memo, toUpdate, inDeriv)
}
