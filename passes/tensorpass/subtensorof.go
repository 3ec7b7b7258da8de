package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// partOf returns the function of a rule that selects before it computes. build makes what n, with such
// indexes, selects of the output of a, whose op is an O, or returns nil. If once is set, the output has a
// single use, and no element is computed twice.
func partOf[O tensor.Op](once bool, build func(c *rewrite.Context, n, a *apply, indexes []tensor.Index) *variable) transform {
	return through[O](once, func(c *rewrite.Context, n, a *apply) *variable {
		indexes := indexesOf(n)
		if indexes == nil || once && !fewer(c, n) {
			return nil
		}
		return build(c, n, a, indexes)
	})
}

func subtensorLift(_ *rewrite.Context, n, a *apply, indexes []tensor.Index) *variable {
	return again(a, mapped(a.Inputs(), func(x *variable) *variable { return selected(x, a.Out(), indexes) })...)
}

// selected returns the part of x that belongs to a part of v, where x broadcasts to v. The indexes
// are those of the dimensions that x has.
func selected(x, v *variable, indexes []tensor.Index) *variable {
	pad, ndim := typeOf(v).NDim()-typeOf(x).NDim(), typeOf(x).NDim()
	of := slices.Clone(indexes)
	for d, i := range indexes {
		if !i.Slice {
			ndim--
		}
		if typeOf(x).Dim(d) != 1 || typeOf(v).Dim(pad+d) == 1 {
			continue
		}
		if i.Slice { // x has one element here, which is broadcast to however many are selected
			of[d] = tensor.Everything()
		} else {
			of[d] = tensor.At(tensor.Int(0))
		}
	}
	if a := tensor.ConstantOf(x); a != nil && a.Len() == 1 {
		return tensor.Constant(a.Reshape(slices.Repeat([]int{1}, ndim)...))
	}
	return part(x, of...)
}

// subtensorOfDimShuffle is local_subtensor_of_transpose, local_subtensor_of_expand_dims and
// local_subtensor_of_squeeze in PyTensor.
func subtensorOfDimShuffle(_ *rewrite.Context, n, a *apply, indexes []tensor.Index) *variable {
	x := a.Inputs()[0]
	of := everything(typeOf(x).NDim())
	var order []int // of the dimensions of x
	for d, from := range opOf[tensor.DimShuffleOp](a).NewOrder() {
		i := tensor.Everything()
		if d < len(indexes) {
			i = indexes[d]
		}
		if from != array.NewAxis {
			of[from] = i
		} else if !ofOne(i) {
			return nil // it selects from a new dimension
		}
		if i.Slice {
			order = append(order, from)
		}
	}
	left := make([]int, len(of)) // the dimensions after the selection
	kept := 0
	for d := range of {
		left[d] = kept
		if of[d].Slice {
			kept++
		}
	}
	for k, from := range order {
		if from != array.NewAxis {
			order[k] = left[from]
		}
	}
	y := tensor.DimShuffle(part(x, of...), order...)
	if !usedOnce(a.Out()) && y != x && y.Owner().Inputs()[0] != x {
		return nil // there would be another DimShuffle
	}
	return y
}

// ofOne reports whether an index is known to select the only element of a dimension of size 1.
func ofOne(i tensor.Index) bool {
	if i.Slice {
		return i.IsEverything() || i.Step == -1 && i.Start == nil && i.Stop == nil
	}
	k, ok := intOf(i.Start)
	return ok && (k == 0 || k == -1)
}

func dimShuffleSubtensor(_ *rewrite.Context, n, a *apply) *variable {
	x := a.Inputs()[0]
	indexes, order := everything(typeOf(x).NDim()), opOf[tensor.DimShuffleOp](n).NewOrder()
	copy(indexes, opOf[*tensor.SubtensorOp](a).Indexes(a))
	kept := 0 // the dimension of what a selects
	changed := false
	for d, i := range indexes {
		if !i.Slice {
			continue
		}
		if slices.Contains(order, kept) {
			kept++
			continue
		}
		if i.Start == nil {
			i.Start = tensor.Int(0)
		}
		if r, ok := indexes[d].Range(typeOf(x).Dim(d)); ok && typeOf(x).Dim(d) != tensor.Unknown {
			i.Start = tensor.Int(r.Start)
		} else if k, ok := intOf(i.Start); !ok || i.Step != 1 || k < -1 {
			return nil // it is not known where the dropped dimension begins
		}
		indexes[d] = tensor.At(i.Start)
		changed = true
		for k, o := range order {
			if o > kept {
				order[k]--
			}
		}
	}
	if !changed {
		return nil
	}
	return tensor.DimShuffle(tensor.Subtensor(x, indexes...), order...)
}

