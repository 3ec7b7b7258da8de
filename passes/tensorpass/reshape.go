package tensorpass

import (
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

func reshapeChain(c *rewrite.Context, n *apply) (result, error) {
	a, _, ok := owner[tensor.ReshapeOp](n.Inputs()[0])
	if !ok {
		return c.Miss("the argument is not a reshape"), nil
	}
	y, err := tensor.Try(func() *variable { return tensor.ReshapeTo(a.Inputs()[0], n.Inputs()[1], typeOf(n.Out()).NDim()) })
	if err != nil || !n.Out().Type().Accepts(y.Type()) {
		return c.Miss("the sizes do not fit"), nil
	}
	return rewrite.Replace(y), nil
}

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
	unknown := 0 // if all sizes but one are equal, so is that one
	for d, size := range dims {
		if !sameSize(size, s.Dim(x, d)) {
			unknown++
		}
	}
	if unknown > 1 || unknown == 1 && len(dims) > 1 && maybeEmpty(x) {
		return c.Miss("%d sizes are not known to be the same", unknown), nil
	}
	return rewrite.Replace(x), nil
}

// maybeEmpty reports whether x may have no elements, so that its shape does not follow from all
// sizes but one.
func maybeEmpty(x *variable) bool {
	for _, n := range typeOf(x).Shape() {
		if n == tensor.Unknown || n == 0 {
			return true
		}
	}
	return false
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

// liftReshape returns the function of local_reshape_lift, or that of local_flatten_lift, which
// makes one dimension of all.
func liftReshape(flatten bool) transform {
	return func(c *rewrite.Context, n *apply) (result, error) {
		v, shape := n.Inputs()[0], n.Inputs()[1]
		a := v.Owner()
		if _, ok := elemOf(a); !ok || len(a.Inputs()) != 1 || !usedOnce(v) {
			return c.Miss("the argument is not a function of one argument, with a single use"), nil
		}
		if dims, ok := tensor.ElementsOf(shape); flatten != (ok && len(dims) == 1 && is(dims[0], -1)) {
			return c.Miss("local_reshape_lift or local_flatten_lift rewrites it"), nil
		}
		return replace(c, n, again(a, again(n, a.Inputs()[0], shape)))
	}
}
