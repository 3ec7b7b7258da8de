package tensorpass

import (
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// subtensorOfDimShuffle is PyTensor's local_subtensor_of_transpose, local_subtensor_of_expand_dims and local_subtensor_of_squeeze.
func subtensorOfDimShuffle() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_subtensor_of_dimshuffle", Depth: 2, On: onSubtensor,
		Doc: "a part is selected before dimensions are moved: X.T[0] → X[:, 0], x[None][0] → x, x[:, None][1:] → x[1:][:, None]",
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			a, ds, ok := owner[tensor.DimShuffleOp](n.Inputs()[0])
			if !ok {
				return c.Miss("the argument is no DimShuffle"), nil
			}
			x, indexes := a.Inputs()[0], subtensorOf(n)
			part := make([]tensor.Index, typ(x).NDim())
			for d := range part {
				part[d] = tensor.Everything()
			}
			var order []int // of the dimensions of x
			for d, from := range ds.NewOrder() {
				i := tensor.Everything()
				if d < len(indexes) {
					i = indexes[d]
				}
				if from != array.NewAxis {
					part[from] = i
				} else if !ofOne(i) {
					return c.Miss("index %d selects of a new dimension", d), nil
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
			y, err := tensor.Try(func() *vari { return tensor.DimShuffle(tensor.Subtensor(x, part...), order...) })
			if err != nil {
				return c.Miss("%v", err), nil
			}
			if !alone(n.Inputs()[0]) && y != x && y.Owner().Inputs()[0] != x {
				return c.Miss("the DimShuffle is used elsewhere, too, and there would be another one"), nil
			}
			return replace(c, n, y)
		},
	}
}

// ofOne reports whether an index is known to select the only element of a dimension of size 1.
func ofOne(i tensor.Index) bool {
	if i.Slice {
		return i.IsEverything() || i.Start == nil && i.Stop == nil && i.Step == -1
	}
	k, ok := intOf(i.Start)
	return ok && (k == 0 || k == -1)
}

// subtensorOfJoin is ours. It has to know the sizes only of the inputs up to the element, from the front or from the end.
func subtensorOfJoin() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_subtensor_of_join", Depth: 2, On: onSubtensor,
		Doc: "an element of tensors that are joined is that of one of them, if it is known of which: stack([x, y])[1] → y; that the others fit is not checked any more",
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			a, join, ok := owner[tensor.JoinOp](n.Inputs()[0])
			indexes := subtensorOf(n)
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
				if k < 0 { // counted from the end
					part = parts[len(parts)-1-at]
				}
				size := typ(part).Dim(axis)
				if size == tensor.Unknown {
					return c.Miss("it is not known where the inputs begin"), nil
				}
				if k >= size {
					k -= size
					continue
				}
				if k < -size {
					k += size
					continue
				}
				indexes[axis] = tensor.At(tensor.Int(k))
				y, err := tensor.Try(func() *vari { return tensor.Subtensor(part, indexes...) })
				if err != nil {
					return c.Miss("%v", err), nil
				}
				return replace(c, n, y)
			}
			return c.Miss("the index is out of range"), nil
		},
	}
}

// subtensorOfSoftmax is PyTensor's local_subtensor_of_softmax.
func subtensorOfSoftmax() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_subtensor_of_softmax", Depth: 2, On: onSubtensor,
		Doc: "only those rows are normalized that are selected: Softmax(X)[0] → Softmax(X[0])",
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			v, indexes := n.Inputs()[0], subtensorOf(n)
			a, op, ok := owner[tensor.SoftmaxOp](v)
			if !ok || !alone(v) {
				return c.Miss("the argument is no softmax that is used here only"), nil
			}
			if len(indexes) == typ(v).NDim() && !indexes[len(indexes)-1].IsEverything() {
				return c.Miss("the dimension is indexed along which it adds up to 1"), nil
			}
			return replace(c, n, tensor.MustApply(op, tensor.Subtensor(a.Inputs()[0], indexes...)))
		},
	}
}
