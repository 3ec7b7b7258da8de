package ir

import (
	"math"
	"math/bits"
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

// standardWindows are operators of windows that move over images, and others of images.
var standardWindows = slices.Concat(
	[]Operator{
		{Type: "Conv", MinInputs: 2, MaxInputs: 3, Infer: func(c *Call) { c.conv(c.elemOf(0, 1), 0, 1, 2) }},
		{Type: "ConvInteger", MinInputs: 2, MaxInputs: 4, Infer: func(c *Call) { c.conv(onnx.Int32, 0, 1, none) }},
		{Type: "QLinearConv", MinInputs: 8, MaxInputs: 9, Infer: func(c *Call) { c.conv(c.Elem(7), 0, 3, 8) }},
		{Type: "DeformConv", MinInputs: 3, MaxInputs: 5, Infer: func(c *Call) { c.conv(c.elemOf(0, 1), 0, 1, 3) }},
		{Type: "ConvTranspose", MinInputs: 2, MaxInputs: 3, Infer: inferConvTranspose},
		{Type: "MaxPool", MinInputs: 1, MaxInputs: 1, Infer: inferPool},
		{Type: "AveragePool", MinInputs: 1, MaxInputs: 1, Infer: inferPool},
		{Type: "LpPool", MinInputs: 1, MaxInputs: 1, Infer: inferPool},
		{Type: "MaxUnpool", MinInputs: 2, MaxInputs: 3, Infer: inferMaxUnpool},
		{Type: "MaxRoiPool", MinInputs: 2, MaxInputs: 2, Infer: func(c *Call) {
			x, rois := c.sizesOf(0, 4), c.sizesOf(1, 2)
			shape := c.Op.Ints("pooled_shape")
			c.failIf(len(shape) != 2, "pooled_shape is %v", shape)
			c.Set(0, NewType(c.Elem(0), rois[0], x[1], Known(shape[0]), Known(shape[1])))
		}},
		{Type: "RoiAlign", MinInputs: 3, MaxInputs: 3, Infer: func(c *Call) {
			x, rois, batch := c.sizesOf(0, 4), c.sizesOf(1, 2), c.sizesOf(2, 1)
			c.Set(0, NewType(c.Elem(0), c.meet(rois[0], batch[0]), x[1], Known(c.Op.Int("output_height", 1)), Known(c.Op.Int("output_width", 1))))
		}},
		{Type: "GridSample", MinInputs: 2, MaxInputs: 2, Infer: inferGridSample},
		{Type: "AffineGrid", MinInputs: 2, MaxInputs: 2, Infer: inferAffineGrid},
		{Type: "Col2Im", MinInputs: 3, MaxInputs: 3, Infer: inferCol2Im},
		{Type: "Resize", MinInputs: 1, MaxInputs: 4, Infer: inferResize},
		{Type: "Upsample", MinInputs: 2, MaxInputs: 2, Infer: inferResize},
		{Type: "CausalConvWithState", MinInputs: 2, MaxInputs: 4, Body: causalConv},
		{Type: "ImageDecoder", MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) { c.Set(0, NewType(onnx.Uint8, unknowns(3)...)) }},
	},
	named(Operator{MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) {
		dims, ranked := c.shape(0)
		for i := 2; i < len(dims); i++ {
			dims[i] = Known(1)
		}
		c.Set(0, tensor(c.Elem(0), dims, ranked))
	}}, "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"),
)

// A slide is how a window moves over the dimensions of an image.
type slide struct {
	strides, dilations []int64
	before, after      []int64
	auto               string
	ceil               bool
}

// maxStep bounds strides, dilations, windows and padding, so that what is computed with them does not
// overflow.
const maxStep = 1 << 31

func (c *Call) slide(n int) slide {
	s := slide{auto: c.Op.Text("auto_pad", "NOTSET"), ceil: c.Op.Int("ceil_mode", 0) != 0}
	s.strides, s.dilations = c.listOf("strides", n, 1, 1), c.listOf("dilations", n, 1, 1)
	pads := c.listOf("pads", 2*n, 0, -maxStep)
	// Beside auto_pad, pads mean nothing.
	if s.auto != "NOTSET" && s.auto != "" {
		pads = make([]int64, 2*n)
	}
	s.before, s.after = pads[:n], pads[n:]
	return s
}

