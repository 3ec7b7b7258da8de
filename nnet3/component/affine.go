package component

import "github.com/nnopt/nnopt/internal/kernel"

// affine is a matrix W and a vector b, which may be missing.
type affine struct {
	weights
	bias []float32
}

// Bias returns b, or nil if there is none. The component shares it.
func (a *affine) Bias() []float32 {
	if len(a.bias) == 0 {
		return nil
	}
	return a.bias
}

func (a *affine) Prepare()                   { a.prepare() }
func (a *affine) Renew(t *kernel.Threads)    { a.renew(t) }
func (a *affine) Release() (spare []float32) { return a.release() }

// random draws parameters as param-stddev and bias-stddev say.
func (a *affine) random(cfg *ConfigLine, in, out int, biasMean, biasStddev float32) {
	a.weights = cfg.weights(out, in)
	a.bias = cfg.randnVector(out, biasMean, cfg.Float("bias-stddev", biasStddev))
}

// fromFile takes W and, from its last column, b out of a matrix read from a file. It checks them
// against input-dim and output-dim, if these are given.
func (a *affine) fromFile(cfg *ConfigLine, m kernel.Matrix) {
	if m.Rows == 0 || m.Cols < 2 {
		if cfg.Err() == nil {
			cfg.Fail("a matrix of %d×%d does not hold affine parameters", m.Rows, m.Cols)
		}
		*a = affine{weights: weights{m: kernel.New(1, 1)}, bias: make([]float32, 1)}
		return
	}
	if in := cfg.Int("input-dim", m.Cols-1); in != m.Cols-1 {
		cfg.Fail("input-dim=%d, but the matrix has %d columns (the last one is the bias)", in, m.Cols)
	}
	if out := cfg.Int("output-dim", m.Rows); out != m.Rows {
		cfg.Fail("output-dim=%d, but the matrix has %d rows", out, m.Rows)
	}
	*a = affine{weights: weights{m: kernel.Clone(kernel.Cols(m, 0, m.Cols-1))}, bias: make([]float32, m.Rows)}
	for i := range a.bias {
		a.bias[i] = kernel.Row(m, i)[m.Cols-1]
	}
}

// fields lists <LinearParams> and <BiasParams>. The bias may be empty if it is optional.
func (a *affine) fields(f *Fields, optionalBias bool) {
	f.weights("<LinearParams>", &a.weights)
	f.Vector("<BiasParams>", &a.bias)
	f.Check(a.m.Rows > 0 && a.m.Cols > 0, "there are no linear parameters")
	f.Check(len(a.bias) == a.m.Rows || optionalBias && len(a.bias) == 0, "%d biases for %d outputs", len(a.bias), a.m.Rows)
}

// Params returns W and b.
func (a *affine) Params() []Param {
	a.restore()
	if len(a.bias) == 0 {
		return []Param{{"linear-params", a.m}}
	}
	return []Param{{"linear-params", a.m}, vectorParam("bias", a.bias)}
}

// update adds rate times the gradient to the parameters.
func (a *affine) update(w *Workspace, rate float32, in, outDeriv kernel.Matrix) {
	a.restore()
	w.Threads.MulTN(rate, outDeriv, in, 1, a.m)
	if len(a.bias) != 0 {
		w.Threads.AddColSums(a.bias, rate, outDeriv)
	}
	a.changed()
}

// affineMap is a component that multiplies its whole input by W.
type affineMap struct{ affine }

func (c *affineMap) InputDim() int   { return c.m.Cols }
func (c *affineMap) OutputDim() int  { return c.m.Rows }
func (c *affineMap) factor() *affine { return &c.affine }

// Propagate computes y = x·Wᵀ + b, or y += x·Wᵀ without a bias.
func (c *affineMap) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	c.mul(in, kernel.Epilogue{Bias: c.Bias(), Accumulate: len(c.bias) == 0, Next: w.preparedForms(pass.Next), Threads: w.Threads}, out)
	return nil, nil
}

// Backprop computes dx += dy·W.
func (c *affineMap) Backprop(w *Workspace, pass BackwardPass) error {
	if wanted(pass.InDeriv) {
		w.mulBackward(&c.weights, pass.OutDeriv, pass.InDeriv, true)
	}
	return nil
}

// fixedAffineComponent is y = x·Wᵀ + b with parameters that are not trained, such as a transform of
// the features.
type fixedAffineComponent struct{ affineMap }

func (c *fixedAffineComponent) Type() string           { return "FixedAffineComponent" }
func (c *fixedAffineComponent) Properties() Properties { return Simple | BackpropAdds }
func (c *fixedAffineComponent) Fields(f *Fields)       { c.affine.fields(f, false) }

// Init reads matrix, a file with the bias as last column; or input-dim and output-dim, for random
// parameters.
func (c *fixedAffineComponent) Init(cfg *ConfigLine) {
	if m, ok := cfg.matrix("matrix"); ok {
		c.fromFile(cfg, m)
		return
	}
	in, out := cfg.dim("input-dim"), cfg.dim("output-dim")
	c.affine = affine{weights: weights{m: cfg.randn(out, in, 0, 1)}, bias: cfg.randnVector(out, 0, 1)}
}

