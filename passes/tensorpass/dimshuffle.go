package tensorpass

import (
	"slices"

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
	size := tensor.ShapesOf(c.Graph()).Dim(x, int(op.D))
	if a, o, ok := owner[tensor.ShapeIOp](size); ok && o == op && a.Inputs()[0] == x {
		return c.Miss("nothing else is known about the size"), nil
	} else if isExponent(n.Out()) && size.IsConstant() {
		return c.Miss("a size is no exponent to multiply out"), nil
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

func uselessReshape(c *rewrite.Context, n *apply) (result, error) {
	x, shape := n.Inputs()[0], n.Inputs()[1]
	if !n.Out().Type().Accepts(x.Type()) {
		return c.Miss("the argument is a %v, the result a %v", x.Type(), n.Out().Type()), nil
	}
	if a, _, ok := owner[tensor.ShapeOp](shape); ok && a.Inputs()[0] == x {
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
			maybeEmpty = maybeEmpty || knownDim(s, x, d) <= 0 // or unknown
			continue
		}
		unknown++
		if n, ok := intOf(size); !ok || n != -1 {
			sizes[d] = orRest(s.Dim(x, d), size)
		} else {
			maybeEmpty = false // the size would not be known, and reshaping fails
		}
	}
	if unknown > 1 || unknown == 1 && maybeEmpty {
		return c.Miss("%d sizes are not known to be the same", unknown), nil
	}
	return attempt(c, n, func() *variable { return tensor.SpecifySizes(x, sizes...) })
}

// orRest returns what a size has to be, given what is left for it: it may stand for that, as -1.
func orRest(rest, size *variable) *variable {
	if tensor.Nonnegative(size) {
		return size
	}
	return tensor.Map(array.Switch, tensor.Map(array.Eq, size, tensor.Int(-1)), rest, size)
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
			maybeEmpty = maybeEmpty || knownDim(s, x, from[k]) <= 0
			continue
		}
		unequal++
		if n, constant := intOf(size); ok && !(constant && n == -1) {
			sizes[from[k]] = orRest(s.Dim(x, from[k]), size)
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

// dimOf returns a size as indexes are compared with it. A 1 that a type tells is a number to all rules, as it broadcasts.
func dimOf(s *tensor.Shapes, x *variable, d int) *variable {
	if typeOf(x).Dim(d) == 1 {
		return tensor.Int(1)
	}
	return s.Dim(x, d)
}

// knownDim returns the number that dimOf is, or Unknown.
func knownDim(s *tensor.Shapes, x *variable, d int) int {
	if n, ok := intOf(dimOf(s, x, d)); ok {
		return n
	}
	return tensor.Unknown
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