// listOf returns an attribute of n numbers, or so many times otherwise if it is left out.
func (c *Call) listOf(name string, n int, otherwise, least int64) []int64 {
	a := c.Op.Attribute(name)
	if a == nil || len(a.Ints) == 0 {
		return slices.Repeat([]int64{otherwise}, n)
	}
	c.failIf(len(a.Ints) != n, "%s has %d numbers, not %d", name, len(a.Ints), n)
	for _, v := range a.Ints {
		c.failIf(v < least || v > maxStep, "%s has the number %d", name, v)
	}
	return a.Ints
}

// windows returns how many windows there are along dimension i of size n.
func (c *Call) windows(s slide, i int, n, kernel Dim) Dim {
	stride := Known(s.strides[i])
	up := Known(s.strides[i] - 1)
	switch s.auto {
	case "SAME_UPPER", "SAME_LOWER":
		// By definition: the padding follows from it, whatever the window is.
		return n.Plus(up).over(stride)
	case "NOTSET", "", "VALID":
	default:
		c.Fail("auto_pad is %.100q", s.auto)
	}
	extent := kernel.Minus(Known(1)).Times(Known(s.dilations[i])).Plus(Known(1))
	room := n.Plus(Known(s.before[i] + s.after[i])).Minus(extent)
	count := room.over(stride).Plus(Known(1))
	if v, ok := room.Number(); ok && v < 0 {
		if v, _ := count.Number(); v < 0 {
			c.Fail("a window of size %v is larger than %v with its padding", extent, n)
		}
		return UnknownDim // some compute a window that does not fit
	}
	if !s.ceil {
		return count
	}
	more := room.Plus(up).over(stride).Plus(Known(1))
	if s.auto == "VALID" && !more.Same(count) {
		return UnknownDim // what ONNX says is not what is done
	}
	// The last window has to start inside, or in the padding in front.
	excess, ok := extent.Number()
	switch excess = s.after[i] - excess + s.strides[i]; {
	case !ok:
		return UnknownDim
	case excess <= 0:
		return more
	case excess <= s.strides[i]:
		return more.min(n.Plus(Known(s.before[i])).Plus(up).over(stride))
	}
	return UnknownDim
}

// none stands for an input that an operator does not have.
const none = -1

// conv infers a convolution of input x with weights w and a bias.
func (c *Call) conv(elem onnx.DataType, x, w, bias int) {
	kernel := c.Op.Ints("kernel_shape")
	in, weights, n := c.convolved(elem, x, w)
	c.failIf(len(kernel) > 0 && len(kernel) != n, "kernel_shape is %v for %d dimensions", kernel, n)
	group := c.group()
	if inner := weights[1].Times(group); inner.Differs(in[1]) {
		c.Fail("the input has %v channels, and the weights %v in %v groups", in[1], weights[1], group)
	}
	if bias != none {
		if b := c.sizesOf(bias, 1); b[0].Differs(weights[0]) {
			c.Fail("a bias of %v elements for %v channels", b[0], weights[0])
		}
	}
	s := c.slide(n)
	out := []Dim{in[0], weights[0]}
	for i := range n {
		size := weights[2+i]
		if len(kernel) > 0 {
			size = c.meet(size, Known(kernel[i]))
		}
		out = append(out, c.windows(s, i, in[2+i], size))
	}
	c.Set(0, NewType(elem, out...))
}

// convolved returns the shapes of an input and of weights of a convolution, and how many dimensions there are besides
// batches and channels. If neither says that nor kernel_shape does, Infer ends.
func (c *Call) convolved(elem onnx.DataType, x, w int) (in, weights []Dim, n int) {
	in, ranked := c.shape(x)
	weights, too := c.shape(w)
	switch kernel := c.Op.Ints("kernel_shape"); {
	case ranked && too && len(in) != len(weights):
		c.Fail("weights of %d dimensions for %d", len(weights), len(in))
	case ranked && !too:
		weights = unknowns(len(in))
	case too && !ranked:
		in = unknowns(len(weights))
	case !ranked && (kernel == nil || len(kernel) > maxRank):
		c.anyShape(elem)
	case !ranked:
		in, weights = unknowns(len(kernel)+2), unknowns(len(kernel)+2)
	}
	if n = len(in) - 2; n < 1 {
		c.Fail("a convolution of %d dimensions; there are batches and channels, and at least one more", len(in))
	}
	return in, weights, n
}

