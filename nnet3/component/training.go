package component

// training is what all updatable components have: how fast they learn.
type training struct {
	learningRate       float32
	learningRateFactor float32
	maxChange          float32
	l2Regularize       float32
	gradient           bool
}

// LearningRate returns what the gradient is multiplied by in an update.
func (t *training) LearningRate() float32 { return t.learningRate }

// SetLearningRate sets the learning rate, without regard to the factor.
func (t *training) SetLearningRate(rate float32) { t.learningRate = rate }

// IsGradient reports whether the parameters are a gradient rather than weights.
func (t *training) IsGradient() bool { return t.gradient }

func (t *training) setAsGradient() { t.learningRate, t.gradient = 1, true }

func (t *training) init(c *ConfigLine) {
	*t = training{
		learningRate:       c.Float("learning-rate", 0.001),
		learningRateFactor: c.Float("learning-rate-factor", 1),
		maxChange:          c.Float("max-change", 0),
		l2Regularize:       c.Float("l2-regularize", 0),
	}
	if min(t.learningRate, t.learningRateFactor, t.maxChange, t.l2Regularize) < 0 {
		c.Fail("learning-rate, learning-rate-factor, max-change and l2-regularize may not be negative")
	}
}

// fields lists what every updatable component begins with. Files of various ages leave some of it
// out.
func (t *training) fields(f *Fields) {
	Optional(f, f.Float, "<LearningRateFactor>", &t.learningRateFactor, 1)
	Optional(f, f.Bool, "<IsGradient>", &t.gradient, false)
	Optional(f, f.Float, "<MaxChange>", &t.maxChange, 0)
	Optional(f, f.Float, "<L2Regularize>", &t.l2Regularize, 0)
	Since(f, f.Float, "<LearningRate>", &t.learningRate, 0.001)
}

// oldGradient reads <IsGradient> at the end, where old files have it.
func (f *Fields) oldGradient(t *training) {
	if f.r != nil && f.Has("<IsGradient>") {
		f.Bool("<IsGradient>", &t.gradient)
	}
}

// naturalGradient holds the settings of an online natural gradient, which files keep and no one
// uses.
type naturalGradient struct {
	rankIn, rankOut   int
	updatePeriod      int
	numSamplesHistory float32
	alphaIn, alphaOut float32
}

// init reads the settings of a component with a matrix of out×in parameters.
func (n *naturalGradient) init(cfg *ConfigLine, in, out int) {
	*n = naturalGradient{
		rankIn:            cfg.Int("rank-in", min(20, (in+1)/2)),
		rankOut:           cfg.Int("rank-out", min(80, (out+1)/2)),
		updatePeriod:      cfg.Int("update-period", 4),
		numSamplesHistory: cfg.Float("num-samples-history", 2000),
		alphaIn:           cfg.Float("alpha", 4),
	}
}

func (n *naturalGradient) ranks(f *Fields) {
	f.Int("<RankInOut>", &n.rankIn)
	f.Int("", &n.rankOut)
}

func (n *naturalGradient) alphas(f *Fields) {
	f.Float("<AlphaInOut>", &n.alphaIn)
	f.Float("", &n.alphaOut)
}
