package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// incSubtensorRules are the rules of changed parts and of joins.
var incSubtensorRules = goRules{
	"local_subtensor_inc_subtensor":     {onSubtensor, of(onIncSubtensor), 0, subtensorIncSubtensor},
	"local_slice_read_of_write":         {onSubtensor, of(onAdvancedInc), 2, through[tensor.AdvancedIncSubtensorOp](false, sliceOfRows)},
	"local_adv_sub1_adv_inc_sub1":       {onAdvanced, of(onAdvancedInc), 2, advSub1AdvIncSub1},
	"local_useless_inc_subtensor_alloc": {onAnyIncSubtensor, of(onAlloc, onDimShuffle), 0, incSubtensorAlloc},
	"local_IncSubtensor_serialize":      {on(array.Add), of(onAnyIncSubtensor), 2, incSubtensorSerialize},
	"local_useless_inc_subtensor":       {onIncSubtensor, nil, 0, uselessIncSubtensor},
	"local_join_empty":                  {onJoin, nil, 1, joinEmpty},
	"local_join_make_vector":            {onJoin, of(onType[tensor.MakeVectorOp]()), 2, joinNeighbours(bothVectors)},
	"local_join_subtensors":             {onJoin, of(onSubtensor), 2, joinNeighbours(adjacent)},
	"local_join_to_tile":                {onJoin, nil, 1, joinToTile},
}

var (
	onJoin, onIncSubtensor = onType[tensor.JoinOp](), onType[*tensor.IncSubtensorOp]()
	onAdvancedInc          = onType[tensor.AdvancedIncSubtensorOp]()
	onAnyIncSubtensor      = slices.Concat(onIncSubtensor, onAdvancedInc)
)

// A write is an apply that changes a part of its first input, not in place.
type write struct {
	*apply
	set     bool
	indexes []*variable // of an advanced write
}

// writeOf returns the write of an apply, which may be nil.
func writeOf(a *apply) (w write, ok bool) {
	if a == nil {
		return w, false
	}
	switch op := a.Op().(type) {
	case *tensor.IncSubtensorOp:
		return write{a, op.Set, nil}, !op.Inplace
	case tensor.AdvancedIncSubtensorOp:
		return write{a, op.Set, a.Inputs()[2:]}, !op.Inplace
	}
	return w, false
}

// part returns what the write changes of x.
func (w write) part(x *variable) *variable {
	if w.indexes != nil {
		return tensor.Take(x, w.indexes...)
	}
	return tensor.RawSubtensor(x, opOf[*tensor.IncSubtensorOp](w.apply).Indexes(w.apply)...)
}

// on applies the same write, or one that sets or adds, to another tensor and value.
func (w write) on(set bool, x, y *variable) *variable {
	switch {
	case w.indexes == nil:
		return changed(set, x, y, opOf[*tensor.IncSubtensorOp](w.apply).Indexes(w.apply)...)
	case set:
		return tensor.SetTake(x, y, w.indexes...)
	}
	return tensor.IncTake(x, y, w.indexes...)
}

// changed returns x with a part set to y, or with y added to it.
func changed(set bool, x, y *variable, indexes ...tensor.Index) *variable {
	if set {
		return tensor.SetSubtensor(x, y, indexes...)
	}
	return tensor.IncSubtensor(x, y, indexes...)
}

// adds reports whether a write adds, maybe to zeros: then it may as well set, if that changes no element
// twice.
func (w write) adds() bool {
	x := w.Inputs()[0]
	return !w.set || is(x, 0) && (w.indexes == nil || tensor.DistinctIndexes(x, w.indexes))
}

func incSubtensorSerialize(c *rewrite.Context, n *apply) (result, error) {
	t := n.Out().Type()
	moved, terms := partition(n.Inputs(), func(v *variable) bool {
		w, ok := writeOf(v.Owner())
		same := t.Accepts(v.Type()) && v.Type().Accepts(t)
		return ok && w.adds() && usedOnce(v) && (same || w.fromZeros(t.(tensor.Type)))
	})
	if len(moved) == 0 {
		return c.Miss("no term is an increment with a single use"), nil
	}
	tip := tensor.Add(append(terms, mapped(moved, func(v *variable) *variable { return v.Owner().Inputs()[0] })...)...)
	for _, v := range moved {
		w, _ := writeOf(v.Owner())
		tip = w.on(false, tip, castTo(w.Inputs()[1], dtypeOf(n.Out())))
	}
	return replace(c, n, tip)
}

// fromZeros reports whether a write changes zeros of another element type than t, each of them once. The
// values are the same in the type t then.
func (w write) fromZeros(t tensor.Type) bool {
	x := w.Inputs()[0]
	cast := typeOf(x).With(t.DType())
	return is(x, 0) && cast == t && (w.indexes == nil || tensor.DistinctIndexes(x, w.indexes))
}

