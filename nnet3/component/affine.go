package component

import (
	"math"

	"github.com/nnopt/nnopt/kernel"
)

// affineComponent is y = x·Wᵀ + b.
type affineComponent struct {
	training
	affine
	orthonormalConstraint float32
}

// Type is "AffineComponent".
func (c *affineComponent) Type() string { return "AffineComponent" }

// InputDim is the number of columns of W.
func (c *affineComponent) InputDim() int { return c.m.Cols }

// OutputDim is the number of rows of W.
func (c *affineComponent) OutputDim() int { return c.m.Rows }

// Properties of an affine component.
func (c *affineComponent) Properties() Properties {
	return Simple | Updatable | BackpropAdds | BackpropNeedsInput
}

// Params returns W and b.
func (c *affineComponent) Params() []Param { return c.params() }

// Init knows input-dim, output-dim, param-stddev, bias-stddev, or matrix, a file with the bias as last column.
func (c *affineComponent) Init(cfg *ConfigLine) error {
	c.init(cfg, false)
	return cfg.Err()
}

func (c *affineComponent) init(cfg *ConfigLine, withMean bool) {
	c.training.init(cfg)
	c.orthonormalConstraint = cfg.Float("orthonormal-constraint", 0)
	if m, ok := cfg.matrix("matrix"); ok {
		c.affine = splitBias(cfg, m)
		return
	}
	in, out := cfg.dim("input-dim"), cfg.dim("output-dim")
	c.m = cfg.randn(out, in, 0, cfg.Float("param-stddev", 1/float32(math.Sqrt(float64(in)))))
	mean := float32(0)
	if withMean {
		mean = cfg.Float("bias-mean", 0)
	}
	c.bias = cfg.randnVector(out, mean, cfg.Float("bias-stddev", 1))
	c.changed()
}

// splitBias takes the last column of m as bias, and checks the rest against input-dim and output-dim if they are given.
func splitBias(cfg *ConfigLine, m kernel.Matrix) affine {
	if m.Rows == 0 || m.Cols < 2 {
		if cfg.Err() == nil {
			cfg.Fail("a matrix of %d×%d does not hold affine parameters", m.Rows, m.Cols)
		}
		return affine{weights: weights{m: kernel.New(1, 1)}, bias: make([]float32, 1)}
	}
	if in := cfg.Int("input-dim", m.Cols-1); in != m.Cols-1 {
		cfg.Fail("input-dim=%d, but the matrix has %d columns (the last one is the bias)", in, m.Cols)
	}
	if out := cfg.Int("output-dim", m.Rows); out != m.Rows {
		cfg.Fail("output-dim=%d, but the matrix has %d rows", out, m.Rows)
	}
	a := affine{weights: weights{m: kernel.Clone(kernel.Cols(m, 0, m.Cols-1))}, bias: make([]float32, m.Rows)}
	for i := range a.bias {
		a.bias[i] = kernel.Row(m, i)[m.Cols-1]
	}
	return a
}

// Fields of the component.
func (c *affineComponent) Fields(f *Fields) {
	c.training.fields(f)
	c.affine.fields(f, false)
	f.oldGradient(&c.training)
	Optional(f, f.Float, "<OrthonormalConstraint>", &c.orthonormalConstraint, 0)
}

// oldGradient reads <IsGradient> where old files have it, at the end.
func (f *Fields) oldGradient(t *training) {
	if f.r != nil && f.Has("<IsGradient>") {
		f.Bool("<IsGradient>", &t.gradient)
	}
}

// Propagate computes y = x·Wᵀ + b.
func (c *affineComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	c.propagate(in, out)
	return nil, nil
}

// Backprop computes dx += dy·W, and dW += dyᵀ·x, db += Σdy.
func (c *affineComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil {
		return err
	}
	if wanted(inDeriv) {
		w.mulBackward(&c.weights, outDeriv, inDeriv, true)
	}
	if u, ok := toUpdate.(*affineComponent); ok {
		u.update(u.learningRate, inValue, outDeriv)
	}
	return nil
}

// naturalGradientAffineComponent is affineComponent, with settings for a training that preconditions its updates. Backprop computes the
// plain gradient.
type naturalGradientAffineComponent struct {
	affineComponent
	ng naturalGradient
}

// naturalGradient holds the settings of an online natural gradient, which are kept but not used.
type naturalGradient struct {
	rankIn, rankOut   int
	updatePeriod      int
	numSamplesHistory float32
	alphaIn, alphaOut float32
}

// init reads the settings common to the components with a matrix of out×in parameters.
func (n *naturalGradient) init(cfg *ConfigLine, in, out int) {
	*n = naturalGradient{
		rankIn:            cfg.Int("rank-in", min(20, (in+1)/2)),
		rankOut:           cfg.Int("rank-out", min(80, (out+1)/2)),
		updatePeriod:      cfg.Int("update-period", 4),
		numSamplesHistory: cfg.Float("num-samples-history", 2000),
		alphaIn:           cfg.Float("alpha", 4),
	}
	n.alphaOut = n.alphaIn
}

// Type is "NaturalGradientAffineComponent".
func (c *naturalGradientAffineComponent) Type() string { return "NaturalGradientAffineComponent" }

// Init knows the keys of Affine, and bias-mean, rank-in, rank-out, update-period, num-samples-history, alpha.
func (c *naturalGradientAffineComponent) Init(cfg *ConfigLine) error {
	c.init(cfg, true)
	c.ng.init(cfg, c.InputDim(), c.OutputDim())
	return cfg.Err()
}

// Fields of the component.
func (c *naturalGradientAffineComponent) Fields(f *Fields) {
	c.training.fields(f)
	c.affine.fields(f, false)
	f.Int("<RankIn>", &c.ng.rankIn)
	f.Int("<RankOut>", &c.ng.rankOut)
	Optional(f, f.Float, "<OrthonormalConstraint>", &c.orthonormalConstraint, 0)
	f.Int("<UpdatePeriod>", &c.ng.updatePeriod)
	f.Float("<NumSamplesHistory>", &c.ng.numSamplesHistory)
	f.Float("<Alpha>", &c.ng.alphaIn)
	Skip(f, f.Float, "<MaxChangePerSample>")
	f.oldGradient(&c.training)
	Skip(f, f.Double, "<UpdateCount>")
	Skip(f, f.Double, "<ActiveScalingCount>")
	Skip(f, f.Double, "<MaxChangeScaleStats>")
	if f.Reading() {
		c.ng.alphaOut = c.ng.alphaIn
		// Some old files close with a copy of the opening token.
		f.Flag("<"+f.typ+">", &f.closed)
	}
}

// Propagate computes y = x·Wᵀ + b.
func (c *naturalGradientAffineComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	c.propagate(in, out)
	return nil, nil
}

// Backprop computes dx += dy·W, and dW += dyᵀ·x, db += Σdy.
func (c *naturalGradientAffineComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	var to Component
	if u, ok := toUpdate.(*naturalGradientAffineComponent); ok {
		to = &u.affineComponent
	} else if toUpdate != nil {
		return checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv)
	}
	return c.affineComponent.Backprop(w, pre, inValue, outValue, outDeriv, memo, to, inDeriv)
}