func (c *Call) group() Dim {
	g := c.Op.Int("group", 1)
	c.failIf(g < 1, "%d groups", g)
	return Known(g)
}

func inferConvTranspose(c *Call) {
	elem := c.elemOf(0, 1)
	in, weights, n := c.convolved(elem, 0, 1)
	c.failIf(in[1].Differs(weights[0]), "the input has %v channels, and the weights %v", in[1], weights[0])
	out := []Dim{in[0], weights[1].Times(c.group())}
	if b := c.sizesOf(2, 1); b[0].Differs(out[1]) {
		c.Fail("a bias of %v elements for %v channels", b[0], out[1])
	}
	s := c.slide(n)
	more := c.listOf("output_padding", n, 0, 0)
	kernel := c.listOf("kernel_shape", n, -1, 0)
	shape := c.Op.Ints("output_shape")
	c.failIf(len(shape) != 0 && len(shape) != n && len(shape) != n+2, "output_shape is %v for %d dimensions", shape, n)
	for i := range n {
		size := weights[2+i]
		if kernel[i] >= 0 {
			size = c.meet(size, Known(kernel[i]))
		}
		stride := Known(s.strides[i])
		switch {
		case len(shape) > 0:
			// The list may have batches and channels in front.
			out = append(out, Known(shape[len(shape)-n+i]))
		case s.auto == "SAME_UPPER" || s.auto == "SAME_LOWER":
			// As in a Conv the padding follows from the size, here a stride for each element.
			out = append(out, in[2+i].Times(stride))
		default:
			extent := size.Minus(Known(1)).Times(Known(s.dilations[i])).Plus(Known(1))
			d := in[2+i].Minus(Known(1)).Times(stride).Plus(Known(more[i] - s.before[i] - s.after[i])).Plus(extent)
			c.notNegative(d)
			out = append(out, d)
		}
	}
	c.Set(0, NewType(elem, out...))
}

func inferPool(c *Call) {
	kernel := c.Op.Ints("kernel_shape")
	c.failIf(len(kernel) == 0, "there is no kernel_shape")
	if len(kernel) > maxRank {
		c.Set(0, AnyShape(c.Elem(0)))
		c.Set(1, AnyShape(onnx.Int64))
		return
	}
	out := c.sizesOf(0, len(kernel)+2)
	s := c.slide(len(kernel))
	for i, k := range kernel {
		c.failIf(k < 1 || k > maxStep, "kernel_shape is %v", kernel)
		out[2+i] = c.windows(s, i, out[2+i], Known(k))
	}
	c.Set(0, NewType(c.Elem(0), out...))
	c.Set(1, NewType(onnx.Int64, out...))
}

func inferMaxUnpool(c *Call) {
	kernel := c.Op.Ints("kernel_shape")
	n := len(kernel)
	sizes, ok := c.elements(2)
	switch {
	case ok:
		c.Set(0, NewType(c.Elem(0), sizes...))
		return
	case n > maxRank:
		c.anyShape(c.Elem(0))
	case c.has(2):
		c.Set(0, NewType(c.Elem(0), unknowns(n+2)...))
		return
	}
	out := c.sizesOf(0, n+2)
	s := c.slide(n)
	for i, k := range kernel {
		out[2+i] = out[2+i].Minus(Known(1)).Times(Known(s.strides[i])).Plus(Known(k)).Minus(Known(s.before[i])).Minus(Known(s.after[i]))
		c.notNegative(out[2+i])
	}
	c.Set(0, NewType(c.Elem(0), out...))
}

// inferCol2Im: each column has a block of all channels.
func inferCol2Im(c *Call) {
	x := c.sizesOf(0, 3)
	image, ok := c.elements(1)
	block, known := c.elements(2)
	if !ok {
		if !known {
			c.anyShape(c.Elem(0))
		}
		image = unknowns(len(block))
	}
	channels := UnknownDim
	if known {
		c.failIf(len(block) != len(image), "an image of %d dimensions, and blocks of %d", len(image), len(block))
		channels = c.exactly(x[1], product(block))
	}
	c.Set(0, NewType(c.Elem(0), append([]Dim{x[0], channels}, image...)...))
}

