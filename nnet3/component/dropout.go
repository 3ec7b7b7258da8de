package component

import (
	"math/rand/v2"

	"github.com/nnopt/nnopt/kernel"
)

// dropoutComponent sets elements, or whole rows, to zero at random in training, and leaves the others as they are: it doesn't
// multiply them by 1/(1-p). In test mode it multiplies everything by 1-p.
type dropoutComponent struct {
	testMode
	columns
	proportion float32
	perFrame   bool
}

// Type is "DropoutComponent".
func (c *dropoutComponent) Type() string { return "DropoutComponent" }

// IsIdentity reports whether the component is in test mode and p is 0.
func (c *dropoutComponent) IsIdentity() bool { return c.test && c.proportion == 0 }

// Properties of dropout.
func (c *dropoutComponent) Properties() Properties {
	return Simple | BackpropInPlace | BackpropNeedsInput | BackpropNeedsOutput | Random
}

// Init knows dim, dropout-proportion (both must be there), dropout-per-frame, test-mode.
func (c *dropoutComponent) Init(cfg *ConfigLine) error {
	c.dim = cfg.dim("dim")
	cfg.require("dropout-proportion")
	c.proportion = cfg.Float("dropout-proportion", 0)
	c.perFrame = cfg.Bool("dropout-per-frame", false)
	c.test = cfg.Bool("test-mode", false)
	if c.proportion < 0 || c.proportion > 1 {
		cfg.Fail("dropout-proportion=%g is not between 0 and 1", c.proportion)
	}
	return cfg.Err()
}

// Fields of the component.
func (c *dropoutComponent) Fields(f *Fields) {
	f.Dim("<Dim>", &c.dim)
	f.Float("<DropoutProportion>", &c.proportion)
	Since(f, f.Bool, "<DropoutPerFrame>", &c.perFrame, false)
	Since(f, f.Bool, "<TestMode>", &c.test, false)
	f.Check(c.proportion >= 0 && c.proportion <= 1, "dropout proportion %g is not between 0 and 1", c.proportion)
}

// Propagate drops elements of x, or scales it in test mode.
func (c *dropoutComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	if c.test {
		kernel.CopyScaled(out, 1-c.proportion, in)
		return nil, nil
	}
	rnd := w.random()
	for i := range in.Rows {
		x, y := kernel.Row(in, i), kernel.Row(out, i)
		mask := c.draw(rnd)
		for j, v := range x {
			if !c.perFrame {
				mask = c.draw(rnd)
			}
			y[j] = v * mask
		}
	}
	return nil, nil
}

// draw returns 0 or 1.
func (c *dropoutComponent) draw(rnd *rand.Rand) float32 {
	if rnd.Float32() < c.proportion {
		return 0
	}
	return 1
}

// Backprop computes dx = dy·y/x, or dx = dy where x is 0.
func (c *dropoutComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	for i := range outDeriv.Rows {
		x, y := kernel.Row(inValue, i), kernel.Row(outValue, i)
		dx, dy := kernel.Row(inDeriv, i), kernel.Row(outDeriv, i)
		for j, v := range x {
			d := dy[j]
			if v != 0 {
				d *= y[j] / v
			}
			dx[j] = d
		}
	}
	return nil
}
