package lower

import (
	"slices"

	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/tensor"
)

// The operators that keep all elements and give them another shape or order.
var reshapes = map[string]func(c *call) []*value{
	"Reshape": func(c *call) []*value {
		if dims, ok := c.inferred(); ok {
			return c.like(c.reshapeTo(c.x(0), dims))
		}
		shape := c.ints(1)
		have, all := c.shape(c.x(0)), c.bool("allowzero", false)
		for i, n := range shape {
			if n == 0 && !all && i < len(have) {
				shape[i] = have[i]
			}
		}
		if slices.Contains(shape, -1) && slices.Contains(shape, 0) {
			c.fail("a size that is left open beside one of 0 may be any")
		}
		return c.like(c.reshape(c.x(0), complete(shape, product(have))))
	},
	"Flatten": func(c *call) []*value {
		if dims, ok := c.inferred(); ok {
			return c.like(c.reshapeTo(c.x(0), dims))
		}
		shape := c.shape(c.x(0))
		axis := c.axis(c.int("axis", 1), len(shape)+1)
		if a := c.int("axis", 1); a < 0 {
			axis = a + len(shape)
		}
		return c.like(c.reshape(c.x(0), []int{product(shape[:axis]), product(shape[axis:])}))
	},
	"Squeeze": func(c *call) []*value {
		x := c.x(0)
		if dims, ok := c.inferred(); ok {
			return c.like(c.reshapeTo(x, dims))
		}
		dims := c.dims(x)
		notOne := func(i int) bool { return !dims[i].Is(1) }
		axes := c.axes(c.intsOr(1, slices.DeleteFunc(span(0, ndim(x)), notOne)), ndim(x))
		var rest []ir.Dim
		for i, d := range dims {
			if !slices.Contains(axes, i) {
				rest = append(rest, d)
			} else if n := c.number(d); n != 1 {
				c.fail("axis %d has %d elements", i, n)
			}
		}
		return c.like(c.reshapeTo(x, rest))
	},
	"Unsqueeze": func(c *call) []*value {
		if dims, ok := c.inferred(); ok {
			return c.like(c.reshapeTo(c.x(0), dims))
		}
		axes := c.ints(1)
		axes = c.axes(axes, ndim(c.x(0))+len(axes))
		if c.open != nil { // of which ir does not know the sizes
			return c.like(tensor.ExpandDims(c.x(0), axes...))
		}
		shape := c.shape(c.x(0))
		slices.Sort(axes)
		for _, a := range axes {
			if a > len(shape) {
				c.fail("there is no axis %d", a)
			}
			shape = slices.Insert(shape, a, 1)
		}
		return c.like(c.reshape(c.x(0), shape))
	},
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
		x, s, b := c.x(0), c.image(), c.block()
		depth := c.quotient(s[1], b.Times(b))
		y := tensor.DimShuffle(c.reshapeTo(x, []ir.Dim{s[0], b, b, depth, s[2], s[3]}), 0, 3, 4, 1, 5, 2)
		if c.text("mode", "DCR") == "CRD" {
			y = tensor.DimShuffle(c.reshapeTo(x, []ir.Dim{s[0], depth, b, b, s[2], s[3]}), 0, 1, 4, 2, 5, 3)
		}
		return c.like(c.reshapeTo(y, []ir.Dim{s[0], depth, s[2].Times(b), s[3].Times(b)}))
	},
	"SpaceToDepth": func(c *call) []*value {
		x, s, b := c.x(0), c.image(), c.block()
		height, width := c.quotient(s[2], b), c.quotient(s[3], b)
		y := tensor.DimShuffle(c.reshapeTo(x, []ir.Dim{s[0], s[1], height, b, width, b}), 0, 3, 5, 1, 2, 4)
		return c.like(c.reshapeTo(y, []ir.Dim{s[0], s[1].Times(b).Times(b), height, width}))
	},
}

// complete replaces -1 in a shape by what is left of so many elements.
func complete(shape []int, elements int) []int {
	at, rest := slices.Index(shape, -1), 1
	for _, n := range shape {
		if n != -1 {
			rest *= n
		}
	}
	shape = slices.Clone(shape)
	if at >= 0 && rest > 0 {
		shape[at] = elements / rest
	} else if at >= 0 {
		// Beside a size of 0 any size would do.
		shape[at] = 0
	}
	return shape
}

// image returns the sizes of the first input, which is a batch of images.
func (c *call) image() []ir.Dim {
	s := c.dims(c.x(0))
	if len(s) != 4 {
		c.fail("an image of shape %v", s)
	}
	return s
}

// block returns the size of blocks of an image.
func (c *call) block() ir.Dim {
	b := c.int("blocksize", 1)
	if b <= 0 {
		c.fail("blocks of %d", b)
	}
	return ir.Known(int64(b))
}

// quotient divides a size, which has to be a multiple.
func (c *call) quotient(d, by ir.Dim) ir.Dim {
	q, ok := d.Exactly(by)
	switch _, number := d.Number(); {
	case !ok && number:
		c.fail("%v is no multiple of %v", d, by)
	case !ok:
		c.fail("%w: whether %v is a multiple of %v", ErrSizes, d, by)
	}
	return q
}
