package tensorpass

import (
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// dimensionRules are the rules of dimensions and shapes.
var dimensionRules = goRules{
	"local_dimshuffle_lift":       {onDimShuffle, nil, 2, dimShuffleLift},
	"local_dimshuffle_subtensor":  {onDimShuffle, of(onSubtensor), 2, through[*tensor.SubtensorOp](true, dimShuffleSubtensor)},
	"local_useless_reshape":       {onReshape, nil, 0, uselessReshape},
	"local_reshape_to_dimshuffle": {onReshape, nil, 0, reshapeToDimShuffle},
	"local_dimshuffle_of_reshape": {onDimShuffle, of(onReshape), 2, through[tensor.ReshapeOp](true, dimShuffleOfReshape)},
	"local_dimshuffle_of_alloc":   {onDimShuffle, of(onAlloc), 2, dimShuffleOfAlloc(false)},
	"local_shape_i_to_shape":      {onType[tensor.MakeVectorOp](), of(onType[tensor.ShapeIOp]()), 2, shapeIToShape},
	"local_shape_to_shape_i":      {onOp(tensor.ShapeOp{}), nil, 0, shapeToShapeI},
	"local_Unique_lift":           {onOp(tensor.UniqueOp{}), nil, 2, uniqueOfRepeated},
	"local_track_shape_i":         {onType[tensor.ShapeIOp](), nil, 0, trackShapeI},
}

var onDimShuffle, onReshape = onType[tensor.DimShuffleOp](), onType[tensor.ReshapeOp]()

func dimShuffleLift(c *rewrite.Context, n *apply) (result, error) {
	op, x := opOf[tensor.DimShuffleOp](n), n.Inputs()[0]
	order := op.NewOrder()
	moved := len(order) != typeOf(x).NDim()
	for d, from := range order { // dimensions of size 1 may be dropped and added, and change places
		one := !moved && typeOf(x).Dim(d) == 1 && (from == array.NewAxis || typeOf(x).Dim(from) == 1)
		moved = moved || from != d && !one
	}
	if !moved {
		return rewrite.Replace(x), nil
	}
	a := x.Owner()
	if a == nil {
		return c.Miss("the argument is an input or a constant"), nil
	}
	switch inner := a.Op().(type) {
	case tensor.DimShuffleOp:
		return replace(c, n, shuffled(x, op))
	case tensor.Elemwise:
		if !usedOnce(x) || inner.Inplace != 0 {
			return c.Miss("the argument has other uses"), nil
		}
		return replace(c, n, again(a, mapped(a.Inputs(), func(v *variable) *variable { return shuffled(v, op) })...))
	}
	return c.Miss("the argument is neither element-wise nor a DimShuffle"), nil
}

// shuffled applies a DimShuffle that is known to fit the shape that v broadcasts to. It makes one
// of two DimShuffles.
func shuffled(v *variable, op tensor.DimShuffleOp) *variable {
	if a := tensor.ConstantOf(v); a != nil && a.Len() == 1 && v.Name() == "" {
		return tensor.PadLeft(tensor.Constant(a.Reshape()), len(op.NewOrder()))
	}
	if a, inner, ok := owner[tensor.DimShuffleOp](v); ok {
		return tensor.DimShuffle(a.Inputs()[0], op.Compose(inner).NewOrder()...)
	}
	return tensor.DimShuffle(v, op.NewOrder()...)
}

func shapeToShapeI(c *rewrite.Context, n *apply) (result, error) {
	return replace(c, n, tensor.MakeVector(tensor.ShapesOf(c.Graph()).Shape(n.Inputs()[0])...))
}

func trackShapeI(c *rewrite.Context, n *apply) (result, error) {
	x, op := n.Inputs()[0], opOf[tensor.ShapeIOp](n)
	if x.Owner() == nil && typeOf(x).Dim(int(op.D)) == tensor.Unknown && !x.IsConstant() {
		return c.Miss("%v is an input", x), nil
	}
	size := tensor.ShapesOf(c.Graph()).Dim(x, int(op.D))
	if a, o, ok := owner[tensor.ShapeIOp](size); ok && o == op && a.Inputs()[0] == x {
		return c.Miss("nothing else is known about the size"), nil
	}
	return replace(c, n, size)
}

// dimShuffleOfAlloc returns the function of local_dimshuffle_alloc, for new leading dimensions, or that
// of local_dimshuffle_of_alloc, which leaves those to local_canonicalize_alloc, which undoes them.
func dimShuffleOfAlloc(pads bool) transform {
	return through[tensor.AllocOp](!pads, func(_ *rewrite.Context, n, a *apply) *variable {
		op, ndim := opOf[tensor.DimShuffleOp](n), typeOf(a.Out()).NDim()
		if op.PadsLeft(ndim) != pads {
			return nil
		}
		var sizes []*variable
		for _, d := range op.NewOrder() {
			if d == array.NewAxis {
				sizes = append(sizes, tensor.Int(1))
			} else {
				sizes = append(sizes, a.Inputs()[1+d])
			}
		}
		return refilled(stripPadding(shuffled(tensor.PadLeft(a.Inputs()[0], ndim), op)), sizes)
	})
}

func shapeIToShape(c *rewrite.Context, n *apply) (result, error) {
	var x *variable
	for _, v := range n.Inputs() {
		if a, _, ok := owner[tensor.ShapeIOp](v); ok {
			x = a.Inputs()[0]
		}
	}
	if x == nil || len(n.Inputs()) < 2 || typeOf(x).NDim() != len(n.Inputs()) {
		return c.Miss("they are not the sizes of a tensor of several dimensions"), nil
	}
	for d, v := range n.Inputs() {
		a, op, ok := owner[tensor.ShapeIOp](v)
		size := typeOf(x).Dim(d)
		known := v.IsConstant() && size != tensor.Unknown && is(v, float64(size))
		if !known && !(ok && int(op.D) == d && usedOnce(v) && a.Inputs()[0] == x) {
			return c.Miss("element %d is not such a size, or has other uses", d), nil
		}
	}
	return replace(c, n, tensor.Shape(x))
}

// uniqueOfRepeated looks for an argument that has the same elements.
func uniqueOfRepeated(c *rewrite.Context, n *apply) (result, error) {
	v := n.Inputs()[0]
	if a := elem(v, array.Second); a != nil && repeated(a.Inputs()[1], v) {
		return replace(c, n, tensor.Unique(a.Inputs()[1]))
	}
	if a, _, ok := owner[tensor.AllocOp](v); ok && repeated(a.Inputs()[0], v) {
		return replace(c, n, tensor.Unique(a.Inputs()[0]))
	}
	a, op, ok := owner[tensor.AdvancedSubtensorOp](v)
	if ok && op.K == 1 {
		if r, _, ok := owner[tensor.RepeatIndexOp](a.Inputs()[1]); ok && allPositive(r.Inputs()[0]) {
			return replace(c, n, tensor.Unique(a.Inputs()[0]))
		}
	}
	if !ok || op.K != 1 {
		return c.Miss("the argument repeats nothing, as far as is known"), nil
	}
	x := a.Inputs()[0]
	size := typeOf(x).Dim(0)
	places, ok := tensor.PlacesOf(x, a.Inputs()[1:])
	if at, _ := places.Last(); !ok || size == tensor.Unknown || len(at) < size {
		return c.Miss("not all rows are picked, as far as is known"), nil
	}
	return replace(c, n, tensor.Unique(x))
}

// repeated reports whether no element of x is missing in v, to which it is broadcast: what is repeated
// is so at least once.
func repeated(x, v *variable) bool {
	pad := typeOf(v).NDim() - typeOf(x).NDim()
	for d, size := range typeOf(v).Shape() {
		if size <= 0 && (d < pad || typeOf(x).Dim(d-pad) == 1) { // or is not known
			return false
		}
	}
	return true
}

// allPositive reports whether v is a constant without elements below 1.
func allPositive(v *variable) bool {
	a := tensor.ConstantOf(v)
	if a == nil {
		return false
	}
	for k := range a.Len() {
		if a.Int(k) < 1 {
			return false
		}
	}
	return true
}
