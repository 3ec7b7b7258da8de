package lower

import (
	"math"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

type gridOptions struct {
	Mode, Padding string
	Corners       bool
}

// gridSample lowers GridSample: of opset 16 for images, later for any number of dimensions.
func (c *call) gridSample() []*value {
	mode := c.oneOf("mode", "linear", "linear", "cubic", "nearest", "bilinear", "bicubic")
	p := gridOptions{strings.TrimPrefix(mode, "bi"), c.oneOf("padding_mode", "zeros", "zeros", "border", "reflection"), c.bool("align_corners", false)}
	return c.like(routine(c, "GridSample", gridSampled, p, []variable{c.floats(0), c.floats(1)}, tensor.NewType(array.Float64, c.madeShape()...))[0])
}

// gridSampled reads x, [N, C, …], at the places of a grid, [N, …, D], whose last numbers are the place
// in the last dimension first, from -1 to 1.
func gridSampled(p gridOptions, in []*array.Array) ([]*array.Array, error) {
	x, grid := array.Slice[float64](in[0]), array.Slice[float64](in[1])
	xs, gs := in[0].Shape(), in[1].Shape()
	sizes := xs[2:]
	dims, size, points := len(sizes), product(sizes), product(gs[1:len(gs)-1])
	shape := append(slices.Clone(xs[:2]), gs[1:len(gs)-1]...)
	y := make([]float64, product(shape))
	taps := make([][]tap, dims)
	for n := range xs[0] {
		for i := range points {
			place := grid[(n*points+i)*dims:]
			// The place is the same in all channels, so what it is made of is found once.
			for d := range dims {
				taps[d] = p.taps(taps[d][:0], place[dims-1-d], sizes[d])
			}
			for c := range xs[1] {
				at := n*xs[1] + c
				y[at*points+i] = sumTaps(x[at*size:][:size], sizes, taps)
			}
		}
	}
	return []*array.Array{array.Of(y, shape...)}, nil
}

// A tap is an element of a dimension, with its weight.
type tap struct {
	at     int
	weight float64
}

// sumTaps adds up elements, weighted by the taps of all dimensions.
func sumTaps(x []float64, sizes []int, taps [][]tap) float64 {
	if len(taps) == 0 {
		return x[0]
	}
	size, sum := product(sizes[1:]), 0.0
	for _, t := range taps[0] {
		sum += float64(t.weight * sumTaps(x[t.at*size:][:size], sizes[1:], taps[1:]))
	}
	return sum
}

// far is beyond all sizes, and small enough to be an integer.
const far = 1 << 40

// taps appends the elements that make up a place in a dimension. What lies outside is clamped or
// mirrored element by element: interpolation of mirrored elements is mirrored interpolation.
func (p gridOptions) taps(list []tap, place float64, n int) []tap {
	at := (float64((place+1)*float64(n)) - 1) / 2
	if p.Corners {
		at = (place + 1) / 2 * float64(n-1)
	}
	return p.tapsAt(list, at, n)
}

// tapsAt is taps for a place among the elements.
func (p gridOptions) tapsAt(list []tap, at float64, n int) []tap {
	// NaN is far outside, too: it must not become an index.
	if at = min(max(at, -far), far); at != at {
		at = -far
	}
	floor := math.Floor(at)
	weights := [4]float64{1}
	first, count := int(math.RoundToEven(at)), 1
	switch p.Mode {
	case "linear":
		first, count = int(floor), 2
		weights = [4]float64{1 - (at - floor), at - floor}
	case "cubic":
		first, count = int(floor)-1, 4
		for k := range weights {
			weights[k] = cubic(at-float64(first+k), -0.75)
		}
	}
	for k := range count {
		if i, ok := p.inside(first+k, n); ok {
			list = append(list, tap{i, weights[k]})
		}
	}
	return list
}

// inside returns the element of n that an element outside is taken from, if there is one.
func (p gridOptions) inside(i, n int) (int, bool) {
	switch {
	case i >= 0 && i < n:
		return i, true
	case n == 0 || p.Padding == "zeros":
		return 0, false
	case p.Padding == "border":
		return min(max(i, 0), n-1), true
	}
	// Mirrored at the middle of the last elements, or at their edges.
	period := 2 * n
	if p.Corners {
		period -= 2
	}
	if period == 0 {
		return 0, true
	}
	i = (i%period + period) % period
	if i >= n {
		i = 2*n - 1 - i
		if p.Corners {
			i--
		}
	}
	return i, true
}

// cubic is the kernel of cubic convolution with parameter a (Keys, 1981).
func cubic(x, a float64) float64 {
	x = math.Abs(x)
	switch {
	case x <= 1:
		return float64(float64((float64((a+2)*x)-(a+3))*x)*x) + 1
	case x < 2:
		return float64((float64((float64(a*x)-float64(5*a))*x)+float64(8*a))*x) - float64(4*a)
	}
	return 0
}

// affineGrid makes grids for GridSample: places of an image, turned and moved.
func (c *call) affineGrid() []*value {
	theta, size := c.shape(c.x(0)), c.ints(1)
	dims := len(size) - 2
	if dims != 2 && dims != 3 || !slices.Equal(theta, []int{size[0], dims, dims + 1}) {
		c.fail("transforms of shape %v for an image of %v", theta, size)
	}
	image := size[2:]
	c.bounded(append([]int{size[0], dims + 1}, image...))
	n := product(image)
	places := make([]float64, n*(dims+1))
	for i := range n {
		rest := i
		for d := dims - 1; d >= 0; d-- {
			k, m := float64(rest%image[d]), float64(image[d])
			rest /= image[d]
			at := (2*k+1)/m - 1
			switch align := c.bool("align_corners", false); {
			case align && m > 1:
				at = 2*k/(m-1) - 1
			case align:
				at = 1 // two corners in one place, of which ONNX Runtime takes the last
			}
			// The last dimension comes first, as GridSample reads places.
			places[(dims-1-d)*n+i] = at
		}
		places[dims*n+i] = 1
	}
	t := c.floats(0)
	y := tensor.Matmul(t, tensor.Constant(array.Of(places, dims+1, n)))
	return c.out(c.reshape(tensor.DimShuffle(y, 0, 2, 1), append(append([]int{size[0]}, image...), dims)), c.elem(0))
}