// uselessIncSubtensor also takes dimensions in the opposite order.
func uselessIncSubtensor(c *rewrite.Context, n *apply) (result, error) {
	if d := pickedDim(n.Op()); d >= 0 {
		return c.Miss("it changes a part of dimension %d", d), nil
	}
	op := opOf[*tensor.IncSubtensorOp](n)
	x, y, indexes, s := n.Inputs()[0], n.Inputs()[1], op.Indexes(n), tensor.ShapesOf(c.Graph())
	for d, i := range indexes {
		if size := dimOf(s, x, d); !i.SelectsAll(size) && !(i.Slice && i.Reversed().SelectsAll(size)) {
			return c.Miss("it changes a part of dimension %d", d), nil
		} else if i.Step == 1 || typeOf(y).Dim(d) == 1 {
			indexes[d] = tensor.Everything()
		}
	}
	if op.Inplace {
		return c.Miss("it works in place"), nil
	}
	y = tensor.Subtensor(y, indexes...)
	if !op.Set {
		y = tensor.Add(x, y)
	}
	return replace(c, n, y, x)
}

func incSubtensorAlloc(c *rewrite.Context, n *apply) (result, error) {
	w, ok := writeOf(n)
	x, y := n.Inputs()[0], n.Inputs()[1]
	a, _, ok2 := owner[tensor.AllocOp](stripPadding(y))
	if !ok || !ok2 {
		return c.Miss("it does not write an Alloc"), nil
	}
	s := tensor.ShapesOf(c.Graph())
	v, sizes := tensor.PadLeft(a.Inputs()[0], typeOf(y).NDim()), s.Shape(w.part(x))
	var checks []*variable
	for d := range sizes {
		if typeOf(y).Dim(d) != 1 {
			checks = append(checks, equalSizes(s.Dim(y, d), sizes[d]))
		}
	}
	return attempt(c, n, func() *variable {
		return w.on(w.set, x, provided(v, "an Alloc does not have the size of what it is written to", checks...))
	})
}

func joinEmpty(c *rewrite.Context, n *apply) (result, error) {
	axis := int(opOf[tensor.JoinOp](n).Axis)
	rest := slices.DeleteFunc(slices.Clone(n.Inputs()), func(v *variable) bool { return typeOf(v).Dim(axis) == 0 })
	if len(rest) == len(n.Inputs()) || len(rest) == 0 {
		return c.Miss("no tensor is known to be empty, or all are"), nil
	}
	return replace(c, n, tensor.Join(axis, rest...))
}

// joinNeighbours returns the function of a rule that joins neighbours in advance, where both makes
// something of them.
func joinNeighbours(both func(v, w *variable, axis int) *variable) transform {
	return func(c *rewrite.Context, n *apply) (result, error) {
		axis := int(opOf[tensor.JoinOp](n).Axis)
		joined := slices.Clone(n.Inputs()[:1])
		for _, v := range n.Inputs()[1:] {
			last := &joined[len(joined)-1]
			if w := both(*last, v, axis); w != nil {
				*last = w
			} else {
				joined = append(joined, v)
			}
		}
		switch len(joined) {
		case len(n.Inputs()):
			return c.Miss("no two neighbours are known to be one"), nil
		case 1:
			return replace(c, n, joined[0])
		}
		return replace(c, n, tensor.Join(axis, joined...))
	}
}

func bothVectors(v, w *variable, _ int) *variable {
	a, _, ok := owner[tensor.MakeVectorOp](v)
	b, _, ok2 := owner[tensor.MakeVectorOp](w)
	if !ok || !ok2 {
		return nil
	}
	return again(b, slices.Concat(a.Inputs(), b.Inputs())...)
}

// joinToTile repeats a tensor that is joined with itself.
func joinToTile(c *rewrite.Context, n *apply) (result, error) {
	in, axis := n.Inputs(), int(opOf[tensor.JoinOp](n).Axis)
	x, ndim := in[0], typeOf(n.Out()).NDim()
	if len(in) < 2 || ndim == array.MaxDims || slices.ContainsFunc(in, func(v *variable) bool { return v != x }) {
		return c.Miss("it joins several tensors"), nil
	}
	s := tensor.ShapesOf(c.Graph())
	sizes, order := slices.Insert(slices.Clone(s.Shape(x)), axis, tensor.Int(len(in))), slices.Insert(upTo(ndim), axis, array.NewAxis)
	shape := slices.Clone(s.Shape(x))
	shape[axis] = tensor.MapSizes(array.Mul, tensor.Int(len(in)), shape[axis])
	return attempt(c, n, func() *variable {
		return tensor.Reshape(tensor.Alloc(tensor.DimShuffle(x, order...), sizes...), shape...)
	})
}
