package component

import "github.com/nnopt/nnopt/internal/kernel"

// scaling is a component that multiplies each column by a factor.
type scaling struct{ scales []float32 }

func (c *scaling) InputDim() int  { return len(c.scales) }
func (c *scaling) OutputDim() int { return len(c.scales) }

// Propagate computes y = x∘s.
func (c *scaling) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	w.Threads.ScaleCols(out, in, c.scales)
	return nil, nil
}

// Backprop computes dx = dy∘s.
func (c *scaling) Backprop(w *Workspace, pass BackwardPass) error {
	if wanted(pass.InDeriv) {
		w.Threads.ScaleCols(pass.InDeriv, pass.OutDeriv, c.scales)
	}
	return nil
}

// fields lists the factors.
func (c *scaling) fields(f *Fields, token string) {
	f.Vector(token, &c.scales)
	f.Check(len(c.scales) > 0, "there are no scales")
}

// offsetting is a component that adds an offset to each column. Columns a block apart share one.
type offsetting struct {
	columns
	offsets []float32 // of a block
}

// Propagate computes y = x + b.
func (c *offsetting) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	w.Threads.Copy(out, in)
	for b := 0; b < c.dim; b += len(c.offsets) {
		kernel.AddRow(kernel.Cols(out, b, len(c.offsets)), 1, c.offsets)
	}
	return nil, nil
}

// Backprop computes dx = dy.
func (c *offsetting) Backprop(w *Workspace, pass BackwardPass) error {
	if wanted(pass.InDeriv) {
		w.Threads.Copy(pass.InDeriv, pass.OutDeriv)
	}
	return nil
}

// fixedScaleComponent multiplies each column by a factor that is not trained.
type fixedScaleComponent struct{ scaling }

func (c *fixedScaleComponent) Type() string { return "FixedScaleComponent" }
func (c *fixedScaleComponent) Properties() Properties {
	return Simple | PropagateInPlace | BackpropInPlace
}
func (c *fixedScaleComponent) Fields(f *Fields) { c.fields(f, "<Scales>") }

// Init reads scales, a file; or dim, for random factors.
func (c *fixedScaleComponent) Init(cfg *ConfigLine) { c.scales = fixedVector(cfg, "scales") }

// fixedVector reads a vector from the file that a key names, or makes a random one of length dim.
func fixedVector(cfg *ConfigLine, key string) []float32 {
	v, ok := cfg.vector(key)
	switch {
	case !ok:
		v = cfg.randnVector(cfg.dim("dim"), 0, 1)
	case len(v) == 0 && cfg.Err() == nil:
		cfg.Fail("the vector is empty")
	}
	return v
}

// fixedBiasComponent adds to each column an offset that is not trained.
type fixedBiasComponent struct{ offsetting }

func (c *fixedBiasComponent) Type() string { return "FixedBiasComponent" }
func (c *fixedBiasComponent) Properties() Properties {
	return Simple | PropagateInPlace | BackpropInPlace
}

// Init reads bias, a file; or dim, for random offsets.
func (c *fixedBiasComponent) Init(cfg *ConfigLine) {
	c.offsets = fixedVector(cfg, "bias")
	c.dim = len(c.offsets)
}

func (c *fixedBiasComponent) Fields(f *Fields) {
	f.Vector("<Bias>", &c.offsets)
	f.Check(len(c.offsets) > 0, "there is no bias")
	if f.Reading() {
		c.dim = len(c.offsets)
	}
}

// perElementScaleComponent multiplies each column by a trainable factor.
type perElementScaleComponent struct {
	training
	scaling
}

func (c *perElementScaleComponent) Type() string                          { return "PerElementScaleComponent" }
func (c *perElementScaleComponent) Params() []Param                       { return []Param{vectorParam("scales", c.scales)} }
func (c *perElementScaleComponent) perElement() *perElementScaleComponent { return c }
func (c *perElementScaleComponent) Properties() Properties {
	return Simple | Updatable | BackpropNeedsInput | PropagateInPlace | BackpropInPlace
}

// Init reads vector, a file; or dim, param-mean and param-stddev.
func (c *perElementScaleComponent) Init(cfg *ConfigLine) { c.init(cfg, "vector") }

func (c *perElementScaleComponent) init(cfg *ConfigLine, fileKey string) {
	c.training.init(cfg)
	v, ok := cfg.vector(fileKey)
	switch {
	case ok && len(v) > 0 && cfg.Int("dim", len(v)) == len(v):
		c.scales = v
	case ok:
		cfg.Fail("dim is not the vector's length %d, or that is zero", len(v))
	default:
		c.scales = cfg.randnVector(cfg.dim("dim"), cfg.Float("param-mean", 1), cfg.Float("param-stddev", 0))
	}
}

