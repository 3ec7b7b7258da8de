package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// attention makes one op of two products with a softmax between them, which computes the scores of some queries at a time
// and never stores all of them. What is done to the scores before, such as a scale, a mask or a bound, is a program of the
// op. It is no text rule because such a program is made of any element-wise op.
func attention(a *apply) (old, v *variable) {
	old = a.Out()
	p, in := attentionInputs(a, tensor.ShapesOf(old.Graph()))
	if in == nil {
		return nil, nil
	}
	// Heads that are joined afterwards are written where they belong.
	turn := onlyClient(old)
	turned := turn != nil && turnsHeads(turn)
	if turned {
		old = turn.Out()
	}
	return old, tensor.MustApply(tensor.NewAttention(p, turned), in...)
}

// isFactors reports whether an apply is a product of two matrices of float32s, or of as many as there are
// heads.
func isFactors(a *apply) bool {
	return isMatrixProduct(a.Op()) && typeOf(a.Out()).NDim() >= 2 && dtypeOf(a.Inputs()[0]) == array.Float32 && dtypeOf(a.Inputs()[1]) == array.Float32 &&
		typeOf(a.Inputs()[0]).NDim() == typeOf(a.Inputs()[1]).NDim()
}

// attentionInputs returns the program and the inputs of the attention that a product with values is, or
// nothing.
func attentionInputs(a *apply, sizes *tensor.Shapes) (p *array.Program, in []*variable) {
	weights, values := a.Inputs()[0], a.Inputs()[1]
	soft, op, ok := owner[tensor.SoftmaxOp](flatSource(weights))
	if !ok || op.Log || !usedOnce(soft.Out()) {
		return nil, nil
	}
	// Between the scores and the weights, there may be views that count the heads differently: each row
	// stays a row.
	result := flatSource(soft.Inputs()[0])
	n := typeOf(result).NDim()
	if result != soft.Inputs()[0] && !sizes.SameSizes(result, n-1, soft.Out(), typeOf(soft.Out()).NDim()-1) {
		return nil, nil
	}
	if (result != soft.Inputs()[0] || weights != soft.Out()) && !sameDims(sizes, result, weights, n) {
		return nil, nil
	}
	in, p = scoresOf(result)
	if in == nil {
		return nil, nil
	}
	q, k := in[0].Owner().Inputs()[0], in[0].Owner().Inputs()[1]
	// What is broadcast is the keys and values, never the queries.
	if !sameDims(sizes, q, weights, n-2) || !sameDims(sizes, a.Out(), weights, n-2) {
		return nil, nil
	}
	return p, append([]*variable{q, ungrouped(k), ungrouped(values)}, in[1:]...)
}

// sameDims reports whether the first n dimensions of two variables are known to be the same.
func sameDims(sizes *tensor.Shapes, x, y *variable, n int) bool {
	if typeOf(x).NDim() < n || typeOf(y).NDim() < n {
		return false
	}
	for d := range n {
		if !sizes.SameSizes(x, d, y, d) {
			return false
		}
	}
	return true
}

// scoresOf returns the product that scores are computed of and the other inputs of the program that does
// that, which is nil if there is nothing to do. The product is not needed elsewhere.
func scoresOf(v *variable) (in []*variable, p *array.Program) {
	if !usedOnce(v) || v.Owner() == nil {
		return nil, nil
	}
	if isFactors(v.Owner()) {
		return []*variable{v}, nil
	}
	reader := v.Owner()
	if !fusable(reader) || len(reader.Outputs()) != 1 {
		return nil, nil
	}
	for _, x := range reader.Inputs() {
		if x.Owner() != nil && isFactors(x.Owner()) && onlyClient(x) == reader {
			if p, in := programOf(x, reader); p != nil {
				return in, p
			}
		}
	}
	return nil, nil
}

// flatSource returns what a variable is a view of that has the same elements in the same order, as long as
// nothing else needs the views.
func flatSource(v *variable) *variable {
	for usedOnce(v) && v.Owner() != nil {
		switch op := v.Owner().Op().(type) {
		case tensor.ReshapeOp:
		case tensor.DimShuffleOp:
			if !slices.IsSorted(slices.DeleteFunc(op.NewOrder(), func(d int) bool { return d == array.NewAxis })) {
				return v
			}
		default:
			return v
		}
		v = v.Owner().Inputs()[0]
	}
	return v
}

// turnsHeads reports whether an apply exchanges the dimension of the rows of matrices and the one before.
func turnsHeads(a *apply) bool {
	op, ok := a.Op().(tensor.DimShuffleOp)
	n := typeOf(a.Inputs()[0]).NDim()
	if !ok || n < 3 {
		return false
	}
	order := upTo(n)
	order[n-2], order[n-3] = n-3, n-2
	return slices.Equal(op.NewOrder(), order)
}

// ungrouped returns keys or values without the repetitions that give each of several heads of queries one
// of its own.
func ungrouped(v *variable) *variable {
	n := typeOf(v).NDim()
	if view, op, ok := owner[tensor.DimShuffleOp](v); ok && n >= 3 {
		order := upTo(n)
		order[n-1], order[n-2] = n-2, n-1
		if x := view.Inputs()[0]; slices.Equal(op.NewOrder(), order) {
			if u := ungrouped(x); u != x {
				return shuffled(u, op)
			}
		}
		return v
	}
	view, _, ok := owner[tensor.ReshapeOp](v)
	if !ok || n < 3 {
		return v
	}
	alloc, _, ok := owner[tensor.AllocOp](view.Inputs()[0])
	if !ok {
		return v
	}
	// [..., heads, 1, rows, columns] is repeated along the 1, which then joins the heads.
	x, to := alloc.Inputs()[0], typeOf(alloc.Out()).Shape()
	if len(to) != n+1 || typeOf(x).NDim() != n+1 || slices.Contains(to, tensor.Unknown) {
		return v
	}
	from := slices.Clone(typeOf(x).Shape())
	joined := slices.Delete(slices.Clone(to), n-2, n-1)
	joined[n-3] *= to[n-2]
	if from[n-2] != 1 || !slices.Equal(slices.Delete(from, n-2, n-1), slices.Delete(slices.Clone(to), n-2, n-1)) || !slices.Equal(joined, typeOf(v).Shape()) {
		return v
	}
	if u := dropped(x, n-2); u != nil {
		return u
	}
	return tensor.DimShuffle(x, slices.Delete(upTo(n+1), n-2, n-1)...)
}
