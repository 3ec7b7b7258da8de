package component

import (
	"fmt"
	"math/rand/v2"

	"github.com/nnopt/nnopt/internal/kernel"
)

// mask is embedded by components that draw the elements of a random mask independently of each
// other.
type mask struct {
	testMode
	proportion float32 // of elements that are zero
	continuous bool    // uniformly distributed between 1-2p and 1+2p instead
}

// draw returns an element of the mask. one is the value of the elements that aren't zero.
func (m *mask) draw(rnd *rand.Rand, one float32) float32 {
	u := rnd.Float32()
	switch {
	case m.continuous:
		return 1 - 2*m.proportion + float32(4*m.proportion*u)
	case u < m.proportion:
		return 0
	}
	return one
}

func (m *mask) problem() string {
	if m.proportion >= 0 && m.proportion <= 1 {
		return ""
	}
	return fmt.Sprintf("dropout proportion %g is not between 0 and 1", m.proportion)
}

// dropoutComponent sets elements, or whole rows, to zero at random in training, and leaves the
// others as they are: it does not multiply them by 1/(1-p). In test mode it multiplies everything
// by 1-p.
type dropoutComponent struct {
	mask
	columns
	perFrame bool
}

func (c *dropoutComponent) Type() string     { return "DropoutComponent" }
func (c *dropoutComponent) IsIdentity() bool { return c.test && c.proportion == 0 }
func (c *dropoutComponent) Properties() Properties {
	return Simple | BackpropInPlace | BackpropNeedsInput | BackpropNeedsOutput | Random
}

// Init reads dim, dropout-proportion (both required), dropout-per-frame and test-mode.
func (c *dropoutComponent) Init(cfg *ConfigLine) {
	c.dim = cfg.dim("dim")
	cfg.require("dropout-proportion")
	c.proportion = cfg.Float("dropout-proportion", 0)
	c.perFrame = cfg.Bool("dropout-per-frame", false)
	c.test = cfg.Bool("test-mode", false)
	cfg.check(c.problem())
}

func (c *dropoutComponent) Fields(f *Fields) {
	f.Dim("<Dim>", &c.dim)
	f.Float("<DropoutProportion>", &c.proportion)
	Since(f, f.Bool, "<DropoutPerFrame>", &c.perFrame, false)
	Since(f, f.Bool, "<TestMode>", &c.test, false)
	f.check(c.problem())
}

// Propagate drops elements of x, or scales it in test mode.
func (c *dropoutComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	if c.test {
		w.Threads.CopyScaled(out, 1-c.proportion, in)
		return nil, nil
	}
	rnd := w.random()
	for i := range in.Rows {
		x, y := kernel.Row(in, i), kernel.Row(out, i)
		factor := c.draw(rnd, 1)
		for j, v := range x {
			if !c.perFrame {
				factor = c.draw(rnd, 1)
			}
			y[j] = v * factor
		}
	}
	return nil, nil
}

// Backprop computes dx = dy·y/x, or dx = dy where x is 0.
func (c *dropoutComponent) Backprop(w *Workspace, pass BackwardPass) error {
	for i := range pass.OutDeriv.Rows {
		x, y := kernel.Row(pass.InValue, i), kernel.Row(pass.OutValue, i)
		dx, dy := kernel.Row(pass.InDeriv, i), kernel.Row(pass.OutDeriv, i)
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

// dropoutMaskComponent outputs random factors for other components to multiply by: 0 with
// probability p, otherwise 1, without a factor 1/(1-p). With two or three columns, as an LSTM uses
// them, the first two are never both 0 in a row (as long as p allows). In test mode the mask is
// 1-p, or 1 if continuous. The component has no input.
type dropoutMaskComponent struct {
	mask
	noInput
	columns // of the output, so that the node of the component may name itself as its input
}

func (c *dropoutMaskComponent) Type() string           { return "DropoutMaskComponent" }
func (c *dropoutMaskComponent) Properties() Properties { return Random }

// Init reads output-dim, dropout-proportion, continuous and test-mode.
func (c *dropoutMaskComponent) Init(cfg *ConfigLine) {
	c.dim = cfg.dim("output-dim")
	c.proportion = cfg.Float("dropout-proportion", 0.5)
	c.continuous = cfg.Bool("continuous", false)
	c.test = cfg.Bool("test-mode", false)
	cfg.check(c.problem())
}

func (c *dropoutMaskComponent) Fields(f *Fields) {
	f.Dim("<OutputDim>", &c.dim)
	f.Float("<DropoutProportion>", &c.proportion)
	Since(f, f.Bool, "<TestMode>", &c.test, false)
	f.Flag("<Continuous>", &c.continuous)
	f.check(c.problem())
}

// Propagate draws a mask.
func (c *dropoutMaskComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	p := c.proportion
	switch {
	case p == 0 || c.test && c.continuous:
		w.Threads.Fill(out, 1)
		return nil, nil
	case c.test:
		w.Threads.Fill(out, 1-p)
		return nil, nil
	}
	rnd := w.random()
	for i := range out.Rows {
		row := kernel.Row(out, i)
		for j := range row {
			row[j] = c.draw(rnd, 1)
		}
		if !c.continuous && (len(row) == 2 || len(row) == 3) {
			// One number decides both: the lowest p of its range zeroes the first column, the
			// highest p the second.
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

// Backprop sets the derivative of the input, which doesn't matter, to zero.
func (c *dropoutMaskComponent) Backprop(w *Workspace, pass BackwardPass) error {
	w.Threads.Fill(pass.InDeriv, 0)
	return nil
}
