package component

import (
	"slices"

	"github.com/nnopt/nnopt/kernel"
)

// leastScale is how close to zero a scale of ScaleAndOffset may come, so that the input can be computed from the output.
const leastScale = 1e-4

// scaleAndOffsetComponent multiplies each column by a trainable factor and adds a trainable offset. Columns that lie a block apart
// share them.
type scaleAndOffsetComponent struct {
	training
	columns
	scales, offsets    []float32 // of a block
	useNaturalGradient bool
	rank               int
}

// Type is "ScaleAndOffsetComponent".
func (c *scaleAndOffsetComponent) Type() string { return "ScaleAndOffsetComponent" }

// Properties of scale and offset.
func (c *scaleAndOffsetComponent) Properties() Properties {
	return (Simple | Updatable | PropagateInPlace | BackpropInPlace | BackpropNeedsOutput).
		with(InputContiguous|OutputContiguous, len(c.scales) != c.dim)
}

// Params returns the scales and the offsets.
func (c *scaleAndOffsetComponent) Params() []Param {
	return []Param{vectorParam("scales", c.scales), vectorParam("offsets", c.offsets)}
}

// Init knows dim, block-dim, use-natural-gradient, rank. The scales begin as 1, the offsets as 0.
func (c *scaleAndOffsetComponent) Init(cfg *ConfigLine) error {
	c.training.init(cfg)
	c.dim = cfg.dim("dim")
	block := cfg.dimOr("block-dim", c.dim)
	if c.dim%block != 0 {
		cfg.Fail("dim=%d is no multiple of block-dim=%d", c.dim, block)
	}
	if !cfg.makeRoom(2, block) {
		return cfg.Err()
	}
	c.scales, c.offsets = slices.Repeat([]float32{1}, block), make([]float32, block)
	c.useNaturalGradient = cfg.Bool("use-natural-gradient", true)
	c.rank = cfg.Int("rank", 20)
	return cfg.Err()
}

// Fields of the component.
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

// awayFromZero returns the scale s, or the nearest one that isn't too close to zero.
func awayFromZero(s float32) float32 {
	switch {
	case s >= 0 && s < leastScale:
		return leastScale
	case s < 0 && s > -leastScale:
		return -leastScale
	}
	return s
}

// Scale returns the factors of a block of columns, as they are used: none is closer to zero than 1e-4. They are a copy.
func (c *scaleAndOffsetComponent) Scale() []float32 {
	s := make([]float32, len(c.scales))
	for j, v := range c.scales {
		s[j] = awayFromZero(v)
	}
	return s
}

// Offset returns the offsets of a block of columns. They are shared with the component.
func (c *scaleAndOffsetComponent) Offset() []float32 { return c.offsets }

// Propagate computes y = x∘s + o.
func (c *scaleAndOffsetComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	mark := w.Mark()
	defer w.Release(mark)
	s := c.usedScales(w)
	for b := 0; b < c.dim; b += len(s) {
		kernel.ScaleOffset(kernel.Cols(out, b, len(s)), kernel.Cols(in, b, len(s)), s, c.offsets)
	}
	return nil, nil
}

func (c *scaleAndOffsetComponent) usedScales(w *Workspace) []float32 {
	s := w.Vector(len(c.scales))
	for j, v := range c.scales {
		s[j] = awayFromZero(v)
	}
	return s
}

// Backprop computes dx = dy∘s, and ds += Σx∘dy with x = (y - o)/s, do += Σdy.
func (c *scaleAndOffsetComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil {
		return err
	}
	mark := w.Mark()
	defer w.Release(mark)
	s := c.usedScales(w)
	n := len(s)
	u, update := toUpdate.(*scaleAndOffsetComponent)
	for b := 0; b < c.dim; b += n {
		dy := kernel.Cols(outDeriv, b, n)
		if update {
			c.update(u, s, kernel.Cols(outValue, b, n), dy)
		}
		if wanted(inDeriv) {
			kernel.ScaleCols(kernel.Cols(inDeriv, b, n), dy, s)
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