// trainedMap is an affineMap with trainable parameters.
type trainedMap struct {
	training
	affineMap
	orthonormalConstraint float32
	ng                    naturalGradient
}

func (c *trainedMap) trained() *trainedMap { return c }

// Backprop computes dx += dy·W, and dW += dyᵀ·x, db += Σdy.
func (c *trainedMap) Backprop(w *Workspace, pass BackwardPass) error {
	if err := c.affineMap.Backprop(w, pass); err != nil {
		return err
	}
	if u, ok := pass.ToUpdate.(interface{ trained() *trainedMap }); ok {
		to := u.trained()
		to.update(w, to.learningRate, pass.InValue, pass.OutDeriv)
	}
	return nil
}

// affineComponent is y = x·Wᵀ + b.
type affineComponent struct{ trainedMap }

func (c *affineComponent) Type() string { return "AffineComponent" }
func (c *affineComponent) Properties() Properties {
	return Simple | Updatable | BackpropAdds | BackpropNeedsInput
}

// Init reads input-dim, output-dim, param-stddev and bias-stddev; or matrix, a file with the bias
// as last column.
func (c *affineComponent) Init(cfg *ConfigLine) { c.init(cfg, false) }

func (c *affineComponent) init(cfg *ConfigLine, withMean bool) {
	c.training.init(cfg)
	c.orthonormalConstraint = cfg.Float("orthonormal-constraint", 0)
	if m, ok := cfg.matrix("matrix"); ok {
		c.fromFile(cfg, m)
		return
	}
	mean := float32(0)
	if withMean {
		mean = cfg.Float("bias-mean", 0)
	}
	in, out := cfg.dim("input-dim"), cfg.dim("output-dim")
	c.random(cfg, in, out, mean, 1)
}

func (c *affineComponent) Fields(f *Fields) {
	c.training.fields(f)
	c.affine.fields(f, false)
	f.oldGradient(&c.training)
	Optional(f, f.Float, "<OrthonormalConstraint>", &c.orthonormalConstraint, 0)
}

// naturalGradientAffineComponent is affineComponent, with settings for a training that
// preconditions its updates. Backprop computes the plain gradient.
type naturalGradientAffineComponent struct{ affineComponent }

func (c *naturalGradientAffineComponent) Type() string { return "NaturalGradientAffineComponent" }

// Init reads the keys of affineComponent, and bias-mean, rank-in, rank-out, update-period,
// num-samples-history and alpha.
func (c *naturalGradientAffineComponent) Init(cfg *ConfigLine) {
	c.init(cfg, true)
	c.ng.init(cfg, c.InputDim(), c.OutputDim())
}

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
		// Some old files close with a copy of the opening token.
		f.Flag("<"+f.typ+">", &f.closed)
	}
}

// linearComponent is y += x·Wᵀ.
type linearComponent struct {
	trainedMap
	useNaturalGradient bool
}

func (c *linearComponent) Type() string { return "LinearComponent" }
func (c *linearComponent) Properties() Properties {
	return Simple | Updatable | PropagateAdds | BackpropAdds | BackpropNeedsInput
}
func (c *linearComponent) Params() []Param {
	c.restore()
	return []Param{{"params", c.m}}
}

// Init reads input-dim, output-dim and param-stddev, or matrix, a file; and use-natural-gradient,
// rank-in, rank-out, num-samples-history, update-period and alpha.
func (c *linearComponent) Init(cfg *ConfigLine) {
	c.training.init(cfg)
	c.orthonormalConstraint = cfg.Float("orthonormal-constraint", 0)
	if m, ok := cfg.matrix("matrix"); ok {
		c.m = m
		in, out := cfg.Int("input-dim", m.Cols), cfg.Int("output-dim", m.Rows)
		if in != m.Cols || out != m.Rows || m.Rows == 0 {
			cfg.Fail("the matrix is %d×%d, not %d×%d", m.Rows, m.Cols, out, in)
		}
		c.changed()
	} else {
		in, out := cfg.dim("input-dim"), cfg.dim("output-dim")
		c.weights = cfg.weights(out, in)
	}
	c.useNaturalGradient = cfg.Bool("use-natural-gradient", true)
	c.ng.init(cfg, c.m.Cols, c.m.Rows)
}

func (c *linearComponent) Fields(f *Fields) {
	c.training.fields(f)
	f.weights("<Params>", &c.weights)
	f.Check(c.m.Rows > 0 && c.m.Cols > 0, "there are no parameters")
	Optional(f, f.Float, "<OrthonormalConstraint>", &c.orthonormalConstraint, 0)
	f.Bool("<UseNaturalGradient>", &c.useNaturalGradient)
	c.ng.ranks(f)
	f.Float("<Alpha>", &c.ng.alphaIn)
	f.Float("<NumSamplesHistory>", &c.ng.numSamplesHistory)
	f.Int("<UpdatePeriod>", &c.ng.updatePeriod)
}
