package component

import (
	"math"

	"github.com/nnopt/nnopt/exec/kernel"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// Affine is y = x·Wᵀ + b.
type Affine struct {
	training
	affine
	orthonormalConstraint float32
}

// Type is "AffineComponent".
func (c *Affine) Type() string { return "AffineComponent" }

// InputDim is the number of columns of W.
func (c *Affine) InputDim() int { return c.m.Cols }

// OutputDim is the number of rows of W.
func (c *Affine) OutputDim() int { return c.m.Rows }

// Properties of an affine component.
func (c *Affine) Properties() Properties {
	return Simple | Updatable | BackpropAdds | BackpropNeedsInput
}

// Params returns W and b.
func (c *Affine) Params() []Param { return c.params() }

// Info describes the component.
func (c *Affine) Info() string {
	return c.describe(c, "orthonormal-constraint=%g", c.orthonormalConstraint)
}

// Init knows input-dim, output-dim, param-stddev, bias-stddev, or matrix, a file with the bias as last column.
func (c *Affine) Init(cfg *ConfigLine) error {
	c.init(cfg, false)
	return cfg.Err()
}

func (c *Affine) init(cfg *ConfigLine, withMean bool) {
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

// Read reads what Write writes.
func (c *Affine) Read(r *kaldiio.Reader, typ string) error {
	p := newParser(r, typ)
	c.training.read(p)
	c.affine.read(p, false)
	p.optionalGradient(&c.training)
	c.orthonormalConstraint = optional(p, "<OrthonormalConstraint>", (*parser).float, 0)
	return p.end()
}

// optionalGradient reads <IsGradient> where old files have it, at the end.
func (p *parser) optionalGradient(t *training) {
	t.gradient = optional(p, "<IsGradient>", (*parser).bool, t.gradient)
}

// Write writes the component.
func (c *Affine) Write(w *kaldiio.Writer) error {
	p := c.training.begin(w, c)
	c.affine.write(p)
	if c.orthonormalConstraint != 0 {
		p.float("<OrthonormalConstraint>", c.orthonormalConstraint)
	}
	return p.end(c)
}

// Propagate computes y = x·Wᵀ + b.
func (c *Affine) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	c.propagate(in, out)
	return nil, nil
}

// Backprop computes dx += dy·W, and dW += dyᵀ·x, db += Σdy.
func (c *Affine) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil {
		return err
	}
	if wanted(inDeriv) {
		w.mulBackward(&c.weights, outDeriv, inDeriv, true)
	}
	if u, ok := toUpdate.(*Affine); ok {
		u.update(u.learningRate, inValue, outDeriv)
	}
	return nil
}

// Copy returns a copy.
func (c *Affine) Copy() Component {
	d := *c
	d.affine = c.copyAffine()
	return &d
}

// NaturalGradientAffine is Affine, with settings for a training that preconditions its updates. Backprop computes the
// plain gradient.
type NaturalGradientAffine struct {
	Affine
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
func (c *NaturalGradientAffine) Type() string { return "NaturalGradientAffineComponent" }

// Init knows the keys of Affine, and bias-mean, rank-in, rank-out, update-period, num-samples-history, alpha.
func (c *NaturalGradientAffine) Init(cfg *ConfigLine) error {
	c.init(cfg, true)
	c.ng.init(cfg, c.InputDim(), c.OutputDim())
	return cfg.Err()
}

// Read reads what Write writes, and older forms.
func (c *NaturalGradientAffine) Read(r *kaldiio.Reader, typ string) error {
	p := newParser(r, typ)
	c.training.read(p)
	c.affine.read(p, false)
	c.ng.rankIn = field(p, "<RankIn>", (*parser).int)
	c.ng.rankOut = field(p, "<RankOut>", (*parser).int)
	c.orthonormalConstraint = optional(p, "<OrthonormalConstraint>", (*parser).float, 0)
	c.ng.updatePeriod = field(p, "<UpdatePeriod>", (*parser).int)
	c.ng.numSamplesHistory = field(p, "<NumSamplesHistory>", (*parser).float)
	c.ng.alphaIn = field(p, "<Alpha>", (*parser).float)
	c.ng.alphaOut = c.ng.alphaIn
	optional(p, "<MaxChangePerSample>", (*parser).float, 0)
	p.optionalGradient(&c.training)
	if p.maybe("<UpdateCount>") {
		p.double()
		field(p, "<ActiveScalingCount>", (*parser).double)
		field(p, "<MaxChangeScaleStats>", (*parser).double)
	}
	// Some old files close with a copy of the opening token.
	if p.maybe("<" + typ + ">") {
		return nil
	}
	return p.end()
}

// Write writes the component.
func (c *NaturalGradientAffine) Write(w *kaldiio.Writer) error {
	p := c.training.begin(w, c)
	c.affine.write(p)
	p.int("<RankIn>", c.ng.rankIn)
	p.int("<RankOut>", c.ng.rankOut)
	if c.orthonormalConstraint != 0 {
		p.float("<OrthonormalConstraint>", c.orthonormalConstraint)
	}
	p.int("<UpdatePeriod>", c.ng.updatePeriod)
	p.float("<NumSamplesHistory>", c.ng.numSamplesHistory)
	p.float("<Alpha>", c.ng.alphaIn)
	return p.end(c)
}

// Info describes the component.
func (c *NaturalGradientAffine) Info() string {
	return c.describe(c, "orthonormal-constraint=%g, rank-in=%d, rank-out=%d, update-period=%d, num-samples-history=%g, alpha=%g",
		c.orthonormalConstraint, c.ng.rankIn, c.ng.rankOut, c.ng.updatePeriod, c.ng.numSamplesHistory, c.ng.alphaIn)
}

// Propagate computes y = x·Wᵀ + b.
func (c *NaturalGradientAffine) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	c.propagate(in, out)
	return nil, nil
}

// Backprop computes dx += dy·W, and dW += dyᵀ·x, db += Σdy.
func (c *NaturalGradientAffine) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	var to Component
	if u, ok := toUpdate.(*NaturalGradientAffine); ok {
		to = &u.Affine
	} else if toUpdate != nil {
		return checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv)
	}
	return c.Affine.Backprop(w, pre, inValue, outValue, outDeriv, memo, to, inDeriv)
}

// Copy returns a copy.
func (c *NaturalGradientAffine) Copy() Component {
	d := *c
	d.affine = c.copyAffine()
	return &d
}
