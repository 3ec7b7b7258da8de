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
	if _, ok := elemOf(a); !ok || !usedOnce(v) {
		return c.Miss("the argument is not element-wise, or has other uses"), nil
	}
	indexes := indexesOf(n)
	in := slices.Clone(a.Inputs())
	for i, x := range in {
		if in[i] = selected(x, v, indexes); in[i] == nil {
			return c.Miss("input %d is broadcast along an indexed dimension", i), nil
		}
	}
	return replace(c, n, again(a, in...))
}

// selected returns the part of x that belongs to a part of v, where x broadcasts to v. The indexes
// are those of the dimensions that x has. selected returns nil if there is no such part.
func selected(x, v *variable, indexes []tensor.Index) *variable {
	pad := typeOf(v).NDim() - typeOf(x).NDim()
	part := slices.Clone(indexes)
	ndim := typeOf(x).NDim()
	for d, i := range indexes {
		if !i.Slice {
			ndim--
		}
		if typeOf(x).Dim(d) != 1 || typeOf(v).Dim(pad+d) == 1 {
			continue
		}
		if i.Slice { // x has one element here, which is broadcast to however many are selected
			part[d] = tensor.Everything()
		} else {
			part[d] = tensor.At(tensor.Int(0))
		}
	}
	if a := tensor.ConstantOf(x); a != nil && a.Len() == 1 {
		return tensor.Constant(a.Reshape(slices.Repeat([]int{1}, ndim)...))
	}
	y, _ := tensor.Try(func() *variable { return tensor.Subtensor(x, part...) })
	return y
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
	part := slices.Repeat([]tensor.Index{tensor.Everything()}, typeOf(x).NDim())
	var order []int // of the dimensions of x
	for d, from := range ds.NewOrder() {
		i := tensor.Everything()
		if d < len(indexes) {
			i = indexes[d]
		}
		if from != array.NewAxis {
			part[from] = i
		} else if !ofOne(i) {
			return c.Miss("index %d selects from a new dimension", d), nil
		}
		if i.Slice {
			order = append(order, from)
		}
	}
	left := make([]int, len(part)) // the dimensions after the selection
	kept := 0
	for d := range part {
		left[d] = kept
		if part[d].Slice {
			kept++
		}
	}
	for k, from := range order {
		if from != array.NewAxis {
			order[k] = left[from]
		}
	}
	y, err := tensor.Try(func() *variable { return tensor.DimShuffle(tensor.Subtensor(x, part...), order...) })
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
		return i.IsEverything() || reverses(i)
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

// subtensorOfJoin is not one of Theano's. It needs the sizes only of the inputs up to the element,
// from either end.
func subtensorOfJoin(c *rewrite.Context, n *apply) (result, error) {
	a, join, ok := owner[tensor.JoinOp](n.Inputs()[0])
	indexes := indexesOf(n)
	axis := int(join.Axis)
	if !ok || axis >= len(indexes) || indexes[axis].Slice {
		return c.Miss("it does not index the dimension of a Join"), nil
	}
	k, ok := intOf(indexes[axis].Start)
	if !ok {
		return c.Miss("the index is not known"), nil
	}
	parts := a.Inputs()
	for at, part := range parts {
		if k < 0 { // it counts from the end
			part = parts[len(parts)-1-at]
		}
		switch size := typeOf(part).Dim(axis); {
		case size == tensor.Unknown:
			return c.Miss("it is not known where the inputs begin"), nil
		case k >= size:
			k -= size
		case k < -size:
			k += size
		default:
			indexes[axis] = tensor.At(tensor.Int(k))
			return attempt(c, n, func() *variable { return tensor.Subtensor(part, indexes...) })
		}
	}
	return c.Miss("the index is out of range"), nil
}

func subtensorOfSoftmax(c *rewrite.Context, n *apply) (result, error) {
	v, indexes := n.Inputs()[0], indexesOf(n)
	a, op, ok := owner[tensor.SoftmaxOp](v)
	if !ok || !usedOnce(v) {
		return c.Miss("the argument is not a softmax with a single use"), nil
	}
	if len(indexes) == typeOf(v).NDim() && !indexes[len(indexes)-1].IsEverything() {
		return c.Miss("it indexes the dimension along which the softmax adds up to 1"), nil
	}
	return replace(c, n, tensor.MustApply(op, tensor.Subtensor(a.Inputs()[0], indexes...)))
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
	start, stop, ok := knownBounds(i)
	if !ok {
		return c.Miss("the index is not known"), nil
	}
	if !i.Slice {
		if err := pick(int64(*start)); err != nil {
			return c.Miss("%v", err), nil
		}
		return replace(c, n, picked[0])
	}
	r := array.SliceRange(len(elements), start, stop, i.Step)
	for k := range r.Count {
		picked = append(picked, elements[r.Start+k*r.Step])
	}
	return replace(c, n, tensor.MustApply(op, picked...))
}

// subtensorOfAlloc keeps an index that may be out of range, as it has to fail.
func subtensorOfAlloc(c *rewrite.Context, n *apply) (result, error) {
	a, _, ok := owner[tensor.AllocOp](n.Inputs()[0])
	if !ok {
		return c.Miss("the argument is not an Alloc"), nil
	}
	v, indexes := a.Inputs()[0], indexesOf(n)
	for d, i := range indexes {
		if !i.Slice && !inRange(i.Start, a.Inputs()[1+d]) {
			return c.Miss("index %d may be out of range", d), nil
		}
	}
	if pad := typeOf(a.Out()).NDim() - typeOf(v).NDim(); len(indexes) > pad {
		if v = selected(v, a.Out(), indexes[pad:]); v == nil {
			return c.Miss("the value can't be indexed like this"), nil
		}
	}
	return replace(c, n, refilled(v, tensor.ShapesOf(c.Graph()).Shape(n.Out())))
}

// inRange reports whether an index is known to be within a dimension.
func inRange(i, size *variable) bool {
	k, ok := intOf(i)
	n, ok2 := intOf(size)
	return ok && ok2 && k < n && k >= -n
}

func subtensorOfDot(c *rewrite.Context, n *apply) (result, error) {
	v := n.Inputs()[0]
	a, _, ok := owner[tensor.DotOp](v)
	if !ok || !usedOnce(v) {
		return c.Miss("the argument is not a product with a single use"), nil
	}
	x, y, indexes := a.Inputs()[0], a.Inputs()[1], indexesOf(n)
	if typeOf(x).NDim() == 2 && len(indexes) > 0 {
		x = tensor.Subtensor(x, indexes[0])
		indexes = indexes[1:]
	}
	if len(indexes) > 0 { // of the columns of y
		y = tensor.Subtensor(y, tensor.Everything(), indexes[0])
	}
	return replace(c, n, tensor.Dot(x, y))
}
