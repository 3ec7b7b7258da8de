package component

import (
	"slices"

	"github.com/nnopt/nnopt/internal/kernel"
)

// leastScale is the least absolute value of a scale of ScaleAndOffset. Backprop divides by the
// scale to get the input from the output.
const leastScale = 1e-4

// scaleAndOffsetComponent multiplies each column by a trainable factor and adds a trainable offset.
// Columns a block apart share them.
type scaleAndOffsetComponent struct {
	training
	columns
	scales, offsets    []float32 // of a block
	useNaturalGradient bool
	rank               int
}

func (c *scaleAndOffsetComponent) Type() string { return "ScaleAndOffsetComponent" }
func (c *scaleAndOffsetComponent) Properties() Properties {
	return (Simple | Updatable | PropagateInPlace | BackpropInPlace | BackpropNeedsOutput).
		with(InputContiguous|OutputContiguous, len(c.scales) != c.dim)
}

func (c *scaleAndOffsetComponent) Params() []Param {
	return []Param{vectorParam("scales", c.scales), vectorParam("offsets", c.offsets)}
}

// Init reads dim, block-dim, use-natural-gradient and rank. The scales begin as 1, the offsets as
// 0.
func (c *scaleAndOffsetComponent) Init(cfg *ConfigLine) {
	c.training.init(cfg)
	dim, block := cfg.dimAndBlock()
	c.dim = dim
	if !cfg.makeRoom(2, block) {
		return
	}
	c.scales, c.offsets = slices.Repeat([]float32{1}, block), make([]float32, block)
	c.useNaturalGradient = cfg.Bool("use-natural-gradient", true)
	c.rank = cfg.Int("rank", 20)
}

func (c *scaleAndOffsetComponent) Fields(f *Fields) {
	c.training.fields(f)
	f.Dim("<Dim>", &c.dim)
	f.Vector("<Scales>", &c.scales)
	f.Vector("<Offsets>", &c.offsets)
	f.Bool("<UseNaturalGradient>", &c.useNaturalGradient)
	f.Int("<Rank>", &c.rank)
	f.Check(len(c.offsets) == len(c.scales) && divides(len(c.scales), c.dim),
		"%d scales and %d offsets for dimension %d", len(c.scales), len(c.offsets), c.dim)
}

// awayFromZero returns s, or leastScale with the sign of s if s is closer to zero.
func awayFromZero(s float32) float32 {
	switch {
	case s >= 0 && s < leastScale:
		return leastScale
	case s < 0 && s > -leastScale:
		return -leastScale
	}
	return s
}

// Propagate computes y = x∘s + o.
func (c *scaleAndOffsetComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	defer w.Release(w.Mark())
	s := c.usedScales(w)
	for b := 0; b < c.dim; b += len(s) {
		w.Threads.ScaleOffset(kernel.Cols(out, b, len(s)), kernel.Cols(in, b, len(s)), s, c.offsets)
	}
	return nil, nil
}

// usedScales returns the factors with none too close to zero, in scratch memory.
func (c *scaleAndOffsetComponent) usedScales(w *Workspace) []float32 {
	s := w.Vector(len(c.scales))
	for j, v := range c.scales {
		s[j] = awayFromZero(v)
	}
	return s
}

// Backprop computes dx = dy∘s, and ds += Σx∘dy with x = (y - o)/s, do += Σdy.
func (c *scaleAndOffsetComponent) Backprop(w *Workspace, pass BackwardPass) error {
	defer w.Release(w.Mark())
	s := c.usedScales(w)
	n := len(s)
	u, update := pass.ToUpdate.(*scaleAndOffsetComponent)
	for b := 0; b < c.dim; b += n {
		dy := kernel.Cols(pass.OutDeriv, b, n)
		if update {
			c.update(u, s, kernel.Cols(pass.OutValue, b, n), dy)
		}
		if wanted(pass.InDeriv) {
			w.Threads.ScaleCols(kernel.Cols(pass.InDeriv, b, n), dy, s)
		}
	}
	return nil
}

// update adds the gradient of a block of columns to the parameters of u.
func (c *scaleAndOffsetComponent) update(u *scaleAndOffsetComponent, s []float32, y, dy kernel.Matrix) {
	for i := range y.Rows {
		v, d := kernel.Row(y, i), kernel.Row(dy, i)
		for j, f := range s {
			u.scales[j] += u.learningRate * d[j] * (v[j] - c.offsets[j]) / f
		}
	}
	kernel.AddColSums(u.offsets, u.learningRate, dy)
}