// everything returns the indexes that select everything of n dimensions.
func everything(n int) []tensor.Index { return slices.Repeat([]tensor.Index{tensor.Everything()}, n) }

func subtensorOfReduce(_ *rewrite.Context, n, a *apply, indexes []tensor.Index) *variable {
	op, x := opOf[tensor.Reduce](a), a.Inputs()[0]
	of := everything(typeOf(x).NDim())
	axes, left := op.Over(len(of)), array.Axes(0)
	kept := 0
	for d := range of {
		switch {
		case axes.Has(d):
			left |= 1 << kept
		case len(indexes) > 0:
			of[d], indexes = indexes[0], indexes[1:]
		}
		if of[d].Slice {
			kept++
		}
	}
	return reduceOver(op.Op, part(x, of...), left)
}

func subtensorOfSpecifyShape(_ *rewrite.Context, n, a *apply, indexes []tensor.Index) *variable {
	x := a.Inputs()[0]
	var left []*variable
	for d, size := range promised(a) {
		switch {
		case d >= len(indexes) || indexes[d].IsEverything():
			left = append(left, size)
		case indexes[d].Slice && size != nil && !(size.IsConstant() && typeOf(x).Dim(d) != tensor.Unknown):
			return nil // the size of the dimension would not be checked any more
		case indexes[d].Slice:
			left = append(left, nil)
		}
	}
	return tensor.SpecifySizes(tensor.Subtensor(x, indexes...), left...)
}

func subtensorOfSoftmax(_ *rewrite.Context, n, a *apply, indexes []tensor.Index) *variable {
	last := typeOf(a.Out()).NDim() - 1
	rows := indexes[:min(len(indexes), last)]
	if !slices.ContainsFunc(rows, func(i tensor.Index) bool { return !i.IsEverything() }) {
		return nil // it indexes only the dimension along which the softmax adds up to 1
	}
	y := again(a, part(a.Inputs()[0], rows...))
	if len(indexes) <= last {
		return y
	}
	along := everything(typeOf(y).NDim())
	along[len(along)-1] = indexes[last]
	return part(y, along...)
}

func subtensorMakeVector(_ *rewrite.Context, n, a *apply, indexes []tensor.Index) *variable {
	var picked []*variable
	if isRows(indexes[0]) {
		places, ok := tensor.PlacesOf(a.Out(), n.Inputs()[1:])
		if !ok {
			return nil
		}
		for _, p := range places {
			picked = append(picked, a.Inputs()[p[0]])
		}
		return again(a, picked...)
	}
	r, ok := indexes[0].Range(len(a.Inputs()))
	if !ok {
		return nil
	}
	for k := range r.Count {
		picked = append(picked, a.Inputs()[r.Start+k*r.Step])
	}
	if !indexes[0].Slice {
		return picked[0]
	}
	return again(a, picked...)
}

// subtensorOfAlloc checks an element that the Alloc would have, and the size of a dimension that is
// not part of the result any more.
func subtensorOfAlloc(c *rewrite.Context, n, a *apply, indexes []tensor.Index) *variable {
	v, sizes, s := a.Inputs()[0], a.Inputs()[1:], tensor.ShapesOf(c.Graph())
	pad := len(sizes) - typeOf(v).NDim()
	var checks []*variable
	for d, i := range indexes {
		filled := d < pad || typeOf(v).Dim(d-pad) == 1
		switch {
		case filled && isRows(i):
			if places, ok := tensor.PlacesOf(a.Out(), []*variable{i.Start}); !ok || typeOf(a.Out()).Dim(0) == tensor.Unknown || len(places) == 0 {
				return nil // an index may be out of range
			}
		case i.Slice:
		case filled:
			checks = append(checks, inRange(i.Start, sizes[d]))
		default:
			checks = append(checks, equalSizes(sizes[d], s.Dim(v, d-pad)))
		}
	}
	if len(indexes) > pad {
		v = selected(v, a.Out(), indexes[pad:])
	}
	return provided(refilled(v, s.Shape(n.Out())), "an index is out of the range of an Alloc, or its value does not fit", checks...)
}

func subtensorOfDot(_ *rewrite.Context, n, a *apply, indexes []tensor.Index) *variable {
	x, y := a.Inputs()[0], a.Inputs()[1]
	if typeOf(x).NDim() == 2 {
		x, indexes = part(x, indexes[0]), indexes[1:]
	}
	if len(indexes) > 0 { // of the columns of y
		y = part(y, tensor.Everything(), indexes[0])
	}
	return tensor.Dot(x, y)
}
