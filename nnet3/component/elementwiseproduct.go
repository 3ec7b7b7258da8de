package component

import (
	"github.com/nnopt/nnopt/kernel"
)

// elementwiseProductComponent multiplies the equal blocks of its input, element by element.
type elementwiseProductComponent struct{ inputDim, outputDim int }

// Type is "ElementwiseProductComponent".
func (c *elementwiseProductComponent) Type() string { return "ElementwiseProductComponent" }

// InputDim is the number of columns of all blocks.
func (c *elementwiseProductComponent) InputDim() int { return c.inputDim }

// OutputDim is the number of columns of a block.
func (c *elementwiseProductComponent) OutputDim() int { return c.outputDim }

// Properties of a product.
func (c *elementwiseProductComponent) Properties() Properties { return Simple | BackpropNeedsInput }

// Init knows input-dim and output-dim.
func (c *elementwiseProductComponent) Init(cfg *ConfigLine) error {
	c.inputDim, c.outputDim = cfg.dim("input-dim"), cfg.dim("output-dim")
	if c.inputDim%c.outputDim != 0 {
		cfg.Fail("input-dim=%d is no multiple of output-dim=%d", c.inputDim, c.outputDim)
	}
	return cfg.Err()
}

// Fields of the component.
func (c *elementwiseProductComponent) Fields(f *Fields) {
	f.blockDims(&c.inputDim, &c.outputDim)
}

// blockDims names <InputDim> and <OutputDim>, of which the first is a multiple of the second.
func (f *Fields) blockDims(in, out *int) {
	f.Dim("<InputDim>", in)
	f.Dim("<OutputDim>", out)
	f.Check(divides(*out, *in), "input dimension %d is no multiple of the output's %d", *in, *out)
}

// Propagate computes y = x₁∘x₂∘…
func (c *elementwiseProductComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	n := c.outputDim
	if c.inputDim == n {
		kernel.Copy(out, in)
		return nil, nil
	}
	kernel.Mul2(out, kernel.Cols(in, 0, n), kernel.Cols(in, n, n))
	for b := 2 * n; b < c.inputDim; b += n {
		kernel.Mul2(out, out, kernel.Cols(in, b, n))
	}
	return nil, nil
}

// Backprop computes, for each block, the product of dy and the other blocks.
func (c *elementwiseProductComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	n := c.outputDim
	for b := 0; b < c.inputDim; b += n {
		dx, from := kernel.Cols(inDeriv, b, n), outDeriv
		for o := 0; o < c.inputDim; o += n {
			if o == b {
				continue
			}
			kernel.Mul2(dx, from, kernel.Cols(inValue, o, n))
			from = dx
		}
		if c.inputDim == n {
			kernel.Copy(dx, outDeriv)
		}
	}
	return nil
}
