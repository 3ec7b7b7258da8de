package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// The rules of this file are about elements that tensors of integers pick, in the first dimensions.

// pick returns the tensor from which n picks, the indexes, how many dimensions the indexes have, and how
// many dimensions they index.
func pick(n *apply) (x *variable, indexes []*variable, ndim, k int) {
	indexes = n.Inputs()[1:]
	return n.Inputs()[0], indexes, typeOf(indexes[0]).NDim(), len(indexes)
}

// notMore reports whether indexes are known to pick no more elements than the indexed dimensions of x
// have: they are different, or few.
func notMore(s *tensor.Shapes, x *variable, indexes []*variable) bool {
	return few(s, x, indexes) || tensor.DistinctIndexes(x, indexes)
}

// few is notMore by sizes alone.
func few(s *tensor.Shapes, x *variable, indexes []*variable) bool {
	if len(indexes) == 1 && typeOf(indexes[0]).NDim() == 1 && sameSize(s.Dim(indexes[0], 0), s.Dim(x, 0)) {
		return true
	}
	picked, there := 1, 1
	for _, size := range typeOf(indexes[0]).Shape() {
		picked = timesKnown(picked, size)
	}
	for d := range indexes {
		there = timesKnown(there, typeOf(x).Dim(d))
	}
	return picked >= 0 && there >= 0 && picked <= there
}

// timesKnown returns a product of sizes, or Unknown if one is not known or it is very large.
func timesKnown(a, b int) int {
	if a < 0 || b < 0 || b > 0 && a > 1<<40/b {
		return tensor.Unknown
	}
	return a * b
}

// advancedLift picks of the arguments of an element-wise op. Arguments that are the same for all elements
// of an indexed dimension lose it, so that nothing is repeated before computing; the op broadcasts the
// others, or an Alloc if there are none.
func advancedLift(c *rewrite.Context, n, a *apply) *variable {
	v, indexes, ndim, k := pick(n)
	s := tensor.ShapesOf(c.Graph())
	var wide []*variable // the indexes of dimensions that are not 1
	for d, i := range indexes {
		if typeOf(v).Dim(d) != 1 {
			wide = append(wide, i)
		}
	}
	checks := slices.Repeat([]*variable{nil}, k)
	for d, i := range indexes {
		if typeOf(v).Dim(d) == 1 {
			checks[d] = allInRange(v, d, i, s)
		}
	}
	if len(wide) == k && (typeOf(v).NDim() < k || !notMore(s, v, indexes)) {
		return nil // it would compute more
	}
	in := mapped(a.Inputs(), func(x *variable) *variable { return pickedOf(s, x, v, indexes, ndim) })
	if slices.Contains(in, nil) {
		return nil
	}
	w := again(a, in...)
	return provided(refit(w, n.Out(), s), "an index is out of range", checks...)
}

// pickedOf returns what indexes of v pick of x, which broadcasts to v. Where x has one element for all
// of an indexed dimension, it is not repeated: the dimensions of the indexes have size 1 then.
func pickedOf(s *tensor.Shapes, x, v *variable, indexes []*variable, ndim int) *variable {
	rest := typeOf(v).NDim() - len(indexes)
	if a := tensor.ConstantOf(x); a != nil && a.Len() == 1 {
		return tensor.Constant(a.Reshape(slices.Repeat([]int{1}, ndim+rest)...))
	}
	var kept []*variable
	of := everything(len(indexes))
	for d, i := range indexes {
		if typeOf(x).Dim(d) == 1 {
			of[d] = tensor.At(tensor.Int(0))
		} else {
			kept = append(kept, i)
		}
	}
	if len(kept) == 0 && ndim == len(indexes) {
		return x
	}
	x = tensor.Subtensor(x, of...)
	switch {
	case len(kept) == 0:
		return tensor.DimShuffle(x, append(slices.Repeat([]int{array.NewAxis}, ndim), upTo(rest)...)...)
	case !notMore(s, x, kept):
		return nil
	}
	return tensor.Take(x, kept...)
}

