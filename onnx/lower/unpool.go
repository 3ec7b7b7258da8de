package lower

import (
	"slices"

	"github.com/nnopt/nnopt/onnx/ir"

	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

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
