package tensorpass

import (
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
	}
	if a, _, ok := owner[tensor.ShapeOp](shape); ok && a.Inputs()[0] == x {
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
	order, from := []int{}, []int{} // from has the dimensions of x that may not have size 1
	for d := range typeOf(x).NDim() {
		if typeOf(x).Dim(d) != 1 {
			from = append(from, d)
		}
	}
	if len(from) > 1 {
		return c.Miss("more than one dimension is not known to have size 1"), nil
	}
	for d := range typeOf(n.Out()).NDim() {
		switch {
		case typeOf(n.Out()).Dim(d) == 1:
			order = append(order, array.NewAxis)
		case len(from) == 0:
			return c.Miss("the result has more dimensions that are not known to have size 1"), nil
		default:
			order, from = append(order, from[0]), from[1:]
		}
	}
	if len(from) > 0 {
		return c.Miss("the argument has a dimension that is not known to have size 1"), nil
	}
	return replace(c, n, tensor.DimShuffle(x, order...))
}
