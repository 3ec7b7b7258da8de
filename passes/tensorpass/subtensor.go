package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// subtensorRules are the rules of parts of tensors.
var subtensorRules = goRules{
	"local_subtensor_constant_indexes":  {onSubtensor, ofConstant, 1, subtensorConstants},
	"local_useless_slice":               {onSubtensor, nil, 1, uselessSlice},
	"local_useless_subtensor":           {onAnySubtensor, nil, 0, uselessSubtensor},
	"local_advanced_index_to_slice":     {slices.Concat(onAdvanced, onAdvancedInc), nil, 1, advancedToSlice},
	"local_subtensor_lift":              {onAnySubtensor, of(onElemwise), 2, partOf[tensor.Elemwise](true, subtensorLift)},
	"local_subtensor_of_dimshuffle":     {onAnySubtensor, of(onDimShuffle), 2, partOf[tensor.DimShuffleOp](false, subtensorOfDimShuffle)},
	"local_subtensor_of_join":           {onAnySubtensor, of(onJoin), 2, partOf[tensor.JoinOp](false, subtensorOfJoin)},
	"local_subtensor_of_reduce":         {onAnySubtensor, of(onReduce), 2, partOf[tensor.Reduce](true, subtensorOfReduce)},
	"local_subtensor_SpecifyShape_lift": {onSubtensor, of(onSpecifyShape), 2, partOf[tensor.SpecifyShapeOp](false, subtensorOfSpecifyShape)},
	"local_subtensor_of_softmax":        {onAnySubtensor, of(onSoftmax), 2, partOf[tensor.SoftmaxOp](true, subtensorOfSoftmax)},
	"local_subtensor_merge":             {onSubtensor, of(onSubtensor), 0, through[*tensor.SubtensorOp](false, subtensorMerge)},
	"local_subtensor_make_vector":       {onAnySubtensor, of(onType[tensor.MakeVectorOp]()), 2, partOf[tensor.MakeVectorOp](false, subtensorMakeVector)},
	"local_subtensor_of_alloc":          {onAnySubtensor, of(onAlloc), 0, partOf[tensor.AllocOp](false, subtensorOfAlloc)},
	"local_subtensor_of_dot":            {onAnySubtensor, of(onType[tensor.DotOp]()), 2, partOf[tensor.DotOp](true, subtensorOfDot)},
	"local_advanced_subtensor_lift":     {onAdvanced, of(onElemwise), 2, through[tensor.Elemwise](true, advancedLift)},
	"local_advanced_subtensor_of_alloc": {onAdvanced, of(onAlloc), 0, through[tensor.AllocOp](false, advancedOfAlloc)},
	"local_adv_idx_of_expand_dims":      {onAdvanced, of(onDimShuffle), 2, through[tensor.DimShuffleOp](false, advancedOfDimShuffle)},
	"local_advanced_subtensor_of_one":   {onAdvanced, nil, 0, advancedOfOne},
	"local_subtensor_of_adv_subtensor":  {onSubtensor, of(onAdvanced), 2, through[tensor.AdvancedSubtensorOp](true, subtensorOfAdvanced)},
	"local_convert_negative_indices":    {slices.Concat(onSubtensor, onIncSubtensor), nil, 1, plainIndexes},
}

var (
	onSubtensor, onAdvanced = onType[*tensor.SubtensorOp](), onType[tensor.AdvancedSubtensorOp]()
	onAnySubtensor          = slices.Concat(onSubtensor, onAdvanced)
)

// indexesOf returns the indexes of a Subtensor, or of an AdvancedSubtensor1 with a vector. It returns
// nil for other ops that select.
func indexesOf(n *apply) []tensor.Index {
	switch op := n.Op().(type) {
	case *tensor.SubtensorOp:
		return op.Indexes(n)
	case tensor.AdvancedSubtensorOp:
		if rows := n.Inputs()[1]; op.K == 1 && typeOf(rows).NDim() == 1 {
			return []tensor.Index{{Slice: true, Start: rows}}
		}
	}
	return nil
}

// isRows reports whether an index is a vector of integers, which indexesOf makes a slice with step 0.
func isRows(i tensor.Index) bool { return i.Slice && i.Step == 0 && i.By == nil }

// part returns what indexes select of x. It panics, as [tensor.Try] expects, if they do not fit, or if
// there is no op that selects it.
func part(x *variable, indexes ...tensor.Index) *variable {
	if len(indexes) == 0 || !isRows(indexes[0]) {
		return tensor.Subtensor(x, indexes...)
	}
	rest := append([]tensor.Index{tensor.Everything()}, indexes[1:]...)
	return tensor.Take(tensor.Subtensor(x, rest...), indexes[0].Start)
}

// fewer reports whether n is known to select no more elements than there are.
func fewer(c *rewrite.Context, n *apply) bool {
	op, advanced := n.Op().(tensor.AdvancedSubtensorOp)
	x, rows := n.Inputs()[0], n.Inputs()[1:]
	return !advanced || op.K == 1 && typeOf(rows[0]).NDim() == 1 && few(tensor.ShapesOf(c.Graph()), x, rows)
}

