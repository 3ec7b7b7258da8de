package component

import (
	"github.com/nnopt/nnopt/kernel"
)

// perElementOffsetComponent adds a trainable offset to each column. Columns that lie a block apart share one.
type perElementOffsetComponent struct {
	training
	columns
	offsets            []float32 // of a block
	useNaturalGradient bool
}

// Type is "PerElementOffsetComponent".
func (c *perElementOffsetComponent) Type() string { return "PerElementOffsetComponent" }

// Offset returns the offsets of a block of columns. They are shared with the component.
func (c *perElementOffsetComponent) Offset() []float32 { return c.offsets }

// Properties of an offset per element.
func (c *perElementOffsetComponent) Properties() Properties {
	return (Simple | Updatable | PropagateInPlace | BackpropInPlace).with(OutputContiguous, len(c.offsets) != c.dim)
}

// Params returns the offsets.
func (c *perElementOffsetComponent) Params() []Param {
	return []Param{vectorParam("offsets", c.offsets)}
}

// Init knows vector, a file; or dim, block-dim, param-mean, param-stddev; and use-natural-gradient.
func (c *perElementOffsetComponent) Init(cfg *ConfigLine) error {
	c.training.init(cfg)
	c.useNaturalGradient = cfg.Bool("use-natural-gradient", true)
	if v, ok := cfg.vector("vector"); ok {
		c.offsets = v
		c.dim = cfg.dimOr("dim", max(len(v), 1))
		if len(v) == 0 || c.dim%len(v) != 0 {
			cfg.Fail("dim=%d is no multiple of the vector's length %d", c.dim, len(v))
		}
		return cfg.Err()
	}
	c.dim = cfg.dim("dim")
	block := cfg.dimOr("block-dim", c.dim)
	if c.dim%block != 0 {
		cfg.Fail("dim=%d is no multiple of block-dim=%d", c.dim, block)
	}
	c.offsets = cfg.randnVector(block, cfg.Float("param-mean", 0), cfg.Float("param-stddev", 0))
	return cfg.Err()
}

// Fields of the component.
func (c *perElementOffsetComponent) Fields(f *Fields) {
	c.training.fields(f)
	f.Vector("<Offsets>", &c.offsets)
	f.oldGradient(&c.training)
	Since(f, f.Dim, "<Dim>", &c.dim, len(c.offsets))
	Since(f, f.Bool, "<UseNaturalGradient>", &c.useNaturalGradient, true)
	f.Check(divides(len(c.offsets), c.dim), "%d offsets for dimension %d", len(c.offsets), c.dim)
}

// Propagate computes y = x + b.
func (c *perElementOffsetComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	kernel.Copy(out, in)
	for b := 0; b < c.dim; b += len(c.offsets) {
		kernel.AddRow(kernel.Cols(out, b, len(c.offsets)), 1, c.offsets)
	}
	return nil, nil
}

// Backprop computes dx = dy and db += Σdy.
func (c *perElementOffsetComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil {
		return err
	}
	if u, ok := toUpdate.(*perElementOffsetComponent); ok {
		for b := 0; b < c.dim; b += len(u.offsets) {
			kernel.AddColSums(u.offsets, u.learningRate, kernel.Cols(outDeriv, b, len(u.offsets)))
		}
	}
	if wanted(inDeriv) {
		kernel.Copy(inDeriv, outDeriv)
	}
	return nil
}
