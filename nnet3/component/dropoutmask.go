package component

import (
	"github.com/nnopt/nnopt/kernel"
)

// dropoutMaskComponent puts out random factors for other components to multiply by: 0 with probability p, else 1, without a factor
// 1/(1-p). With two or three columns, as an LSTM uses them, the first two are never both 0 in a row (as long as p allows).
// A continuous mask is uniformly distributed between 1-2p and 1+2p. In test mode the mask is 1-p, or 1 if continuous. It
// has no input.
type dropoutMaskComponent struct {
	testMode
	noInput
	outputDim  int
	proportion float32
	continuous bool
}

// Type is "DropoutMaskComponent".
func (c *dropoutMaskComponent) Type() string { return "DropoutMaskComponent" }

// InputDim is the same as OutputDim, so that the node of the component may name itself as its input.
func (c *dropoutMaskComponent) InputDim() int { return c.outputDim }

// OutputDim is the number of columns.
func (c *dropoutMaskComponent) OutputDim() int { return c.outputDim }

// Properties of a mask.
func (c *dropoutMaskComponent) Properties() Properties { return Random }

// Init knows output-dim, dropout-proportion, continuous, test-mode.
func (c *dropoutMaskComponent) Init(cfg *ConfigLine) error {
	c.outputDim = cfg.dim("output-dim")
	c.proportion = cfg.Float("dropout-proportion", 0.5)
	c.continuous = cfg.Bool("continuous", false)
	c.test = cfg.Bool("test-mode", false)
	if c.proportion < 0 || c.proportion > 1 {
		cfg.Fail("dropout-proportion=%g is not between 0 and 1", c.proportion)
	}
	return cfg.Err()
}

// Fields of the component.
func (c *dropoutMaskComponent) Fields(f *Fields) {
	f.Dim("<OutputDim>", &c.outputDim)
	f.Float("<DropoutProportion>", &c.proportion)
	Since(f, f.Bool, "<TestMode>", &c.test, false)
	f.Flag("<Continuous>", &c.continuous)
	f.Check(c.proportion >= 0 && c.proportion <= 1, "dropout proportion %g is not between 0 and 1", c.proportion)
}

// Propagate draws a mask.
func (c *dropoutMaskComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if out.Cols != c.outputDim {
		return nil, shapeError(c, "propagate", in, out)
	}
	p := c.proportion
	switch {
	case p == 0 || c.test && c.continuous:
		kernel.Fill(out, 1)
		return nil, nil
	case c.test:
		kernel.Fill(out, 1-p)
		return nil, nil
	}
	rnd := w.random()
	for i := range out.Rows {
		row := kernel.Row(out, i)
		for j := range row {
			u := rnd.Float32()
			switch {
			case c.continuous:
				row[j] = 1 - 2*p + float32(4*p*u)
			case u < p:
				row[j] = 0
			default:
				row[j] = 1
			}
		}
		if !c.continuous && (len(row) == 2 || len(row) == 3) {
			// One number decides both: the lowest p of its range zeroes the first column, the highest p the second.
			u := rnd.Float32()
			row[0], row[1] = 1, 1
			if u < p {
				row[0] = 0
			}
			if u >= 1-p {
				row[1] = 0
			}
		}
	}
	return nil, nil
}

// Backprop does nothing: there is no input.
func (c *dropoutMaskComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if wanted(inDeriv) {
		kernel.Fill(inDeriv, 0)
	}
	return nil
}
