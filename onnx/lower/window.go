package lower

import (
	"slices"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

var windows = map[string]func(c *call) []*value{
	"Conv": func(c *call) []*value {
		w := c.weights(1)
		return c.like(tensor.Conv(c.x(0), c.x(1), c.optional(2), c.slide(w[2:], c.x(0)), c.int("group", 1)))
	},
	"ConvTranspose": func(c *call) []*value {
		w := c.shape(c.x(1))
		c.failIf(len(w) < 3 || ndim(c.x(0)) != len(w), "weights of %d dimensions for %d", len(w), ndim(c.x(0)))
		dims := len(w) - 2
		s := c.slide(w[2:], nil)
		more := c.list("output_padding")
		if more == nil {
			more = make([]int, dims)
		}
		// With a shape, or automatic padding, the padding is what is too much.
		shape := c.list("output_shape")
		auto := c.text("auto_pad", "NOTSET")
		if shape != nil || auto == "SAME_UPPER" || auto == "SAME_LOWER" {
			x, out := c.shape(c.x(0)), c.madeShape()
			s.Before, s.After = make([]int, dims), make([]int, dims)
			for i := range dims {
				full := at(s.Strides, i, 1)*(x[2+i]-1) + more[i] + (w[2+i]-1)*at(s.Dilations, i, 1) + 1
				total := full - out[2+i]
				if total < 0 {
					more[i], total = more[i]-total, 0
				}
				s.Before[i] = total - total/2
				if auto == "SAME_UPPER" {
					s.Before[i] = total / 2
				}
				s.After[i] = total - s.Before[i]
			}
		}
		return c.like(tensor.ConvTranspose(c.x(0), c.x(1), c.optional(2), s, more, c.int("group", 1)))
	},
	"MaxPool": func(c *call) []*value {
		kernel := c.list("kernel_shape")
		s := c.slide(kernel, c.x(0))
		x := c.x(0)
		if !tensor.TypeOf(x).DType().IsFloat() {
			x = tensor.Cast(x, array.Float32)
		}
		out := c.like(tensor.MaxPool(x, kernel, s, c.bool("ceil_mode", false)))
		if c.op.Outputs > 1 {
			places := tensor.MaxPoolPlaces(c.x(0), kernel, s, c.bool("ceil_mode", false))
			if c.int("storage_order", 0) != 0 {
				places = c.inPlanes(c.byColumns(places))
			}
			out = append(out, c.typed(places, onnx.Int64))
		}
		return out
	},
	"AveragePool": func(c *call) []*value {
		kernel := c.list("kernel_shape")
		return c.like(tensor.AveragePool(c.x(0), kernel, c.slide(kernel, c.x(0)), c.bool("ceil_mode", false), c.bool("count_include_pad", false)))
	},
	"LpPool": func(c *call) []*value {
		kernel := c.list("kernel_shape")
		return c.like(tensor.LpPool(c.x(0), c.int("p", 2), kernel, c.slide(kernel, c.x(0)), c.bool("ceil_mode", false)))
	},
	"GlobalAveragePool": func(c *call) []*value { return c.reduce(mean, span(2, ndim(c.x(0)))) },
	"GlobalMaxPool":     func(c *call) []*value { return c.extreme(array.Max, span(2, ndim(c.x(0)))) },
	"GlobalLpPool": func(c *call) []*value {
		norm := euclidean
		switch p := float64(c.int("p", 2)); {
		case p < 1:
			c.fail("the exponent %v", p)
		case p == 1:
			norm = absolute
		case p > 2:
			norm = func(x variable, axes ...int) variable {
				sum := tensor.Sum(tensor.Pow(tensor.Abs(x), number(p, x)), axes...)
				return tensor.Pow(sum, number(1/p, sum))
			}
		}
		return c.reduce(norm, span(2, ndim(c.x(0))))
	},
	"DeformConv": (*call).deformConv,
	"MaxUnpool":  (*call).maxUnpool,
	"Col2Im":     (*call).col2im,
	"GridSample": (*call).gridSample,
	"Resize":     (*call).resize,
	"Upsample":   (*call).resize,
}

// at returns an element of a list, which may be empty.
func at(list []int, i, otherwise int) int {
	if i < len(list) {
		return list[i]
	}
	return otherwise
}

// weights returns the shape of the weights of a convolution.
func (c *call) weights(k int) []int {
	w := c.shape(c.x(k))
	c.failIf(len(w) < 3, "weights of %d dimensions", len(w))
	return w
}

// slide returns how a window of a size moves over x, whose sizes matter for automatic padding only. Without x there is
// none.
func (c *call) slide(kernel []int, x variable) tensor.Slide {
	dims := len(kernel)
	s := tensor.Slide{Strides: c.list("strides"), Dilations: c.list("dilations")}
	c.failIf(dims == 0 || x != nil && ndim(x) != dims+2, "a window of %d dimensions for a %v", dims, x)
	switch auto := c.text("auto_pad", "NOTSET"); auto {
	case "NOTSET", "":
		if pads := c.list("pads"); pads != nil {
			c.failIf(len(pads) != 2*dims, "%d numbers of padding for %d dimensions", len(pads), dims)
			s.Before, s.After = slices.Clone(pads[:dims]), slices.Clone(pads[dims:])
		}
	case "VALID":
	case "SAME_UPPER", "SAME_LOWER":
		if x == nil {
			break
		}
		for i, d := range c.dims(x)[2:] {
			stride := max(at(s.Strides, i, 1), 1)
			size := (kernel[i]-1)*at(s.Dilations, i, 1) + 1
			// There is a window for each stride that begins in x. The padding is what they reach beyond
			// it, and its odd element is behind with SAME_UPPER, in front with SAME_LOWER.
			total := size - 1
			if stride > 1 {
				n := c.number(d)
				total = max(0, ((n+stride-1)/stride-1)*stride+size-n)
			}
			before := total / 2
			if auto == "SAME_LOWER" {
				before = total - before
			}
			s.Before, s.After = append(s.Before, before), append(s.After, total-before)
		}
	default:
		c.fail("%w: auto_pad %q", ErrUnsupported, auto)
	}
	return s
}

// inPlanes makes places in all of x of places in its planes.
func (c *call) inPlanes(places variable) variable {
	x := c.shape(c.x(0))
	planes := tensor.Mul(arange(x[0]*x[1]), tensor.Int(product(x[2:])))
	shape := slices.Repeat([]int{1}, len(x))
	shape[0], shape[1] = x[0], x[1]
	return tensor.Add(places, c.reshape(planes, shape))
}
