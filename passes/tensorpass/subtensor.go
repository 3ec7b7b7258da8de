package tensorpass

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

var onSubtensor = []rewrite.Track{rewrite.TrackType[*tensor.SubtensorOp]()}

// subtensorOf returns the indexes of a Subtensor.
func subtensorOf(n *apply) []tensor.Index { return n.Op().(*tensor.SubtensorOp).Indexes(n) }

// onAnySubtensor tracks selections by index and by index vector.
var onAnySubtensor = append(slices.Clone(onSubtensor), rewrite.TrackType[tensor.AdvancedSubtensorOp]())

// intOf returns the value of an integer scalar that is known, and is exact as a float64.
func intOf(v *vari) (int, bool) {
	x, ok := uniform(v)
	if !ok || isFloat(v) || math.Abs(x) >= 1<<53 {
		return 0, false
	}
	return int(x), true
}

// usefulPart reports whether an index selects less than all n elements of a dimension, as far as that is known.
func usefulPart(i tensor.Index, n *vari) bool {
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

// uselessSubtensor is local_useless_subtensor.
func uselessSubtensor() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_useless_subtensor", Doc: "a selection of everything is left out: x[:], x[0:n] where n is the size, x[arange(n)] → x", On: onAnySubtensor,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			x := n.Inputs()[0]
			s := tensor.ShapesOf(c.Graph())
			if op, ok := n.Op().(tensor.AdvancedSubtensorOp); ok {
				a, _, ok := owner[tensor.ARangeOp](n.Inputs()[1])
				if !ok || op.K != 1 || !is(a.Inputs()[0], 0) || !is(a.Inputs()[2], 1) || !sameSize(a.Inputs()[1], s.Dim(x, 0)) {
					return c.Miss("the indexes are not all of them in order"), nil
				}
				return replace(c, n, x)
			}
			if op := n.Op().(*tensor.SubtensorOp); op.NumIndexes() > 0 && !op.IsSlice(0) {
				return c.Miss("index 0 selects a part"), nil
			}
			for d, i := range subtensorOf(n) {
				if usefulPart(i, s.Dim(x, d)) {
					return c.Miss("index %d selects a part", d), nil
				}
			}
			return replace(c, n, x)
		},
	}
}

// uselessSlice is local_useless_slice.
func uselessSlice() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_useless_slice", Doc: "full slices at the end of an index are left out: X[0, :] → X[0]", On: onSubtensor, Depth: 1,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op := n.Op().(*tensor.SubtensorOp)
			k := op.NumIndexes()
			if k == 0 || !op.IsSlice(k-1) {
				return c.Miss("the last index is no slice"), nil
			}
			indexes := subtensorOf(n)
			if !indexes[k-1].IsEverything() {
				return c.Miss("the last index is no full slice"), nil
			}
			return replace(c, n, tensor.Subtensor(n.Inputs()[0], indexes...))
		},
	}
}

// subtensorConstants is local_subtensor_constant_indexes, of ours: in Theano numbers are inputs like others.
func subtensorConstants() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_subtensor_constant_indexes", Doc: "an index that became a number belongs to the op", On: onSubtensor, Depth: 1,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			if !slices.ContainsFunc(n.Inputs()[1:], func(v *vari) bool { return v.IsConstant() }) {
				return c.Miss("no index is a constant"), nil
			}
			y, err := tensor.Try(func() *vari { return tensor.RawSubtensor(n.Inputs()[0], subtensorOf(n)...) })
			if err != nil {
				return c.Miss("%v", err), nil // it will fail when it runs
			}
			return replace(c, n, y)
		},
	}
}

// subtensorLift is local_subtensor_lift.
func subtensorLift() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_subtensor_lift", Doc: "a part is selected before computing: (x + y)[1:3] → x[1:3] + y[1:3]", On: onSubtensor, Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			v := n.Inputs()[0]
			a := v.Owner()
			if _, ok := elemOf(a); !ok || !alone(v) {
				return c.Miss("the argument is not element-wise, or used elsewhere, too"), nil
			}
			indexes := subtensorOf(n)
			in := make([]*vari, len(a.Inputs()))
			for i, x := range a.Inputs() {
				y, ok := selected(x, v, indexes)
				if !ok {
					return c.Miss("input %d is broadcast along a dimension that is indexed", i), nil
				}
				in[i] = y
			}
			return replace(c, n, tensor.MustApply(a.Op().(tensor.Elemwise), in...))
		},
	}
}

