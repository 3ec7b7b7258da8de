package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

func uselessReshape(c *rewrite.Context, n *apply) (result, error) {
	x, shape := n.Inputs()[0], n.Inputs()[1]
	if !n.Out().Type().Accepts(x.Type()) {
		return c.Miss("the argument is a %v, the result a %v", x.Type(), n.Out().Type()), nil
	}
	if typeOf(x).NDim() == 1 {
		return rewrite.Replace(x), nil // a vector has only one shape
	} else if a, _, ok := owner[tensor.ShapeOp](shape); ok && a.Inputs()[0] == x {
		return rewrite.Replace(x), nil
	}
	dims, ok := tensor.ElementsOf(shape)
	if !ok {
		return c.Miss("the sizes are not in the graph"), nil
	}
	s := tensor.ShapesOf(c.Graph())
	// If all sizes but one are equal, and not 0, so is that one.
	unknown, maybeEmpty, sizes := 0, false, make([]*variable, len(dims))
	for d, size := range dims {
		if sameSize(size, s.Dim(x, d)) {
			maybeEmpty = maybeEmpty || typeOf(x).Dim(d) <= 0 // or unknown
			continue
		}
		unknown++
		if n, ok := intOf(size); !ok || n != -1 {
			sizes[d] = size
		} else {
			maybeEmpty = false // the size would not be known, and reshaping fails
		}
	}
	if unknown > 1 || unknown == 1 && maybeEmpty {
		return c.Miss("%d sizes are not known to be the same", unknown), nil
	}
	return attempt(c, n, func() *variable { return tensor.SpecifySizes(x, sizes...) })
}

// reshapeToDimShuffle also checks a size, where that is all that is left to do.
func reshapeToDimShuffle(c *rewrite.Context, n *apply) (result, error) {
	x := n.Inputs()[0]
	from, to := wide(x), wide(n.Out())
	if len(to) == 0 {
		from = nil // there is one element
	}
	if len(from) != len(to) {
		return c.Miss("not as many dimensions of the argument as of the result may have another size than 1"), nil
	}
	dims, ok := tensor.ElementsOf(n.Inputs()[1])
	s, sizes := tensor.ShapesOf(c.Graph()), make([]*variable, typeOf(x).NDim())
	for d := range sizes {
		if len(to) == 0 {
			sizes[d] = tensor.Int(1)
		}
	}
	unequal, maybeEmpty := 0, false
	order := slices.Repeat([]int{array.NewAxis}, typeOf(n.Out()).NDim())
	for k, d := range to {
		order[d] = from[k]
		size := s.Dim(n.Out(), d)
		if ok {
			size = dims[d]
		}
		if sameSize(s.Dim(x, from[k]), size) || sameSize(s.Dim(x, from[k]), s.Dim(n.Out(), d)) {
			maybeEmpty = maybeEmpty || typeOf(x).Dim(from[k]) <= 0
			continue
		}
		unequal++
		if n, constant := intOf(size); ok && !(constant && n == -1) {
			sizes[from[k]] = size
		}
	}
	if unequal > 1 || unequal == 1 && maybeEmpty {
		return c.Miss("%d sizes are not known to be the same", unequal), nil
	}
	return attempt(c, n, func() *variable { return tensor.DimShuffle(tensor.SpecifySizes(x, sizes...), order...) })
}

// dimShuffleOfReshape reshapes once. The sizes of the new dimensions are known.
func dimShuffleOfReshape(c *rewrite.Context, n, a *apply) *variable {
	order, at := opOf[tensor.DimShuffleOp](n).NewOrder(), 0
	dims, ok := tensor.ElementsOf(a.Inputs()[1])
	if !ok {
		return nil
	}
	var sizes []*variable
	for _, d := range order {
		switch {
		case d == array.NewAxis:
			sizes = append(sizes, tensor.Int(1))
		case d < at:
			return nil // it moves dimensions
		default:
			at = d + 1
			sizes = append(sizes, dims[d])
		}
	}
	return tensor.Reshape(a.Inputs()[0], sizes...)
}

// wide returns the dimensions of x that may not have size 1.
func wide(x *variable) (dims []int) {
	for d, size := range typeOf(x).Shape() {
		if size != 1 {
			dims = append(dims, d)
		}
	}
	return dims
}
