package lower

import (
	"slices"

	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

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
