package component

import (
	"slices"

	"github.com/nnopt/nnopt/kernel"
)

// sumBlockComponent adds the sum of the equal blocks of its input, scaled, to its output.
type sumBlockComponent struct {
	inputDim, outputDim int
	scale               float32
}

// Type is "SumBlockComponent".
func (c *sumBlockComponent) Type() string { return "SumBlockComponent" }

// InputDim is the number of columns of all blocks.
func (c *sumBlockComponent) InputDim() int { return c.inputDim }

// OutputDim is the number of columns of a block.
func (c *sumBlockComponent) OutputDim() int { return c.outputDim }

// Properties of a sum of blocks.
func (c *sumBlockComponent) Properties() Properties { return Simple | PropagateAdds | BackpropAdds }

// Init knows input-dim, output-dim, scale.
func (c *sumBlockComponent) Init(cfg *ConfigLine) error {
	c.inputDim, c.outputDim = cfg.dim("input-dim"), cfg.dim("output-dim")
	c.scale = cfg.Float("scale", 1)
	if c.inputDim%c.outputDim != 0 {
		cfg.Fail("input-dim=%d is no multiple of output-dim=%d", c.inputDim, c.outputDim)
	}
	return cfg.Err()
}

// Fields of the component.
func (c *sumBlockComponent) Fields(f *Fields) {
	f.blockDims(&c.inputDim, &c.outputDim)
	f.Float("<Scale>", &c.scale)
}

// Propagate computes y += scale·Σx_b.
func (c *sumBlockComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	for b := 0; b < c.inputDim; b += c.outputDim {
		kernel.Add(out, c.scale, kernel.Cols(in, b, c.outputDim))
	}
	return nil, nil
}

// Backprop computes dx_b += scale·dy.
func (c *sumBlockComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	for b := 0; b < c.inputDim; b += c.outputDim {
		kernel.Add(kernel.Cols(inDeriv, b, c.outputDim), c.scale, outDeriv)
	}
	return nil
}

// sumGroupComponent sums consecutive groups of columns, of given sizes, into one column each.
type sumGroupComponent struct {
	sizes    []int32
	inputDim int
}

// Type is "SumGroupComponent".
func (c *sumGroupComponent) Type() string { return "SumGroupComponent" }

// InputDim is the sum of the sizes.
func (c *sumGroupComponent) InputDim() int { return c.inputDim }

// OutputDim is the number of groups.
func (c *sumGroupComponent) OutputDim() int { return len(c.sizes) }

// Properties of sums of groups.
func (c *sumGroupComponent) Properties() Properties { return Simple }

// Init knows sizes; or input-dim and output-dim, for groups of equal size.
func (c *sumGroupComponent) Init(cfg *ConfigLine) error {
	var ok bool
	if c.sizes, ok = cfg.Ints("sizes"); !ok {
		in, out := cfg.dim("input-dim"), cfg.dim("output-dim")
		if in%out != 0 {
			cfg.Fail("input-dim=%d is no multiple of output-dim=%d", in, out)
		}
		if !cfg.makeRoom(1, out) {
			return cfg.Err()
		}
		c.sizes = slices.Repeat([]int32{int32(in / out)}, out)
	}
	if !c.count() {
		cfg.Fail("sizes must be positive and not sum up to more than %d", maxDim)
	}
	return cfg.Err()
}

// count sums the sizes. It reports false if they make no sense.
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

// Fields of the component.
func (c *sumGroupComponent) Fields(f *Fields) {
	f.Ints("<Sizes>", &c.sizes)
	if f.Reading() {
		f.Check(c.count(), "the sizes are not positive, or sum up to more than %d", maxDim)
	}
}

// Propagate computes the sums.
func (c *sumGroupComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
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
func (c *sumGroupComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	for i := range outDeriv.Rows {
		dx, dy := kernel.Row(inDeriv, i), kernel.Row(outDeriv, i)
		for j, s := range c.sizes {
			for k := range dx[:s] {
				dx[k] = dy[j]
			}
			dx = dx[s:]
		}
	}
	return nil
}
