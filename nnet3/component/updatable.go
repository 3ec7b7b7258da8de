package component

import (
	"fmt"

	"github.com/nnopt/nnopt/internal/kernel"
)

// UpdatableComponent is a component with the property Updatable.
type UpdatableComponent interface {
	Component
	// Params returns views of the parameters, in the order of files; a vector is a matrix of one
	// row. After writing to them, call Renew if the component is a Renewer.
	Params() []Param
	LearningRate() float32
	SetLearningRate(rate float32)
	// IsGradient reports whether the parameters are a gradient rather than weights.
	IsGradient() bool
}

// gradientHolder is what the updatable components of this package implement for NewGradient.
type gradientHolder interface {
	// setAsGradient makes IsGradient true and the learning rate 1.
	setAsGradient()
}

// Param is a parameter of a component.
type Param struct {
	Name   string
	Values kernel.Matrix
}

// vectorParam makes a Param of a vector.
func vectorParam(name string, v []float32) Param {
	return Param{name, kernel.Matrix{Rows: 1, Cols: len(v), Stride: len(v), Data: v}}
}

// NewGradient returns a copy of c that can accumulate the gradient of its parameters: the
// parameters and the statistics are zero, the learning rate is 1.
func NewGradient(c Component) Component {
	g := Copy(c)
	if z, ok := g.(StatsZeroer); ok {
		z.ZeroStats()
	}
	if u, ok := g.(UpdatableComponent); ok {
		ScaleParams(u, 0)
		u.SetLearningRate(1)
	}
	if h, ok := g.(gradientHolder); ok {
		h.setAsGradient()
	}
	return g
}

// NumParameters returns the number of trainable parameters of u.
func NumParameters(u UpdatableComponent) int {
	n := 0
	for _, p := range u.Params() {
		n += p.Values.Rows * p.Values.Cols
	}
	return n
}

// ScaleParams multiplies the parameters of u by alpha.
func ScaleParams(u UpdatableComponent, alpha float32) {
	for _, p := range u.Params() {
		kernel.Scale(p.Values, alpha)
	}
	prepareAgain(u)
}

// Vectorize appends the parameters of u to dst, row by row in the order of Params.
func Vectorize(u UpdatableComponent, dst []float32) []float32 {
	for _, p := range u.Params() {
		for i := range p.Values.Rows {
			dst = append(dst, kernel.Row(p.Values, i)...)
		}
	}
	return dst
}

// UnVectorize is the inverse of Vectorize: it sets the parameters of u and returns the rest of src.
// If src is too short, it fails without changing anything.
func UnVectorize(u UpdatableComponent, src []float32) ([]float32, error) {
	if n := NumParameters(u); len(src) < n {
		return src, fmt.Errorf("%s: %d values for %d parameters: %w", u.Type(), len(src), n, ErrShape)
	}
	for _, p := range u.Params() {
		for i := range p.Values.Rows {
			src = src[copy(kernel.Row(p.Values, i), src):]
		}
	}
	prepareAgain(u)
	return src, nil
}

func prepareAgain(u UpdatableComponent) {
	if p, ok := u.(Renewer); ok {
		p.Renew(nil)
	}
}

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
