package lower

import (
	"slices"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
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

// byColumns turns places in x, whose last dimension is the fastest, into places in planes whose first dimension is.
func (c *call) byColumns(places variable) variable {
	shape := c.shape(c.x(0))[2:]
	var sum variable
	behind, before := product(shape), 1
	for _, n := range shape {
		n = max(n, 1)
		behind /= n
		part := tensor.Map(array.Mod, tensor.Map(array.IntDiv, places, number(float64(max(behind, 1)), places)), number(float64(n), places))
		part = tensor.Mul(part, number(float64(before), places))
		if before *= n; sum == nil {
			sum = part
		} else {
			sum = tensor.Add(sum, part)
		}
	}
	return sum
}

// maxUnpool puts elements to the places that MaxPool has found in all of its input, whose size follows
// from the windows. A larger output has that in its corner.
func (c *call) maxUnpool() []*value {
	x, kernel := c.shape(c.x(0)), c.list("kernel_shape")
	if len(kernel) == 0 || len(x) != len(kernel)+2 || !slices.Equal(x, c.shape(c.x(1))) {
		c.fail("windows of %v and places of shape %v for %v", kernel, c.shape(c.x(1)), x)
	}
	s := c.slide(kernel, nil)
	shape := slices.Clone(x)
	for d, k := range kernel {
		stride := at(s.Strides, d, 1)
		if stride < 1 || k < 1 || stride > maxMade || k > maxMade {
			c.fail("windows of %v in steps of %v", kernel, s.Strides)
		}
		shape[2+d] = (x[2+d]-1)*stride + k - at(s.Before, d, 0) - at(s.After, d, 0)
	}
	c.bounded(shape)
	flat := tensor.Zeros(tensor.TypeOf(c.x(0)).DType(), tensor.Int(product(shape)))
	y := c.reshape(tensor.SetTake(flat, c.flat(c.x(0)), c.flat(c.index(c.x(1), ir.Known(int64(product(shape)))))), shape)
	if !c.has(2) {
		return c.like(y)
	}
	want := c.ints(2)
	c.failIf(len(want) != len(shape), "an output of shape %v for %v", want, shape)
	c.bounded(want)
	margins := make([]tensor.Margin, len(shape))
	for d, n := range want {
		c.failIf(n < shape[d], "an output of shape %v for %v", want, shape)
		margins[d] = tensor.Margin{Before: tensor.Int(0), After: tensor.Int(n - shape[d])}
	}
	return c.like(tensor.PadValue(y, number(0, y), margins...))
}

// col2im adds up the windows of an image: x is [N, C × elements of a window, windows].
func (c *call) col2im() []*value {
	x, y, block := c.shape(c.x(0)), c.madeShape(1, 2), c.ints(2)
	s, channels, image := c.slide(block, nil), y[1], y[2:]
	c.bounded(block)
	counts := make([]int, len(image))
	for d, n := range image {
		stride, step := at(s.Strides, d, 1), at(s.Dilations, d, 1)
		if stride < 1 || step < 1 || block[d] < 1 {
			c.fail("windows of %v in steps of %v and %v", block, s.Strides, s.Dilations)
		}
		counts[d] = max(0, n+at(s.Before, d, 0)+at(s.After, d, 0)-(block[d]-1)*step-1+stride) / stride
	}
	size, windows := product(block), product(counts)
	c.failIf(x[1]%max(size, 1) != 0 || x[2] != windows, "%d windows of %v for shape %v", windows, block, x)
	// Where elements of windows go depends on sizes alone, so the sum is one over constant places.
	var from, to []int64
	for k := range size * windows {
		if place, ok := imagePlace(k, image, block, counts, s); ok {
			from, to = append(from, int64(k)), append(to, int64(place))
		}
	}
	rows := c.reshape(tensor.DimShuffle(c.reshape(c.x(0), []int{x[0] * channels, size * windows}), 1, 0), []int{size * windows, x[0] * channels})
	zeros := tensor.Zeros(tensor.TypeOf(rows).DType(), tensor.Int(product(image)), tensor.Int(x[0]*channels))
	sum := tensor.IncTake(zeros, tensor.Take(rows, tensor.Constant(array.Of(from, len(from)))), tensor.Constant(array.Of(to, len(to))))
	return c.like(c.reshape(tensor.DimShuffle(sum, 1, 0), y))
}

// imagePlace returns where in an image an element of a window is, if it is inside. k counts the windows
// for each element of a window.
func imagePlace(k int, image, block, counts []int, s tensor.Slide) (int, bool) {
	place, scale := 0, 1
	window, element := k%product(counts), k/product(counts)
	for d := len(image) - 1; d >= 0; d-- {
		i := window%counts[d]*at(s.Strides, d, 1) + element%block[d]*at(s.Dilations, d, 1) - at(s.Before, d, 0)
		if i < 0 || i >= image[d] {
			return 0, false
		}
		window, element = window/counts[d], element/block[d]
		place, scale = place+i*scale, scale*image[d]
	}
	return place, true
}

// A deformation is how the windows of a DeformConv move, in two dimensions. Each element of a window is
// read where its offset moves it.
type deformation struct {
	Kernel, Strides, Dilations, Before, Output [2]int
	Groups                                     int // of channels with offsets of their own
	Mask                                       bool
}

// deformConv lowers DeformConv of images: the elements of all windows, and a product with the weights.
func (c *call) deformConv() []*value {
	x, w, offset := c.shape(c.x(0)), c.shape(c.x(1)), c.shape(c.x(2))
	groups := c.int("group", 1)
	if len(x) != 4 || len(w) != 4 || len(offset) != 4 {
		c.fail("%w: weights of shape %v and offsets of %v for %v", ErrUnsupported, w, offset, x)
	}
	s := c.slide(w[2:], c.x(0))
	p := deformation{Kernel: [2]int(w[2:]), Output: [2]int(c.madeShape()[2:]), Groups: c.int("offset_group", 1), Mask: c.has(4)}
	for d := range 2 {
		p.Strides[d], p.Dilations[d], p.Before[d] = at(s.Strides, d, 1), at(s.Dilations, d, 1), at(s.Before, d, 0)
		if p.Strides[d] < 1 || p.Dilations[d] < 1 || w[2+d] < 1 || p.Output[d] < 1 {
			c.fail("windows of %v in steps of %v and %v for %v", w[2:], s.Strides, s.Dilations, x)
		}
	}
	size, places := w[2]*w[3], p.Output[0]*p.Output[1]
	if groups < 1 || x[1] != w[1]*groups || w[0]%groups != 0 || p.Groups < 1 || x[1]%p.Groups != 0 {
		c.fail("%d groups, and %d of offsets, of weights of shape %v for %v", groups, p.Groups, w, x)
	}
	in := []variable{c.floats(0), c.floats(2)}
	c.checkShape(2, x[0], p.Groups*size*2, p.Output[0], p.Output[1])
	if p.Mask {
		c.checkShape(4, x[0], p.Groups*size, p.Output[0], p.Output[1])
		in = append(in, c.floats(4))
	}
	c.bounded([]int{x[0], x[1] * size, places})
	columns := routine(c, "Deform", deformed, p, in, tensor.NewType(array.Float64, x[0], x[1]*size, places))[0]
	columns = c.reshape(tensor.Cast(columns, tensor.TypeOf(c.x(0)).DType()), []int{x[0], groups, w[1] * size, places})
	y := tensor.Matmul(c.reshape(c.x(1), []int{1, groups, w[0] / groups, w[1] * size}), columns)
	y = c.reshape(y, []int{x[0], w[0], p.Output[0], p.Output[1]})
	if c.has(3) {
		c.checkShape(3, w[0])
		y = tensor.Add(y, channels(c.x(3), 4))
	}
	return c.like(y)
}

func (c *call) checkShape(k int, want ...int) {
	if shape := c.shape(c.x(k)); !slices.Equal(shape, want) {
		c.fail("input %d has shape %v, and should have %v", k, shape, want)
	}
}

// deformed returns what the elements of windows read, [N, channels × elements of a window, windows].
func deformed(p deformation, in []*array.Array) ([]*array.Array, error) {
	x, offsets := array.Slice[float64](in[0]), array.Slice[float64](in[1])
	n, channels, sizes := in[0].Dim(0), in[0].Dim(1), in[0].Shape()[2:]
	size, places, plane := p.Kernel[0]*p.Kernel[1], p.Output[0]*p.Output[1], product(sizes)
	y := make([]float64, n*channels*size*places)
	linear, taps := gridOptions{Mode: "linear", Padding: "zeros"}, make([][]tap, 2)
	each := channels / p.Groups
	for i := range n * p.Groups * size * places {
		place, k, g := i%places, i/places%size, i/places/size%p.Groups
		item := i / places / size / p.Groups
		window, element := [2]int{place / p.Output[1], place % p.Output[1]}, [2]int{k / p.Kernel[1], k % p.Kernel[1]}
		// Channels of a group share their offsets, so places are found once for all of them.
		for d := range 2 {
			at := float64(window[d]*p.Strides[d] - p.Before[d] + element[d]*p.Dilations[d])
			at += offsets[(((item*p.Groups+g)*size+k)*2+d)*places+place]
			taps[d] = linear.tapsAt(taps[d][:0], at, sizes[d])
		}
		weight := 1.0
		if p.Mask {
			weight = in[2].Float(((item*p.Groups+g)*size+k)*places + place)
		}
		for c := g * each; c < (g+1)*each; c++ {
			y[((item*channels+c)*size+k)*places+place] = weight * sumTaps(x[(item*channels+c)*plane:][:plane], sizes, taps)
		}
	}
	return []*array.Array{array.Of(y, n, channels*size, places)}, nil
}
