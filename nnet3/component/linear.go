package component

import (
	"math"

	"github.com/nnopt/nnopt/kernel"
)

// linearComponent is y += x·Wᵀ.
type linearComponent struct {
	training
	affine
	orthonormalConstraint float32
	useNaturalGradient    bool
	ng                    naturalGradient
}

// Type is "LinearComponent".
func (c *linearComponent) Type() string { return "LinearComponent" }

// InputDim is the number of columns of W.
func (c *linearComponent) InputDim() int { return c.m.Cols }

// OutputDim is the number of rows of W.
func (c *linearComponent) OutputDim() int { return c.m.Rows }

// Properties of a linear component.
func (c *linearComponent) Properties() Properties {
	return Simple | Updatable | PropagateAdds | BackpropAdds | BackpropNeedsInput
}

// Params returns W.
func (c *linearComponent) Params() []Param { return []Param{{"params", c.m}} }

// Init knows input-dim, output-dim, param-stddev, or matrix, a file; and use-natural-gradient, rank-in, rank-out,
// num-samples-history, update-period, alpha.
func (c *linearComponent) Init(cfg *ConfigLine) error {
	c.training.init(cfg)
	c.orthonormalConstraint = cfg.Float("orthonormal-constraint", 0)
	if m, ok := cfg.matrix("matrix"); ok {
		c.m = m
		in, out := cfg.Int("input-dim", m.Cols), cfg.Int("output-dim", m.Rows)
		if in != m.Cols || out != m.Rows || m.Rows == 0 {
			cfg.Fail("the matrix is %d×%d, not %d×%d", m.Rows, m.Cols, out, in)
		}
	} else {
		in, out := cfg.dim("input-dim"), cfg.dim("output-dim")
		c.m = cfg.randn(out, in, 0, cfg.Float("param-stddev", 1/float32(math.Sqrt(float64(in)))))
	}
	c.changed()
	c.useNaturalGradient = cfg.Bool("use-natural-gradient", true)
	c.ng.init(cfg, c.m.Cols, c.m.Rows)
	return cfg.Err()
}

// Fields of the component.
func (c *linearComponent) Fields(f *Fields) {
	c.training.fields(f)
	f.weights("<Params>", &c.weights)
	f.Check(c.m.Rows > 0 && c.m.Cols > 0, "there are no parameters")
	Optional(f, f.Float, "<OrthonormalConstraint>", &c.orthonormalConstraint, 0)
	f.Bool("<UseNaturalGradient>", &c.useNaturalGradient)
	f.Int("<RankInOut>", &c.ng.rankIn)
	f.Int("", &c.ng.rankOut)
	f.Float("<Alpha>", &c.ng.alphaIn)
	f.Float("<NumSamplesHistory>", &c.ng.numSamplesHistory)
	f.Int("<UpdatePeriod>", &c.ng.updatePeriod)
	if f.Reading() {
		c.ng.alphaOut = c.ng.alphaIn
	}
}

// Propagate computes y += x·Wᵀ.
func (c *linearComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	c.mul(in, kernel.Epilogue{Accumulate: true}, out)
	return nil, nil
}

// Backprop computes dx += dy·W and dW += dyᵀ·x.
func (c *linearComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil {
		return err
	}
	if wanted(inDeriv) {
		w.mulBackward(&c.weights, outDeriv, inDeriv, true)
	}
	if u, ok := toUpdate.(*linearComponent); ok {
		u.update(u.learningRate, inValue, outDeriv)
	}
	return nil
}