// pickedDim returns the first dimension of which an op takes one element, or -1. Unlike indexesOf it
// allocates nothing.
func pickedDim(op fgraph.Op) int {
	if op, ok := op.(interface {
		NumIndexes() int
		IsSlice(d int) bool
	}); ok {
		for d := range op.NumIndexes() {
			if !op.IsSlice(d) {
				return d
			}
		}
	}
	return -1
}

func uselessSubtensor(c *rewrite.Context, n *apply) (result, error) {
	if d := pickedDim(n.Op()); d >= 0 {
		return c.Miss("index %d selects a part", d), nil
	}
	x, indexes, s := n.Inputs()[0], indexesOf(n), tensor.ShapesOf(c.Graph())
	if indexes == nil {
		return c.Miss("the indexes are several tensors"), nil
	}
	for d, i := range indexes {
		var stop *variable
		if isRows(i) {
			stop = rangeFromZero(i.Start)
		}
		if size := dimOf(s, x, d); !i.SelectsAll(size) && (stop == nil || !sameSize(stop, size)) {
			return c.Miss("index %d selects a part", d), nil
		}
	}
	return replace(c, n, x)
}

func uselessSlice(c *rewrite.Context, n *apply) (result, error) {
	indexes := indexesOf(n)
	if len(indexes) == 0 || !indexes[len(indexes)-1].IsEverything() {
		return c.Miss("the last index is not a full slice"), nil
	}
	return replace(c, n, tensor.Subtensor(n.Inputs()[0], indexes...))
}

// plainIndexes writes numbers in the simplest way: those of elements count from the first one, slices
// have no bounds that select nothing else.
func plainIndexes(c *rewrite.Context, n *apply) (result, error) {
	var indexes []tensor.Index
	write, isWrite := n.Op().(*tensor.IncSubtensorOp)
	if isWrite {
		indexes = write.Indexes(n)
	} else {
		indexes = indexesOf(n)
	}
	x, changed, s := n.Inputs()[0], false, tensor.ShapesOf(c.Graph())
	for d, i := range indexes {
		if plain := i.Plain(knownDim(s, x, d)); !plain.Same(i) {
			indexes[d], changed = plain, true
		}
	}
	switch {
	case !changed || isWrite && write.Inplace:
		return c.Miss("all indexes are as simple as possible, as far as sizes are known"), nil
	case isWrite:
		return attempt(c, n, func() *variable { return write.With(x, n.Inputs()[1], indexes...) })
	}
	return replace(c, n, tensor.Subtensor(x, indexes...))
}

// subtensorConstants is not one of Theano's, where numbers are inputs like others.
func subtensorConstants(c *rewrite.Context, n *apply) (result, error) {
	if !slices.ContainsFunc(n.Inputs()[1:], (*variable).IsConstant) {
		return c.Miss("no index is a constant"), nil
	}
	return attempt(c, n, func() *variable { return tensor.RawSubtensor(n.Inputs()[0], indexesOf(n)...) })
}

// subtensorMerge merges what it can: of x[y:, 1:5][1:, :3] it makes x[y:, 1:4][1:]. Theano merges all
// slices, by way of large expressions for the signs of their bounds, which cost more than the second
// view.
func subtensorMerge(c *rewrite.Context, n, a *apply) *variable {
	v, x, s := a.Out(), a.Inputs()[0], tensor.ShapesOf(c.Graph())
	first, second := indexesOf(a), indexesOf(n)
	var inner, outer []tensor.Index
	merged, left, kept := false, false, 0 // kept is the dimension of v
	for d, i := range first {
		if !i.Slice || len(second) == 0 {
			inner = append(inner, i)
			continue
		}
		m, ok := tensor.MergeIndexes(i, second[0], dimOf(s, x, d), func() *variable { return s.Dim(v, kept) })
		kept++
		switch {
		case !ok:
			m, left = i, true
			outer = append(outer, second[0])
		case m.Slice:
			outer = append(outer, tensor.Everything())
		}
		merged = merged || ok && !second[0].IsEverything()
		inner, second = append(inner, m), second[1:]
	}
	if left && (!merged && len(second) == 0 || !usedOnce(v)) {
		return nil // the merged bounds would have to be computed
	}
	return tensor.Subtensor(tensor.Subtensor(x, append(inner, second...)...), outer...)
}

func advancedToSlice(c *rewrite.Context, n *apply) (result, error) {
	x, indexes := n.Inputs()[0], n.Inputs()[1:]
	op, write := n.Op().(tensor.AdvancedIncSubtensorOp)
	if write {
		indexes = indexes[1:]
	}
	size := knownDim(tensor.ShapesOf(c.Graph()), x, 0)
	places, ok := tensor.PlacesOf(x, indexes)
	if !ok || len(indexes) != 1 || size == tensor.Unknown || op.Inplace || len(places) == 0 {
		return c.Miss("the indexes are not a list of numbers that are known to be in range"), nil
	}
	r := array.Range{Start: places[0][0], Step: 1, Count: len(places)}
	if r.Count > 1 {
		r.Step = places[1][0] - r.Start
	}
	for k, p := range places {
		if r.Step == 0 || p[0] != r.Start+k*r.Step {
			return c.Miss("the distances of the indexes differ"), nil
		}
	}
	i := tensor.IndexOf(r, size)
	return attempt(c, n, func() *variable {
		if write {
			return changed(op.Set, x, n.Inputs()[1], i)
		}
		return tensor.Subtensor(x, i)
	})
}
