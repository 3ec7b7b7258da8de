package tensorpass

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
)

// subtensorRules lists the rules of parts of tensors.
func subtensorRules() []Local {
	onSubtensor := onType[*tensor.SubtensorOp]()
	onAnySubtensor := append(onType[*tensor.SubtensorOp](), onType[tensor.AdvancedSubtensorOp]()...)
	return []Local{
		rule(Canonicalize|Specialize, "local_subtensor_constant_indexes", onSubtensor, 1, subtensorConstants,
			"an index that became a constant belongs to the op"),
		rule(Canonicalize|Specialize, "local_useless_slice", onSubtensor, 1, uselessSlice,
			"full slices at the end of an index are dropped: X[0, :] → X[0]"),
		rule(Canonicalize|Specialize|Useless, "local_useless_subtensor", onAnySubtensor, 0, uselessSubtensor,
			"a selection of everything is dropped: x[:], x[0:n] where n is the size, x[arange(n)] → x"),
		rule(Canonicalize, "local_subtensor_lift", onSubtensor, 2, subtensorLift,
			"a part is selected before computing: (x + y)[1:3] → x[1:3] + y[1:3]"),
		rule(Canonicalize|Specialize, "local_subtensor_of_dimshuffle", onSubtensor, 2, subtensorOfDimShuffle,
			"a part is selected before dimensions are moved: X.T[0] → X[:, 0], x[None][0] → x, x[:, None][1:] → x[1:][:, None]"),
		rule(Canonicalize|Specialize, "local_subtensor_of_join", onSubtensor, 2, subtensorOfJoin,
			"an element of joined tensors is an element of one of them, if it is known of which: stack([x, y])[1] → y; "+
				"it is not checked any more that the others fit"),
		rule(Canonicalize|Specialize, "local_subtensor_of_softmax", onSubtensor, 2, subtensorOfSoftmax,
			"only the selected rows are normalized: Softmax(X)[0] → Softmax(X[0])"),
		rule(Canonicalize|Specialize, "local_subtensor_merge", onSubtensor, 2, subtensorMerge,
			"a part of a part is a part: x[2:][3] → x[5], x[1:9][2:4] → x[3:5], x[::-1][0] → x[-1], x[::-1][::-1] → x"),
		rule(Canonicalize|Specialize|Useless, "local_subtensor_make_vector", onAnySubtensor, 2, subtensorMakeVector,
			"an element of a MakeVector is known: MakeVector(a, b)[1] → b"),
		rule(Canonicalize|Specialize|Useless, "local_subtensor_of_alloc", onSubtensor, 0, subtensorOfAlloc,
			"a part of a filled tensor is a smaller one: Alloc(v, m, n)[i] → Alloc(v, n)"),
		rule(Canonicalize|Stabilize|Specialize, "local_subtensor_of_dot", onSubtensor, 2, subtensorOfDot,
			"a part of a product is a product of parts: dot(A, B)[i, j] → dot(A[i], B[:, j])"),
	}
}

// indexesOf returns the indexes of a Subtensor.
func indexesOf(n *apply) []tensor.Index { return opOf[*tensor.SubtensorOp](n).Indexes(n) }

func uselessSubtensor(c *rewrite.Context, n *apply) (result, error) {
	x := n.Inputs()[0]
	s := tensor.ShapesOf(c.Graph())
	switch op := n.Op().(type) {
	case tensor.AdvancedSubtensorOp:
		stop := rangeFromZero(n.Inputs()[1])
		if op.K != 1 || stop == nil || !sameSize(stop, s.Dim(x, 0)) {
			return c.Miss("the indexes are not all of them in order"), nil
		}
	case *tensor.SubtensorOp:
		if op.NumIndexes() > 0 && !op.IsSlice(0) {
			return c.Miss("index 0 selects a part"), nil
		}
		for d, i := range op.Indexes(n) {
			if usefulPart(i, s.Dim(x, d)) {
				return c.Miss("index %d selects a part", d), nil
			}
		}
	}
	return replace(c, n, x)
}

// usefulPart reports whether an index selects less than all n elements of a dimension, as far as is
// known.
func usefulPart(i tensor.Index, n *variable) bool {
	if i.IsEverything() {
		return false
	}
	if !i.Slice || i.Step != 1 {
		return true
	}
	if i.Start != nil {
		if k, ok := intOf(i.Start); !ok || k != 0 {
			return true
		}
	}
	if i.Stop == nil || sameSize(i.Stop, n) {
		return false
	}
	stop, ok := intOf(i.Stop)
	size, ok2 := intOf(n)
	return !ok || !ok2 || stop < size
}