func (c *perElementScaleComponent) Fields(f *Fields) {
	c.training.fields(f)
	c.scaling.fields(f, "<Params>")
	f.oldGradient(&c.training)
}

// Backprop computes dx = dy∘s and ds += Σx∘dy.
func (c *perElementScaleComponent) Backprop(w *Workspace, pass BackwardPass) error {
	if u, ok := pass.ToUpdate.(interface {
		perElement() *perElementScaleComponent
	}); ok {
		to := u.perElement()
		kernel.AddColProducts(to.scales, to.learningRate, pass.InValue, pass.OutDeriv)
	}
	return c.scaling.Backprop(w, pass)
}

// naturalGradientPerElementScaleComponent is perElementScaleComponent, with settings for a training
// that preconditions its updates. Backprop computes the plain gradient.
type naturalGradientPerElementScaleComponent struct {
	perElementScaleComponent
	rank              int
	updatePeriod      int
	numSamplesHistory float32
	alpha             float32
}

func (c *naturalGradientPerElementScaleComponent) Type() string {
	return "NaturalGradientPerElementScaleComponent"
}

// Init reads scales or vector, a file; or dim, param-mean and param-stddev; and rank,
// update-period, num-samples-history and alpha.
func (c *naturalGradientPerElementScaleComponent) Init(cfg *ConfigLine) {
	key := "vector"
	if cfg.Has("scales") {
		key = "scales"
	}
	c.rank = cfg.Int("rank", 8)
	c.updatePeriod = cfg.Int("update-period", 10)
	c.numSamplesHistory = cfg.Float("num-samples-history", 2000)
	c.alpha = cfg.Float("alpha", 4)
	c.init(cfg, key)
}

func (c *naturalGradientPerElementScaleComponent) Fields(f *Fields) {
	c.training.fields(f)
	c.scaling.fields(f, "<Params>")
	Since(f, f.Bool, "<IsGradient>", &c.gradient, c.gradient)
	f.Int("<Rank>", &c.rank)
	f.Int("<UpdatePeriod>", &c.updatePeriod)
	f.Float("<NumSamplesHistory>", &c.numSamplesHistory)
	f.Float("<Alpha>", &c.alpha)
	Skip(f, f.Float, "<MaxChangePerMinibatch>")
}

// perElementOffsetComponent adds a trainable offset to each column. Columns a block apart share
// one.
type perElementOffsetComponent struct {
	training
	offsetting
	useNaturalGradient bool
}

func (c *perElementOffsetComponent) Type() string { return "PerElementOffsetComponent" }
func (c *perElementOffsetComponent) Params() []Param {
	return []Param{vectorParam("offsets", c.offsets)}
}
func (c *perElementOffsetComponent) Properties() Properties {
	return (Simple | Updatable | PropagateInPlace | BackpropInPlace).with(OutputContiguous, len(c.offsets) != c.dim)
}

// Init reads vector, a file; or dim, block-dim, param-mean and param-stddev; and
// use-natural-gradient.
func (c *perElementOffsetComponent) Init(cfg *ConfigLine) {
	c.training.init(cfg)
	c.useNaturalGradient = cfg.Bool("use-natural-gradient", true)
	if v, ok := cfg.vector("vector"); ok {
		c.offsets = v
		c.dim = cfg.dimOr("dim", max(len(v), 1))
		cfg.check(c.problem())
		return
	}
	dim, block := cfg.dimAndBlock()
	c.dim = dim
	c.offsets = cfg.randnVector(block, cfg.Float("param-mean", 0), cfg.Float("param-stddev", 0))
}

func (c *perElementOffsetComponent) problem() string {
	return noMultiple("dimension", c.dim, "the number of offsets", len(c.offsets))
}

func (c *perElementOffsetComponent) Fields(f *Fields) {
	c.training.fields(f)
	f.Vector("<Offsets>", &c.offsets)
	f.oldGradient(&c.training)
	Since(f, f.Dim, "<Dim>", &c.dim, len(c.offsets))
	Since(f, f.Bool, "<UseNaturalGradient>", &c.useNaturalGradient, true)
	f.check(c.problem())
}

// Backprop computes dx = dy and db += Σdy.
func (c *perElementOffsetComponent) Backprop(w *Workspace, pass BackwardPass) error {
	if u, ok := pass.ToUpdate.(*perElementOffsetComponent); ok {
		for b := 0; b < c.dim; b += len(u.offsets) {
			w.Threads.AddColSums(u.offsets, u.learningRate, kernel.Cols(pass.OutDeriv, b, len(u.offsets)))
		}
	}
	return c.offsetting.Backprop(w, pass)
}
