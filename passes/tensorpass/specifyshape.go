package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
)

// specifyShapeRules are the rules of promised sizes.
var specifyShapeRules = goRules{
	"local_merge_consecutive_specify_shape": {onSpecifyShape, nil, 2, mergeSpecifyShape},
	"local_specify_shape_of_alloc":          {onSpecifyShape, of(onAlloc), 2, through[tensor.AllocOp](false, specifyShapeOfAlloc)},
	"local_remove_useless_assert":           {onAssert, ofConstant, 1, uselessAssert},
	"local_assert_sink":                     {slices.Concat(onElemwise, onDimShuffle, onReduce), of(onAssert), 2, sinkAssert},
	"local_specify_shape_lift":              {onSpecifyShape, of(onElemwise, onAnyIncSubtensor), 2, liftSpecifyShape},
}

var onSpecifyShape, onAssert = onType[tensor.SpecifyShapeOp](), onType[tensor.AssertOp]()

func mergeSpecifyShape(c *rewrite.Context, n *apply) (result, error) {
	x, sizes, s := n.Inputs()[0], promised(n), tensor.ShapesOf(c.Graph())
	changed := slices.ContainsFunc(n.Inputs()[1:], (*variable).IsConstant)
	if a, _, ok := owner[tensor.SpecifyShapeOp](x); ok {
		x, changed = a.Inputs()[0], true
		for d, size := range promised(a) {
			if sizes[d] == nil || size != nil && size.IsConstant() {
				sizes[d] = size
			}
		}
	}
	for d, size := range sizes {
		if size != nil && (sameSize(size, s.Dim(x, d)) || size.IsConstant() && knownDim(s, x, d) != tensor.Unknown) {
			sizes[d], changed = nil, true
		}
	}
	if !changed {
		return c.Miss("it promises what is not known, and is the only promise"), nil
	}
	return attempt(c, n, func() *variable { return tensor.SpecifySizes(x, sizes...) })
}

// promised returns the sizes that a SpecifyShape promises, nil for those that it says nothing of.
// Those that became constants are among them.
func promised(n *apply) []*variable { return opOf[tensor.SpecifyShapeOp](n).Sizes(n) }

func specifyShapeOfAlloc(_ *rewrite.Context, n, a *apply) *variable {
	sizes := slices.Clone(a.Inputs()[1:])
	for d, size := range promised(n) {
		if size != nil {
			sizes[d] = size
		}
	}
	return tensor.Alloc(a.Inputs()[0], sizes...)
}

// liftSpecifyShape looks for an input that has the shape of the argument.
func liftSpecifyShape(c *rewrite.Context, n *apply) (result, error) {
	v := n.Inputs()[0]
	a := v.Owner()
	_, isElem := elemOf(a)
	_, isWrite := writeOf(a)
	if !isElem && !isWrite || !usedOnce(v) {
		return c.Miss("the argument is neither element-wise nor a write, or has other uses"), nil
	}
	in := slices.Clone(a.Inputs())
	k := slices.IndexFunc(in, func(x *variable) bool {
		return typeOf(x).NDim() == typeOf(v).NDim() && samePattern(x, v) && !x.IsConstant() &&
			(samePattern(x, n.Out()) || len(in) == 1 || isWrite)
	})
	if k < 0 || isWrite && k > 0 {
		return c.Miss("no argument is known to have the whole shape"), nil
	}
	return attempt(c, n, func() *variable {
		in[k] = tensor.SpecifySizes(in[k], promised(n)...)
		return again(a, in...)
	})
}

// uselessAssert drops conditions that hold, and the check if no other is left.
func uselessAssert(c *rewrite.Context, n *apply) (result, error) {
	x, conditions := n.Inputs()[0], n.Inputs()[1:]
	_, open := partition(conditions, func(v *variable) bool { return is(v, 1) })
	switch {
	case len(open) == len(conditions) && len(open) > 0:
		return c.Miss("no condition is known to hold"), nil
	case len(open) == 0:
		return replace(c, n, x)
	}
	return replace(c, n, tensor.Assert(x, opOf[tensor.AssertOp](n).Message, open...))
}

// sinkAssert checks a result instead of an argument.
func sinkAssert(c *rewrite.Context, n *apply) (result, error) {
	in := slices.Clone(n.Inputs())
	for i, v := range in {
		check, op, ok := owner[tensor.AssertOp](v)
		if !ok || !usedOnce(v) {
			continue
		}
		in[i] = check.Inputs()[0]
		result := tensor.MustApply(n.Op().(tensor.Op), in...)
		return replace(c, n, tensor.MustApply(op, append([]*variable{result}, check.Inputs()[1:]...)...))
	}
	return c.Miss("no argument is checked for this alone"), nil
}
