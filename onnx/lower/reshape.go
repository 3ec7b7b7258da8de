package lower

import (
	"slices"

	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/tensor"
)

// The operators that keep all elements and give them another shape or order.
var reshapes = map[string]func(c *call) []*value{
	"Reshape": reshaping(1), "Flatten": reshaping(), "Squeeze": reshaping(1), "Unsqueeze": reshaping(1),
	"Transpose": func(c *call) []*value {
		x := c.x(0)
		perm := c.list("perm")
		if perm == nil {
			perm = span(0, ndim(x))
			slices.Reverse(perm)
		}
		return c.like(tensor.DimShuffle(x, perm...))
	},
	"DepthToSpace": func(c *call) []*value {
		x, s, y, b := c.x(0), c.dims(c.x(0)), c.result(), c.block()
		blocks := tensor.DimShuffle(c.reshapeTo(x, []ir.Dim{s[0], b, b, y[1], s[2], s[3]}), 0, 3, 4, 1, 5, 2)
		if c.text("mode", "DCR") == "CRD" {
			blocks = tensor.DimShuffle(c.reshapeTo(x, []ir.Dim{s[0], y[1], b, b, s[2], s[3]}), 0, 1, 4, 2, 5, 3)
		}
		return c.like(c.reshapeTo(blocks, y))
	},
	"SpaceToDepth": func(c *call) []*value {
		x, s, y, b := c.x(0), c.dims(c.x(0)), c.result(), c.block()
		blocks := tensor.DimShuffle(c.reshapeTo(x, []ir.Dim{s[0], s[1], y[2], b, y[3], b}), 0, 3, 5, 1, 2, 4)
		return c.like(c.reshapeTo(blocks, y))
	},
}

// reshaping lowers an operator that gives its input another shape, which the values of some inputs say.
func reshaping(values ...int) func(c *call) []*value {
	return func(c *call) []*value { return c.like(c.reshapeTo(c.x(0), c.result(values...))) }
}

// block returns the size of blocks of an image.
func (c *call) block() ir.Dim { return ir.Known(c.op.Int("blocksize", 1)) }
