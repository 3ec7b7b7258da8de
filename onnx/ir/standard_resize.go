package ir

import (
	"math"
	"math/bits"
)

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
