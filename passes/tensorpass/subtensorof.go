package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

func subtensorLift(c *rewrite.Context, n *apply) (result, error) {
	v := n.Inputs()[0]
	a := v.Owner()
	if _, ok := elemOf(a); !ok || !usedOnce(v) || !fewer(n) {
		return c.Miss("the argument is not element-wise, or has other uses, or elements would be computed twice"), nil
	}
	indexes := indexesOf(n)
	in := slices.Clone(a.Inputs())
	for i, x := range in {
		if in[i] = selected(x, v, indexes); in[i] == nil {
			return c.Miss("input %d can't be indexed like this", i), nil
		}
	}
	return replace(c, n, again(a, in...))
}

// selected returns the part of x that belongs to a part of v, where x broadcasts to v. The indexes
// are those of the dimensions that x has. selected returns nil if there is no such part.
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
func subtensorOfDimShuffle(c *rewrite.Context, n *apply) (result, error) {
	v := n.Inputs()[0]
	a, ds, ok := owner[tensor.DimShuffleOp](v)
	if !ok {
		return c.Miss("the argument is not a DimShuffle"), nil
	}
	x, indexes := a.Inputs()[0], indexesOf(n)
	if indexes == nil {
		return c.Miss("the indexes are several tensors"), nil
	}
	of := everything(typeOf(x).NDim())
	var order []int // of the dimensions of x
	for d, from := range ds.NewOrder() {
		i := tensor.Everything()
		if d < len(indexes) {
			i = indexes[d]
		}
		if from != array.NewAxis {
			of[from] = i
		} else if !ofOne(i) {
			return c.Miss("index %d selects from a new dimension", d), nil
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
	y := part(x, of...)
	if y == nil {
		return c.Miss("no op selects such a part"), nil
	}
	y, err := tensor.Try(func() *variable { return tensor.DimShuffle(y, order...) })
	if err != nil {
		return c.Miss("%v", err), nil
	}
	if !usedOnce(v) && y != x && y.Owner().Inputs()[0] != x {
		return c.Miss("the DimShuffle has other uses, and there would be another one"), nil
	}
	return replace(c, n, y)
}

// ofOne reports whether an index is known to select the only element of a dimension of size 1.
func ofOne(i tensor.Index) bool {
	if i.Slice {
		return i.IsEverything() || i.Step == -1 && i.Start == nil && i.Stop == nil
	}
	k, ok := intOf(i.Start)
	return ok && (k == 0 || k == -1)
}

func dimShuffleSubtensor(c *rewrite.Context, n *apply) (result, error) {
	v := n.Inputs()[0]
	a, sub, ok := owner[*tensor.SubtensorOp](v)
	if !ok || !usedOnce(v) {
		return c.Miss("the argument is not a selection with a single use"), nil
	}
	indexes, order := sub.Indexes(a), opOf[tensor.DimShuffleOp](n).NewOrder()
	kept := 0 // the dimension of v
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
		if k, ok := intOf(i.Start); !ok || i.Step != 1 || k < 0 {
			return c.Miss("it is not known where the dropped dimension begins"), nil
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
		return c.Miss("no dropped dimension is sliced"), nil
	}
	return attempt(c, n, func() *variable { return tensor.DimShuffle(tensor.RawSubtensor(a.Inputs()[0], indexes...), order...) })
}

// everything returns the indexes that select everything of n dimensions.
func everything(n int) []tensor.Index { return slices.Repeat([]tensor.Index{tensor.Everything()}, n) }

func subtensorOfReduce(c *rewrite.Context, n *apply) (result, error) {
	v := n.Inputs()[0]
	a, op, ok := owner[tensor.Reduce](v)
	if !ok || !usedOnce(v) || !fewer(n) {
		return c.Miss("the argument is not a reduction with a single use, or elements would be reduced twice"), nil
	}
	indexes := indexesOf(n)
	x := a.Inputs()[0]
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
	y := part(x, of...)
	if y == nil {
		return c.Miss("no op selects such a part"), nil
	}
	return replace(c, n, reduceOver(op.Op, y, left))
}

func subtensorOfSpecifyShape(c *rewrite.Context, n *apply) (result, error) {
	v := n.Inputs()[0]
	a, _, ok := owner[tensor.SpecifyShapeOp](v)
	if !ok {
		return c.Miss("the argument is not a promise of sizes"), nil
	}
	x, indexes := a.Inputs()[0], indexesOf(n)
	for d, i := range indexes {
		if !i.IsEverything() && typeOf(x).Dim(d) != typeOf(v).Dim(d) {
			return c.Miss("the size of dimension %d would not be checked any more", d), nil
		}
	}
	return attempt(c, n, func() *variable {
		return tensor.SpecifyShape(tensor.Subtensor(x, indexes...), typeOf(n.Out()).Shape()...)
	})
}

func subtensorOfSoftmax(c *rewrite.Context, n *apply) (result, error) {
	v := n.Inputs()[0]
	a, op, ok := owner[tensor.SoftmaxOp](v)
	if !ok || !usedOnce(v) || !fewer(n) {
		return c.Miss("the argument is not a softmax with a single use, or rows would be normalized twice"), nil
	}
	indexes := indexesOf(n)
	last := typeOf(v).NDim() - 1
	rows := indexes[:min(len(indexes), last)]
	if !slices.ContainsFunc(rows, func(i tensor.Index) bool { return !i.IsEverything() }) {
		return c.Miss("it indexes only the dimension along which the softmax adds up to 1"), nil
	}
	return attempt(c, n, func() *variable {
		y := tensor.MustApply(op, part(a.Inputs()[0], rows...))
		if len(indexes) <= last {
			return y
		}
		along := everything(typeOf(y).NDim())
		along[len(along)-1] = indexes[last]
		return tensor.Subtensor(y, along...)
	})
}

func subtensorMakeVector(c *rewrite.Context, n *apply) (result, error) {
	a, op, ok := owner[tensor.MakeVectorOp](n.Inputs()[0])
	if !ok {
		return c.Miss("the argument is not a MakeVector"), nil
	}
	elements := a.Inputs()
	var picked []*variable
	pick := func(i int64) error {
		k, err := array.Position(i, len(elements))
		if err == nil {
			picked = append(picked, elements[k])
		}
		return err
	}
	if _, ok := n.Op().(tensor.AdvancedSubtensorOp); ok {
		index := tensor.ConstantOf(n.Inputs()[1])
		if index == nil || index.NDim() != 1 {
			return c.Miss("the indexes are not known"), nil
		}
		for i := range index.Len() {
			if err := pick(index.Int(i)); err != nil {
				return c.Miss("%v", err), nil
			}
		}
		return replace(c, n, tensor.MustApply(op, picked...))
	}
	i := indexesOf(n)[0]
	r, ok := i.Range(len(elements))
	if !ok {
		return c.Miss("the index is not known, or out of range"), nil
	}
	if !i.Slice {
		return replace(c, n, elements[r.Start])
	}
	for k := range r.Count {
		picked = append(picked, elements[r.Start+k*r.Step])
	}
	return replace(c, n, tensor.MustApply(op, picked...))
}

// subtensorOfAlloc checks an element that the Alloc would have, and the size of a dimension that is
// not part of the result any more.
func subtensorOfAlloc(c *rewrite.Context, n *apply) (result, error) {
	a, _, ok := owner[tensor.AllocOp](n.Inputs()[0])
	if !ok {
		return c.Miss("the argument is not an Alloc"), nil
	}
	indexes := indexesOf(n)
	if indexes == nil {
		return c.Miss("the indexes are several tensors"), nil
	}
	v, sizes, s := a.Inputs()[0], a.Inputs()[1:], tensor.ShapesOf(c.Graph())
	pad := len(sizes) - typeOf(v).NDim()
	var checks []*variable
	for d, i := range indexes {
		filled := d < pad || typeOf(v).Dim(d-pad) == 1
		switch {
		case filled && isRows(i):
			if places, ok := placesOf(a.Out(), []*variable{i.Start}); !ok || typeOf(a.Out()).Dim(0) == tensor.Unknown || len(places) == 0 {
				return c.Miss("an index may be out of range"), nil
			}
		case i.Slice:
		case filled:
			checks = append(checks, inRange(i.Start, sizes[d]))
		default:
			checks = append(checks, equalSizes(sizes[d], s.Dim(v, d-pad)))
		}
	}
	if len(indexes) > pad {
		if v = selected(v, a.Out(), indexes[pad:]); v == nil {
			return c.Miss("the value can't be indexed like this"), nil
		}
	}
	return attempt(c, n, func() *variable {
		return provided(refilled(v, s.Shape(n.Out())), "an index is out of the range of an Alloc, or its value does not fit", checks...)
	})
}

func subtensorOfDot(c *rewrite.Context, n *apply) (result, error) {
	v := n.Inputs()[0]
	a, _, ok := owner[tensor.DotOp](v)
	if !ok || !usedOnce(v) || !fewer(n) {
		return c.Miss("the argument is not a product with a single use, or elements would be computed twice"), nil
	}
	indexes := indexesOf(n)
	x, y := a.Inputs()[0], a.Inputs()[1]
	if typeOf(x).NDim() == 2 && len(indexes) > 0 {
		x, indexes = part(x, indexes[0]), indexes[1:]
	}
	if len(indexes) > 0 { // of the columns of y
		y = part(y, tensor.Everything(), indexes[0])
	}
	if x == nil || y == nil {
		return c.Miss("no op selects such a part"), nil
	}
	return replace(c, n, tensor.Dot(x, y))
}
