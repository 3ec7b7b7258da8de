package component

import (
	"slices"

	"github.com/nnopt/nnopt/internal/kernel"
)

// sumBlockComponent adds the sum of the equal blocks of its input, scaled, to its output.
type sumBlockComponent struct {
	equalBlocks
	scale float32
}

func (c *sumBlockComponent) Type() string           { return "SumBlockComponent" }
func (c *sumBlockComponent) Properties() Properties { return Simple | PropagateAdds | BackpropAdds }

// Init reads input-dim, output-dim and scale.
func (c *sumBlockComponent) Init(cfg *ConfigLine) {
	c.equalBlocks.Init(cfg)
	c.scale = cfg.Float("scale", 1)
}

func (c *sumBlockComponent) Fields(f *Fields) {
	c.equalBlocks.Fields(f)
	f.Float("<Scale>", &c.scale)
}

// Propagate computes y += scale·Σx_b.
func (c *sumBlockComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	for b := 0; b < c.inputDim; b += c.outputDim {
		w.Threads.Add(out, c.scale, kernel.Cols(in, b, c.outputDim))
	}
	return nil, nil
}

// Backprop computes dx_b += scale·dy.
func (c *sumBlockComponent) Backprop(w *Workspace, pass BackwardPass) error {
	for b := 0; b < c.inputDim; b += c.outputDim {
		w.Threads.Add(kernel.Cols(pass.InDeriv, b, c.outputDim), c.scale, pass.OutDeriv)
	}
	return nil
}

// sumGroupComponent sums consecutive groups of columns, of given sizes, into one column each.
type sumGroupComponent struct {
	sizes    []int32
	inputDim int
}

func (c *sumGroupComponent) Type() string           { return "SumGroupComponent" }
func (c *sumGroupComponent) InputDim() int          { return c.inputDim }
func (c *sumGroupComponent) OutputDim() int         { return len(c.sizes) }
func (c *sumGroupComponent) Properties() Properties { return Simple }

// Init reads sizes; or input-dim and output-dim, for groups of equal size.
func (c *sumGroupComponent) Init(cfg *ConfigLine) {
	var ok bool
	if c.sizes, ok = cfg.Ints("sizes"); !ok {
		var dims equalBlocks
		dims.Init(cfg)
		if !cfg.makeRoom(1, dims.outputDim) {
			return
		}
		c.sizes = slices.Repeat([]int32{int32(dims.inputDim / dims.outputDim)}, dims.outputDim)
	}
	if !c.count() {
		cfg.Fail("the sizes are not positive, or their sum is more than %d", maxDim)
	}
}

// count sums the sizes. It reports false if there are none, one isn't positive, or the sum is too
// large.
func (c *sumGroupComponent) count() bool {
	c.inputDim = 0
	for _, s := range c.sizes {
		if s <= 0 || int(s) > maxDim-c.inputDim {
			return false
		}
		c.inputDim += int(s)
	}
	return len(c.sizes) > 0
}

func (c *sumGroupComponent) Fields(f *Fields) {
	f.Ints("<Sizes>", &c.sizes)
	if f.Reading() {
		f.Check(c.count(), "the sizes are not positive, or their sum is more than %d", maxDim)
	}
}

// Propagate computes the sums.
func (c *sumGroupComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	for i := range in.Rows {
		x, y := kernel.Row(in, i), kernel.Row(out, i)
		for j, s := range c.sizes {
			y[j] = kernel.Sum(x[:s])
			x = x[s:]
		}
	}
	return nil, nil
}

// Backprop gives each column of a group the derivative of the sum.
func (c *sumGroupComponent) Backprop(w *Workspace, pass BackwardPass) error {
	for i := range pass.OutDeriv.Rows {
		dx, dy := kernel.Row(pass.InDeriv, i), kernel.Row(pass.OutDeriv, i)
		for j, s := range c.sizes {
			for k := range dx[:s] {
				dx[k] = dy[j]
			}
			dx = dx[s:]
		}
	}
	return nil
}
