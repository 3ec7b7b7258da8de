package tensorpass

import (
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
)

var onReshape = []rewrite.Track{rewrite.TrackType[tensor.ReshapeOp]()}

// reshapeChain is local_reshape_chain.
func reshapeChain() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_reshape_chain", Doc: "of two reshapes the last one is enough: Reshape(Reshape(x, s), t) → Reshape(x, t)", On: onReshape, Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op := n.Op().(tensor.ReshapeOp)
			a, _, ok := owner[tensor.ReshapeOp](n.Inputs()[0])
			if !ok {
				return c.Miss("the argument is no reshape"), nil
			}
			y, err := tensor.Try(func() *vari { return tensor.ReshapeTo(a.Inputs()[0], n.Inputs()[1], len(typ(n.Out()).Shape())) })
			if err != nil || !n.Out().Type().Accepts(y.Type()) {
				return c.Miss("the sizes do not fit: %v", op), nil
			}
			return rewrite.Replace(y), nil
		},
	}
}

// uselessReshape is local_useless_reshape.
func uselessReshape() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_useless_reshape", Doc: "a reshape to the shape that the argument has is left out: Reshape(x, x.shape) → x", On: onReshape,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			x := n.Inputs()[0]
			if !n.Out().Type().Accepts(x.Type()) {
				return c.Miss("the argument is a %v, the result a %v", x.Type(), n.Out().Type()), nil
			}
			if typ(x).NDim() == 1 {
				return rewrite.Replace(x), nil // a vector has but one shape
			}
			if a := n.Inputs()[1].Owner(); a != nil {
				if _, ok := a.Op().(tensor.ShapeOp); ok && a.Inputs()[0] == x {
					return rewrite.Replace(x), nil
				}
			}
			dims, ok := tensor.ElementsOf(n.Inputs()[1])
			if !ok {
				return c.Miss("the sizes can't be seen"), nil
			}
			s := tensor.ShapesOf(c.Graph())
			unknown := 0 // with all others equal one is, too
			for d, size := range dims {
				if !sameSize(size, s.Dim(x, d)) {
					unknown++
				}
			}
			if unknown > 1 || unknown == 1 && len(dims) > 1 && zeroSize(x) {
				return c.Miss("%d sizes are not known to be the same", unknown), nil
			}
			return rewrite.Replace(x), nil
		},
	}
}

// zeroSize reports whether x may have no elements, so that its shape does not follow from all sizes but one.
func zeroSize(x *vari) bool {
	for _, n := range typ(x).Shape() {
		if n == tensor.Unknown || n == 0 {
			return true
		}
	}
	return false
}

// reshapeToDimShuffle is local_reshape_to_dimshuffle.
func reshapeToDimShuffle() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_reshape_to_dimshuffle", Doc: "a reshape that only adds or drops dimensions of size 1 is a DimShuffle: Reshape(x, [1, -1]) → DimShuffle{x,0}(x)", On: onReshape,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			x := n.Inputs()[0]
			order, from := []int{}, []int{}
			for d := range typ(x).NDim() {
				if typ(x).Dim(d) != 1 {
					from = append(from, d)
				}
			}
			for d := range typ(n.Out()).NDim() {
				if typ(n.Out()).Dim(d) == 1 {
					order = append(order, -1)
					continue
				}
				if len(from) == 0 {
					return c.Miss("it has more dimensions that are not known to have size 1"), nil
				}
				order = append(order, from[0])
				from = from[1:]
			}
			if len(from) > 0 || typ(x).NDim()-countOnes(x) > 1 {
				return c.Miss("more than one dimension is not known to have size 1"), nil
			}
			return replace(c, n, tensor.DimShuffle(x, order...))
		},
	}
}

func countOnes(x *vari) int {
	ones := 0
	for _, n := range typ(x).Shape() {
		if n == 1 {
			ones++
		}
	}
	return ones
}

// isFlatten reports whether an apply of a reshape makes one dimension of all.
func isFlatten(n *apply) bool {
	dims, ok := tensor.ElementsOf(n.Inputs()[1])
	return ok && len(dims) == 1 && is(dims[0], -1)
}

// reshapeLift is local_reshape_lift.
func reshapeLift() rewrite.Rule {
	return liftReshape("local_reshape_lift", "a reshape comes before a function of one argument: Reshape(exp(x), s) → exp(Reshape(x, s))", false)
}

// flattenLift is local_flatten_lift.
func flattenLift() rewrite.Rule {
	return liftReshape("local_flatten_lift", "flattening comes before a function of one argument: flatten(exp(x)) → exp(flatten(x))", true)
}

func liftReshape(name, doc string, flatten bool) rewrite.Rule {
	return rewrite.Rule{
		Name: name, Doc: doc, On: onReshape, Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			v := n.Inputs()[0]
			a := v.Owner()
			if _, ok := elemOf(a); !ok || len(a.Inputs()) != 1 || !alone(v) {
				return c.Miss("the argument is no function of one argument that is used here only"), nil
			}
			if isFlatten(n) != flatten {
				return c.Miss("this is the case of another rule"), nil
			}
			x := tensor.MustApply(n.Op().(tensor.ReshapeOp), a.Inputs()[0], n.Inputs()[1])
			return replace(c, n, tensor.MustApply(a.Op().(tensor.Elemwise), x))
		},
	}
}
