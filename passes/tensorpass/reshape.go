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
	unknown, maybeEmpty := 0, false // if all sizes but one are equal, and not 0, so is that one
	for d, size := range dims {
		if sameSize(size, s.Dim(x, d)) {
			maybeEmpty = maybeEmpty || typeOf(x).Dim(d) <= 0 // or unknown
		} else {
			unknown++
		}
	}
	if unknown > 1 || unknown == 1 && maybeEmpty {
		return c.Miss("%d sizes are not known to be the same", unknown), nil
	}
	return rewrite.Replace(x), nil
}

func reshapeToDimShuffle(c *rewrite.Context, n *apply) (result, error) {
	x := n.Inputs()[0]
	from, to := wide(x), wide(n.Out())
	if len(from) > 1 || len(from) != len(to) {
		return c.Miss("several dimensions, or one of the argument or of the result alone, are not known to have size 1"), nil
	}
	order := slices.Repeat([]int{array.NewAxis}, typeOf(n.Out()).NDim())
	for k, d := range to {
		order[d] = from[k]
	}
	return replace(c, n, tensor.DimShuffle(x, order...))
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