// selected returns the part of x, which broadcasts to the shape of v, that corresponds to an index of v.
func selected(x, v *vari, indexes []tensor.Index) (*vari, bool) {
	part := make([]tensor.Index, len(indexes))
	order := []int{}
	dropped := 0
	for d, i := range indexes {
		switch {
		case (typ(x).Dim(d) == 1) == (typ(v).Dim(d) == 1):
			part[d] = i
			if !i.Slice {
				dropped++
			}
		case !i.Slice: // the only element
			part[d] = tensor.At(tensor.Int(0))
			dropped++
		default: // the only element, which is broadcast to however many are selected
			part[d] = tensor.Everything()
		}
	}
	y := x
	if a := tensor.ConstantOf(x); a != nil && a.Len() == 1 {
		for d := range typ(x).NDim() - dropped {
			order = append(order, d)
		}
		ones := make([]int, len(order))
		for i := range ones {
			ones[i] = 1
		}
		return tensor.Constant(a.Reshape(ones...)), true
	}
	y, err := tensor.Try(func() *vari { return tensor.Subtensor(x, part...) })
	return y, err == nil
}

// subtensorMakeVector is local_subtensor_make_vector.
func subtensorMakeVector() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_subtensor_make_vector", Doc: "an element of a vector that is put together is known: MakeVector(a, b)[1] → b", On: onAnySubtensor, Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			a, op, ok := owner[tensor.MakeVectorOp](n.Inputs()[0])
			if !ok {
				return c.Miss("the argument is no MakeVector"), nil
			}
			elements := a.Inputs()
			if _, ok := n.Op().(tensor.AdvancedSubtensorOp); ok {
				index := tensor.ConstantOf(n.Inputs()[1])
				if index == nil || index.NDim() != 1 {
					return c.Miss("the indexes are not known"), nil
				}
				picked := make([]*vari, index.Len())
				for i := range picked {
					k, err := array.Position(index.Int(i), len(elements))
					if err != nil {
						return c.Miss("%v", err), nil
					}
					picked[i] = elements[k]
				}
				return replace(c, n, tensor.MustApply(op, picked...))
			}
			i := subtensorOf(n)[0]
			start, stop, ok := knownBounds(i)
			if !ok {
				return c.Miss("the index is not known"), nil
			}
			if !i.Slice {
				k, err := array.Position(int64(*start), len(elements))
				if err != nil {
					return c.Miss("%v", err), nil
				}
				return replace(c, n, elements[k])
			}
			r := array.SliceRange(len(elements), start, stop, i.Step)
			picked := make([]*vari, r.Count)
			for k := range picked {
				picked[k] = elements[r.Start+k*r.Step]
			}
			return replace(c, n, tensor.MustApply(op, picked...))
		},
	}
}

// knownBounds returns the bounds of an index if they are numbers.
func knownBounds(i tensor.Index) (start, stop *int, ok bool) {
	get := func(v *vari) *int {
		if v == nil {
			return nil
		}
		n, known := intOf(v)
		ok = ok && known
		return &n
	}
	ok = true
	start = get(i.Start)
	stop = get(i.Stop)
	return start, stop, ok
}

// subtensorMerge is local_subtensor_merge, where all bounds are numbers that count from the beginning. Theano merges whatever the bounds are, by way
// of large expressions for their signs, which cost more than the second view.
func subtensorMerge() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_subtensor_merge", Doc: "a part of a part is a part: x[2:][3] → x[5], x[1:9][2:4] → x[3:5], x[::-1][0] → x[-1], x[::-1][::-1] → x", On: onSubtensor, Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			a, op, ok := owner[*tensor.SubtensorOp](n.Inputs()[0])
			if !ok {
				return c.Miss("the argument is no selection"), nil
			}
			first, second := op.Indexes(a), subtensorOf(n)
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
			x := a.Inputs()[0]
			y, err := tensor.Try(func() *vari { return tensor.Subtensor(x, append(merged, second...)...) })
			if err != nil {
				return c.Miss("%v", err), nil
			}
			return replace(c, n, y)
		},
	}
}