// refit broadcasts v to the shape of out where its type says that it has to be.
func refit(v, out *variable, s *tensor.Shapes) *variable {
	if out.Type().Accepts(v.Type()) {
		return v
	}
	return refilled(stripPadding(v), s.Shape(out))
}

// allInRange returns the condition that all indexes of a dimension of x are in range. It returns nil if
// that is known, and panics, as [tensor.Try] expects, if one is known not to be.
func allInRange(x *variable, d int, index *variable, s *tensor.Shapes) *variable {
	size := s.Dim(x, d)
	n, known := intOf(size)
	if a := tensor.ConstantOf(index); a != nil && known {
		for k := range a.Len() {
			if _, err := array.Position(a.Int(k), n); err != nil {
				panic(&tensor.Error{Op: "index", Arg: -1, Text: err.Error()})
			}
		}
		return nil
	}
	pad := typeOf(index).NDim()
	size = tensor.PadLeft(size, pad)
	in := tensor.Map(array.And, tensor.Map(array.Lt, index, size), tensor.Map(array.Ge, index, tensor.Neg(size)))
	return tensor.MustApply(tensor.Reduce{Op: array.All, All: true}, in)
}

// advancedOfAlloc picks of the value that an Alloc repeats.
func advancedOfAlloc(c *rewrite.Context, n, a *apply) *variable {
	v, indexes, ndim, k := pick(n)
	s := tensor.ShapesOf(c.Graph())
	x := tensor.PadLeft(a.Inputs()[0], typeOf(v).NDim())
	checks := slices.Repeat([]*variable{nil}, k)
	for d, i := range indexes {
		if typeOf(x).Dim(d) == 1 {
			checks[d] = allInRange(v, d, i, s)
		} else {
			checks[d] = equalSizes(s.Dim(v, d), s.Dim(x, d))
		}
	}
	w := pickedOf(s, x, v, indexes, ndim)
	if w == nil {
		return nil
	}
	return provided(refilled(stripPadding(w), s.Shape(n.Out())), "an index is out of the range of an Alloc, or its value does not fit", checks...)
}

// advancedOfOne picks from dimensions of size 1, all of whose elements are the same.
func advancedOfOne(c *rewrite.Context, n *apply) (result, error) {
	x, indexes, ndim, _ := pick(n)
	s := tensor.ShapesOf(c.Graph())
	checks := make([]*variable, len(indexes))
	for d := range indexes {
		if typeOf(x).Dim(d) != 1 {
			return c.Miss("dimension %d is not known to have size 1", d), nil
		}
	}
	return attempt(c, n, func() *variable {
		for d, i := range indexes {
			checks[d] = allInRange(x, d, i, s)
		}
		w := pickedOf(s, x, x, indexes, ndim)
		return provided(refilled(stripPadding(w), s.Shape(n.Out())), "an index is out of range", checks...)
	})
}

// subtensorOfAdvanced selects in the dimensions that are not indexed, before others are picked.
func subtensorOfAdvanced(_ *rewrite.Context, n, a *apply) *variable {
	x, indexes, ndim, k := pick(a)
	of := indexesOf(n)
	if len(of) <= ndim || slices.ContainsFunc(of[:ndim], func(i tensor.Index) bool { return !i.IsEverything() }) {
		return nil // it selects of what is picked
	}
	return tensor.Take(part(x, append(everything(k), of[ndim:]...)...), indexes...)
}

// advancedOfDimShuffle adds new dimensions after picking.
func advancedOfDimShuffle(_ *rewrite.Context, n, a *apply) *variable {
	_, indexes, ndim, k := pick(n)
	order := opOf[tensor.DimShuffleOp](a).NewOrder()
	if slices.Contains(order[:k], array.NewAxis) || !slices.Contains(order[k:], array.NewAxis) {
		return nil // it picks from a new dimension, or there is none
	}
	after, kept := upTo(ndim), slices.Clone(order[:k])
	for _, from := range order[k:] {
		if from == array.NewAxis {
			after = append(after, from)
			continue
		}
		after = append(after, ndim+len(kept)-k)
		kept = append(kept, from)
	}
	return tensor.DimShuffle(tensor.Take(tensor.DimShuffle(a.Inputs()[0], kept...), indexes...), after...)
}
