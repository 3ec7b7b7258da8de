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
	"local_specify_shape_lift":              {onSpecifyShape, of(onElemwise, onAnyIncSubtensor), 2, liftSpecifyShape},
}

var onSpecifyShape = onType[tensor.SpecifyShapeOp]()

func mergeSpecifyShape(c *rewrite.Context, n *apply) (result, error) {
	x, sizes := n.Inputs()[0], typeOf(n.Out()).Shape()
	if a, _, ok := owner[tensor.SpecifyShapeOp](x); ok {
		x = a.Inputs()[0]
	} else if typeOf(x) != typeOf(n.Out()) {
		return c.Miss("it promises what the type does not know, and is the only promise"), nil
	}
	return attempt(c, n, func() *variable { return tensor.SpecifyShape(x, sizes...) })
}

func specifyShapeOfAlloc(_ *rewrite.Context, n, a *apply) *variable {
	sizes := slices.Clone(a.Inputs()[1:])
	for d, size := range typeOf(n.Out()).Shape() {
		if size != tensor.Unknown {
			sizes[d] = tensor.Int(size)
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
		return typeOf(x).NDim() == typeOf(v).NDim() && samePattern(x, v) && samePattern(x, n.Out()) && !x.IsConstant()
	})
	if k < 0 || isWrite && k > 0 {
		return c.Miss("no argument is known to have the whole shape"), nil
	}
	return attempt(c, n, func() *variable {
		in[k] = tensor.SpecifyShape(in[k], typeOf(n.Out()).Shape()...)
		return again(a, in...)
	})
}