// inferGridSample: the grid has a position for each pixel of the result.
func inferGridSample(c *Call) {
	x, ranked := c.shape(0)
	grid, too := c.shape(1)
	c.sameRank(0, 1)
	switch {
	case !ranked && !too:
		c.Set(0, AnyShape(c.Elem(0)))
		return
	case !ranked:
		x = unknowns(len(grid))
	case !too:
		grid = unknowns(len(x))
	}
	n := len(x)
	c.failIf(n < 3, "an image of %d dimensions; there are batches and channels, and at least one more", n)
	c.meet(grid[n-1], Known(int64(n-2)))
	c.Set(0, NewType(c.Elem(0), append([]Dim{c.meet(x[0], grid[0]), x[1]}, grid[1:n-1]...)...))
}

func inferAffineGrid(c *Call) {
	theta := c.sizesOf(0, 3)
	size := c.listed(1, c.Elem(0))
	n := len(size)
	c.failIf(n != 4 && n != 5, "an image of %d dimensions", n)
	out := []Dim{c.meet(size[0], theta[0])}
	out = append(out, size[2:]...)
	c.Set(0, NewType(c.Elem(0), append(out, Known(int64(n-2)))...))
}

// inferResize infers Resize and Upsample. Resize of opset 10, and Upsample, have no roi and no sizes.
func inferResize(c *Call) {
	elem := c.Elem(0)
	dims, ranked := c.shape(0)
	scales, sizes := 2, 3
	if c.numInputs() <= 2 {
		scales, sizes = 1, 3
	}
	axes := c.Op.Ints("axes")
	if !ranked {
		n := c.count(sizes)
		if n < 0 || len(axes) > 0 {
			c.anyShape(elem)
		}
		dims = unknowns(n)
	}
	at := c.axesOf(axes, c.Op.Attribute("axes") != nil, len(dims))
	// A list without elements counts as left out.
	if c.has(sizes) && c.count(sizes) != 0 {
		c.resizeTo(dims, at, sizes)
	} else {
		list, ok := c.floats(scales)
		c.failIf(ok && len(list) != len(at), "%d scales for %d axes", len(list), len(at))
		for i, a := range at {
			if !ok {
				dims[a] = UnknownDim
				continue
			}
			// The form that fails for NaN, too.
			c.failIf(!(list[i] > 0), "a scale of %g", list[i])
			dims[a] = scaled(dims[a], list[i])
		}
	}
	c.Set(0, NewType(elem, dims...))
}

// resizeTo sets sizes along axes to those that an input has.
func (c *Call) resizeTo(dims []Dim, axes []int, input int) {
	sizes, ok := c.elements(input)
	if !ok {
		sizes = unknowns(len(axes))
	}
	c.failIf(len(sizes) != len(axes), "%d sizes for %d axes", len(sizes), len(axes))
	policy := c.Op.Text("keep_aspect_ratio_policy", "stretch")
	scale := math.NaN() // of all axes, if sizes are bounds
	known := true
	for i, a := range axes {
		n, ok := sizes[i].Number()
		m, too := dims[a].Number()
		if known = known && ok && too && m > 0; !known {
			continue
		}
		s := float64(n) / float64(m)
		if i == 0 || policy == "not_larger" && s < scale || policy == "not_smaller" && s > scale {
			scale = s
		}
	}
	for i, a := range axes {
		c.notNegative(sizes[i])
		if policy == "stretch" {
			dims[a] = sizes[i]
			continue
		}
		n, _ := dims[a].Number()
		dims[a] = UnknownDim
		// Rounding is up at a half, of which floating point may be a bit off.
		if x := float64(scale * float64(n)); known && math.Abs(x-math.Floor(x)-0.5) > 1e-4 && x < 1<<20 {
			dims[a] = Known(int64(math.Floor(x + 0.5)))
		}
	}
}

// scaled returns the largest integer that is not larger than a size times a scale, a float32. For a size
// that is no number it is known if the scale is a fraction of a power of two, with which floating point
// is exact.
func scaled(d Dim, scale float64) Dim {
	if n, ok := d.Number(); ok {
		x := math.Floor(scale * float64(n))
		// Runtimes compute it with floats of 32 or of 64 bits. Where these disagree nothing is known.
		if y := float64(float32(scale) * float32(n)); x == math.Floor(y) && math.Abs(x) < 1<<53 {
			return Known(int64(x))
		}
		return UnknownDim
	}
	const small = 1 << 12
	for shift := range bits.Len(small) {
		if p := math.Ldexp(scale, shift); p == math.Trunc(p) && p < small {
			return d.Times(Known(int64(p))).over(Known(1 << shift))
		}
	}
	return UnknownDim
}