// mergeIndexes returns the index that selects what j selects of what the slice i selects.
func mergeIndexes(i, j tensor.Index) (tensor.Index, bool) {
	switch {
	case j.IsEverything():
		return i, true
	case i.IsEverything():
		return j, true
	case j.Slice && i.Step == -1 && j.Step == -1 && i.Start == nil && i.Stop == nil && j.Start == nil && j.Stop == nil:
		return tensor.Everything(), true
	case !j.Slice && i.Step == -1 && i.Start == nil && i.Stop == nil:
		k, ok := intOf(j.Start)
		return tensor.At(tensor.Int(-1 - k)), ok
	}
	a, b, ok := knownBounds(i)
	from, to, ok2 := knownBounds(j)
	if !ok || !ok2 || i.Step <= 0 || negative(a) || negative(b) || negative(from) || negative(to) {
		return i, false
	}
	start := 0
	if a != nil {
		start = *a
	}
	if !j.Slice {
		k := start + *from*i.Step
		return tensor.At(tensor.Int(k)), b == nil || k < *b // else it is out of range, which the new index might not be
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

func negative(n *int) bool { return n != nil && *n < 0 }

// subtensorOfAlloc is local_subtensor_of_alloc.
func subtensorOfAlloc() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_subtensor_of_alloc", Doc: "a part of a filled tensor is a smaller one: Alloc(v, m, n)[i] → Alloc(v, n)", On: onSubtensor,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			a, _, ok := owner[tensor.AllocOp](n.Inputs()[0])
			if !ok {
				return c.Miss("the argument is no Alloc"), nil
			}
			v, indexes := a.Inputs()[0], subtensorOf(n)
			for d, i := range indexes { // an index may be out of range, which has to be an error still
				if !i.Slice && !inRange(i.Start, a.Inputs()[1+d]) {
					return c.Miss("index %d may be out of range", d), nil
				}
			}
			pad := typ(a.Out()).NDim() - typ(v).NDim()
			if len(indexes) > pad {
				part, ok := selected(v, v, ofValue(v, a.Out(), indexes[pad:]))
				if !ok {
					return c.Miss("the value can't be indexed so"), nil
				}
				v = part
			}
			return replace(c, n, refilled(v, tensor.ShapesOf(c.Graph()).Shape(n.Out())))
		},
	}
}

// ofValue adapts indexes of a filled tensor to its value: dimensions of size 1 that are broadcast are taken whole.
func ofValue(v, filled *vari, indexes []tensor.Index) []tensor.Index {
	pad := typ(filled).NDim() - typ(v).NDim()
	out := slices.Clone(indexes)
	for d := range out {
		if typ(v).Dim(d) == 1 && typ(filled).Dim(pad+d) != 1 {
			if out[d].Slice {
				out[d] = tensor.Everything()
			} else {
				out[d] = tensor.At(tensor.Int(0))
			}
		}
	}
	return out
}

// inRange reports whether an index is known to be within a dimension of a size.
func inRange(i, size *vari) bool {
	k, ok := intOf(i)
	n, ok2 := intOf(size)
	return ok && ok2 && k < n && k >= -n
}

// subtensorOfDot is local_subtensor_of_dot.
func subtensorOfDot() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_subtensor_of_dot", Doc: "a part of a product is a product of parts: dot(A, B)[i, j] → dot(A[i], B[:, j])", On: onSubtensor, Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			v := n.Inputs()[0]
			a, _, ok := owner[tensor.DotOp](v)
			if !ok || !alone(v) {
				return c.Miss("the argument is no product that is used here only"), nil
			}
			x, y, indexes := a.Inputs()[0], a.Inputs()[1], subtensorOf(n)
			if typ(x).NDim() == 2 && len(indexes) > 0 {
				x = tensor.Subtensor(x, indexes[0])
				indexes = indexes[1:]
			}
			if len(indexes) > 0 { // of the columns of y
				y = tensor.Subtensor(y, tensor.Everything(), indexes[0])
			}
			return replace(c, n, tensor.Dot(x, y))
		},
	}
}

// dimShuffleSubtensor is local_dimshuffle_subtensor.
func dimShuffleSubtensor() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_dimshuffle_subtensor", Doc: "a dimension of size 1 that is dropped is indexed instead: DimShuffle{1}(x[0:1]) → x[0]", On: onDimShuffle, Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op := n.Op().(tensor.DimShuffleOp)
			a := n.Inputs()[0].Owner()
			if a == nil || !alone(n.Inputs()[0]) {
				return c.Miss("the argument is no selection that is used here only"), nil
			}
			if _, ok := a.Op().(*tensor.SubtensorOp); !ok {
				return c.Miss("the argument is no selection"), nil
			}
			indexes := subtensorOf(a)
			order := op.NewOrder()
			kept := 0 // dimension of the argument
			changed := false
			for d := range indexes {
				if !indexes[d].Slice {
					continue
				}
				if !slices.Contains(order, kept) {
					start := indexes[d].Start
					if start == nil {
						start = tensor.Int(0)
					}
					if k, ok := intOf(start); !ok || indexes[d].Step != 1 || k < 0 {
						return c.Miss("where the dropped dimension begins is not known"), nil
					}
					indexes[d] = tensor.At(start)
					changed = true
					for i, o := range order {
						if o > kept {
							order[i]--
						}
					}
					continue
				}
				kept++
			}
			if !changed {
				return c.Miss("no dimension is dropped that is sliced"), nil
			}
			y, err := tensor.Try(func() *vari { return tensor.DimShuffle(tensor.RawSubtensor(a.Inputs()[0], indexes...), order...) })
			if err != nil {
				return c.Miss("%v", err), nil
			}
			return replace(c, n, y)
		},
	}
}
