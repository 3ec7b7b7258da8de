package component

import (
	"github.com/nnopt/nnopt/kernel"
)

// perElementScaleComponent multiplies each column by a trainable factor.
type perElementScaleComponent struct {
	training
	scales []float32
}

// Type is "PerElementScaleComponent".
func (c *perElementScaleComponent) Type() string { return "PerElementScaleComponent" }

// InputDim is the number of columns.
func (c *perElementScaleComponent) InputDim() int { return len(c.scales) }

// OutputDim is the number of columns.
func (c *perElementScaleComponent) OutputDim() int { return len(c.scales) }

// Scale returns the factors. They are shared with the component.
func (c *perElementScaleComponent) Scale() []float32 { return c.scales }

// Properties of a scale per element.
func (c *perElementScaleComponent) Properties() Properties {
	return Simple | Updatable | BackpropNeedsInput | PropagateInPlace | BackpropInPlace
}

// Params returns the factors.
func (c *perElementScaleComponent) Params() []Param { return []Param{vectorParam("scales", c.scales)} }

// Init knows vector, a file; or dim, param-mean, param-stddev.
func (c *perElementScaleComponent) Init(cfg *ConfigLine) error { return c.init(cfg, "vector") }

func (c *perElementScaleComponent) init(cfg *ConfigLine, fileKey string) error {
	c.training.init(cfg)
	v, ok := cfg.vector(fileKey)
	switch {
	case ok && len(v) > 0 && cfg.Int("dim", len(v)) == len(v):
		c.scales = v
	case ok:
		cfg.Fail("the vector's length %d is not what dim says, or it is empty", len(v))
	default:
		c.scales = cfg.randnVector(cfg.dim("dim"), cfg.Float("param-mean", 1), cfg.Float("param-stddev", 0))
	}
	return cfg.Err()
}

// Fields of the component.
func (c *perElementScaleComponent) Fields(f *Fields) {
	c.scaleFields(f)
	f.oldGradient(&c.training)
}

func (c *perElementScaleComponent) scaleFields(f *Fields) {
	c.training.fields(f)
	f.Vector("<Params>", &c.scales)
	f.Check(len(c.scales) > 0, "there are no scales")
}

// Propagate computes y = x∘s.
func (c *perElementScaleComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	kernel.ScaleCols(out, in, c.scales)
	return nil, nil
}

// Backprop computes dx = dy∘s and ds += Σx∘dy.
func (c *perElementScaleComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil {
		return err
	}
	if u, ok := toUpdate.(*perElementScaleComponent); ok {
		kernel.AddColProducts(u.scales, u.learningRate, inValue, outDeriv)
	}
	if wanted(inDeriv) {
		kernel.ScaleCols(inDeriv, outDeriv, c.scales)
	}
	return nil
}

// naturalGradientPerElementScaleComponent is perElementScaleComponent, with settings for a training that preconditions its updates. Backprop
// computes the plain gradient.
type naturalGradientPerElementScaleComponent struct {
	perElementScaleComponent
	rank              int
	updatePeriod      int
	numSamplesHistory float32
	alpha             float32
}

// Type is "NaturalGradientPerElementScaleComponent".
func (c *naturalGradientPerElementScaleComponent) Type() string {
	return "NaturalGradientPerElementScaleComponent"
}

// Init knows scales or vector, a file; or dim, param-mean, param-stddev; and rank, update-period, num-samples-history,
// alpha.
func (c *naturalGradientPerElementScaleComponent) Init(cfg *ConfigLine) error {
	key := "vector"
	if cfg.Has("scales") {
		key = "scales"
	}
	c.rank = cfg.Int("rank", 8)
	c.updatePeriod = cfg.Int("update-period", 10)
	c.numSamplesHistory = cfg.Float("num-samples-history", 2000)
	c.alpha = cfg.Float("alpha", 4)
	return c.init(cfg, key)
}

// Fields of the component.
func (c *naturalGradientPerElementScaleComponent) Fields(f *Fields) {
	c.scaleFields(f)
	Since(f, f.Bool, "<IsGradient>", &c.gradient, c.gradient)
	f.Int("<Rank>", &c.rank)
	f.Int("<UpdatePeriod>", &c.updatePeriod)
	f.Float("<NumSamplesHistory>", &c.numSamplesHistory)
	f.Float("<Alpha>", &c.alpha)
	Skip(f, f.Float, "<MaxChangePerMinibatch>")
}

// Backprop computes dx = dy∘s and ds += Σx∘dy.
func (c *naturalGradientPerElementScaleComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if u, ok := toUpdate.(*naturalGradientPerElementScaleComponent); ok {
		toUpdate = &u.perElementScaleComponent
	} else if toUpdate != nil {
		return checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv)
	}
	return c.perElementScaleComponent.Backprop(w, pre, inValue, outValue, outDeriv, memo, toUpdate, inDeriv)
}
