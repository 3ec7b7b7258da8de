package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// dividedProduct multiplies once what is the same in many rows of the left factor of a product: it returns the sum of the
// product of what differs in the rows of a joined factor, and the products of what does not, or nil. Like nnet3's
// local_multiply_once that changes the order of sums.
func dividedProduct(a *apply) *variable {
	joined, w := a.Inputs()[0], a.Inputs()[1]
	j, op, ok := owner[tensor.JoinOp](joined)
	if !ok || int(op.Axis) != typeOf(joined).NDim()-1 || !usedOnce(joined) {
		return nil
	}
	weights := tensor.ConstantOf(w)
	var rows, rest []array.Range // of the weights
	var same, own []*variable
	at := 0
	for _, x := range j.Inputs() {
		n := typeOf(x).Dim(int(op.Axis))
		if n == tensor.Unknown {
			return nil
		}
		r := array.Range{Start: at, Step: 1, Count: n}
		at += n
		if v := repeatedRows(x); v != nil {
			same, rows = append(same, v), append(rows, r)
		} else {
			own, rest = append(own, x), append(rest, r)
		}
	}
	if len(same) == 0 || len(own) == 0 {
		return nil
	}
	product := func(x []*variable, parts []array.Range) *variable {
		if len(x) == 1 {
			return tensor.Matmul(x[0], rowsOf(weights, parts))
		}
		return tensor.Matmul(tensor.Join(-1, x...), rowsOf(weights, parts))
	}
	terms := []*variable{product(own, rest)}
	for i, v := range same {
		terms = append(terms, product([]*variable{v}, rows[i:i+1]))
	}
	return tensor.Add(terms...)
}

// repeatedRows returns the value of an Alloc that has all of its columns, but fewer rows, or nil.
func repeatedRows(x *variable) *variable {
	alloc, _, ok := owner[tensor.AllocOp](x)
	if !ok {
		return nil
	}
	v := alloc.Inputs()[0]
	t, u := typeOf(v), typeOf(x)
	n := u.NDim()
	if t.NDim() != n || n < 2 || t.Dim(n-2) != 1 || u.Dim(n-2) < 2 || t.Dim(n-1) != u.Dim(n-1) {
		return nil
	}
	return v
}

// rowsOf returns some rows of a constant matrix, the last two dimensions of w, as a constant.
func rowsOf(w *array.Array, parts []array.Range) *variable {
	n := w.NDim()
	shape, at := slices.Clone(w.Shape()), 0
	shape[n-2] = 0
	for _, r := range parts {
		shape[n-2] += r.Count
	}
	all := array.New(w.DType(), shape...)
	ranges := make([]array.Range, n-1) // of what is left out, everything
	for d := range ranges {
		ranges[d] = array.Range{Step: 1, Count: shape[d]}
	}
	for _, r := range parts {
		var from, to array.Array
		ranges[n-2] = r
		w.RangeTo(&from, ranges...)
		ranges[n-2].Start = at
		all.RangeTo(&to, ranges...)
		array.CopyTo(&to, &from)
		at += r.Count
	}
	return tensor.Constant(all)
}

// inTerms reports whether a sum of float32s has terms that may have an order.
func inTerms(a *apply) bool { return len(a.Inputs()) >= 3 && dtypeOf(a.Out()) == array.Float32 }

// termsInOrder lets a sum begin with the term that a product computes, then come terms that are broadcast, and then all
// others. So the product adds the terms in registers. Terms that are broadcast alike are added up beforehand.
func termsInOrder(a *apply) *variable {
	terms := orderedTerms(a)
	if slices.Equal(terms, a.Inputs()) {
		return nil
	}
	return tensor.Add(terms...)
}

// orderedTerms returns the terms of a sum in their order, those of the apply if it has no product.
func orderedTerms(a *apply) []*variable {
	first := slices.IndexFunc(a.Inputs(), func(v *variable) bool { return samePattern(v, a.Out()) && ofProduct(v) })
	if first < 0 {
		return a.Inputs()
	}
	terms := []*variable{a.Inputs()[first]}
	var full []*variable
	for i, v := range a.Inputs() {
		if i == first {
			continue
		}
		if samePattern(v, a.Out()) {
			full = append(full, v)
			continue
		}
		// One that is broadcast like an earlier one is added to that: it takes a fraction of the time.
		k := slices.IndexFunc(terms[1:], func(t *variable) bool { return samePattern(t, v) })
		if k < 0 {
			terms = append(terms, v)
			continue
		}
		terms[k+1] = tensor.Add(terms[k+1], v)
	}
	return append(terms, full...)
}

// ofProduct reports whether a product with a constant factor computes v, or element-wise ops of one
// do that it can take: of which nothing else reads a result.
func ofProduct(v *variable) bool {
	for range maxFused {
		a := v.Owner()
		if a == nil || onlyClient(v) == nil || len(a.Outputs()) != 1 {
			return false
		}
		if hasEpilogue(a) {
			return true
		}
		if _, ok := elemOf(a); !ok {
			return false
		}
		next := slices.IndexFunc(a.Inputs(), func(x *variable) bool {
			return x.Owner() != nil && onlyClient(x) != nil && samePattern(x, v)
		})
		if next < 0 {
			return false
		}
		v = a.Inputs()[next]
	}
	return false
}
