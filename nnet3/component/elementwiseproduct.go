package component

import (
	"github.com/nnopt/nnopt/internal/kernel"
)

// elementwiseProductComponent multiplies the equal blocks of its input, element by element.
type elementwiseProductComponent struct{ equalBlocks }

func (c *elementwiseProductComponent) Type() string           { return "ElementwiseProductComponent" }
func (c *elementwiseProductComponent) Properties() Properties { return Simple | BackpropNeedsInput }

// Propagate computes y = x₁∘x₂∘…
func (c *elementwiseProductComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	n := c.outputDim
	if c.inputDim == n {
		w.Threads.Copy(out, in)
		return nil, nil
	}
	w.Threads.MapRows2(out, kernel.Cols(in, 0, n), kernel.Cols(in, n, n), kernel.MulVec)
	for b := 2 * n; b < c.inputDim; b += n {
		w.Threads.MapRows2(out, out, kernel.Cols(in, b, n), kernel.MulVec)
	}
	return nil, nil
}

// Backprop computes, for each block, the product of dy and the other blocks.
func (c *elementwiseProductComponent) Backprop(w *Workspace, pass BackwardPass) error {
	n := c.outputDim
	for b := 0; b < c.inputDim; b += n {
		dx, from := kernel.Cols(pass.InDeriv, b, n), pass.OutDeriv
		for o := 0; o < c.inputDim; o += n {
			if o == b {
				continue
			}
			w.Threads.MapRows2(dx, from, kernel.Cols(pass.InValue, o, n), kernel.MulVec)
			from = dx
		}
		if c.inputDim == n {
			w.Threads.Copy(dx, pass.OutDeriv)
		}
	}
	return nil
}