func uselessSlice(c *rewrite.Context, n *apply) (result, error) {
	op := opOf[*tensor.SubtensorOp](n)
	k := op.NumIndexes()
	if k == 0 || !op.IsSlice(k-1) {
		return c.Miss("the last index is not a slice"), nil
	}
	indexes := op.Indexes(n)
	if !indexes[k-1].IsEverything() {
		return c.Miss("the last index is not a full slice"), nil
	}
	return replace(c, n, tensor.Subtensor(n.Inputs()[0], indexes...))
}

// subtensorConstants is not one of Theano's, where numbers are inputs like others.
func subtensorConstants(c *rewrite.Context, n *apply) (result, error) {
	if !slices.ContainsFunc(n.Inputs()[1:], (*variable).IsConstant) {
		return c.Miss("no index is a constant"), nil
	}
	return attempt(c, n, func() *variable { return tensor.RawSubtensor(n.Inputs()[0], indexesOf(n)...) })
}

// subtensorMerge takes bounds that are numbers and count from the beginning. Theano merges all
// bounds, by way of large expressions for their signs, which cost more than the second view.
func subtensorMerge(c *rewrite.Context, n *apply) (result, error) {
	a, op, ok := owner[*tensor.SubtensorOp](n.Inputs()[0])
	if !ok {
		return c.Miss("the argument is not a selection"), nil
	}
	first, second := op.Indexes(a), indexesOf(n)
	var merged []tensor.Index
	for _, i := range first {
		if !i.Slice || len(second) == 0 {
			merged = append(merged, i)
			continue
		}
		m, ok := mergeIndexes(i, second[0])
		if !ok {
			return c.Miss("the bounds are not numbers that count from the beginning"), nil
		}
		merged, second = append(merged, m), second[1:]
	}
	return attempt(c, n, func() *variable { return tensor.Subtensor(a.Inputs()[0], append(merged, second...)...) })
}

// mergeIndexes returns the index that selects what j selects of what the slice i selects.
func mergeIndexes(i, j tensor.Index) (tensor.Index, bool) {
	switch {
	case j.IsEverything():
		return i, true
	case i.IsEverything():
		return j, true
	case reverses(i) && j.Slice && reverses(j):
		return tensor.Everything(), true
	case reverses(i) && !j.Slice:
		k, ok := intOf(j.Start)
		return tensor.At(tensor.Int(-1 - k)), ok
	}
	a, b, ok := knownBounds(i)
	from, to, ok2 := knownBounds(j)
	negative := func(n *int) bool { return n != nil && *n < 0 }
	if !ok || !ok2 || i.Step <= 0 || negative(a) || negative(b) || negative(from) || negative(to) {
		return i, false
	}
	start := 0
	if a != nil {
		start = *a
	}
	if !j.Slice {
		k := start + *from*i.Step
		return tensor.At(tensor.Int(k)), b == nil || k < *b // else it is out of range, and the new index may not be
	}
	if j.Step <= 0 {
		return i, false
	}
	stop := b
	if to != nil {
		if end := start + *to*i.Step; stop == nil || end < *stop {
			stop = &end
		}
	}
	if from != nil {
		start += *from * i.Step
	}
	m := tensor.SliceOf(tensor.Int(start), nil, i.Step*j.Step)
	if stop != nil {
		m.Stop = tensor.Int(*stop)
	}
	return m, true
}

// reverses reports whether a slice is [::-1].
func reverses(i tensor.Index) bool { return i.Step == -1 && i.Start == nil && i.Stop == nil }

// knownBounds returns the bounds of an index if they are numbers.
func knownBounds(i tensor.Index) (start, stop *int, ok bool) {
	ok = true
	get := func(v *variable) *int {
		if v == nil {
			return nil
		}
		n, known := intOf(v)
		ok = ok && known
		return &n
	}
	start, stop = get(i.Start), get(i.Stop)
	return start, stop, ok
}

// intOf returns the value of an integer scalar, and whether it is known and exact as a float64.
func intOf(v *variable) (int, bool) {
	x, ok := uniform(v)
	if !ok || isFloat(v) || math.Abs(x) >= 1<<53 {
		return 0, false
	}
	return int(x), true
}
