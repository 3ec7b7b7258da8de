package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
)

// subtensorOfJoin is not one of Theano's. For an element it needs the sizes only of the inputs up to
// it, from either end.
func subtensorOfJoin(c *rewrite.Context, n *apply) (result, error) {
	v := n.Inputs()[0]
	a, join, ok := owner[tensor.JoinOp](v)
	if !ok {
		return c.Miss("the argument is not a Join"), nil
	}
	indexes, axis := indexesOf(n), int(join.Axis)
	for len(indexes) <= axis {
		indexes = append(indexes, tensor.Everything())
	}
	along := indexes[axis]
	parts := slices.Clone(a.Inputs())
	switch {
	case isRows(along):
		return c.Miss("it selects rows from several inputs"), nil
	case !along.Slice:
		return elementOfJoin(c, n, parts, axis, indexes)
	case along.IsEverything():
		if !fewer(n) {
			return c.Miss("there would be more elements"), nil
		}
		for k := range parts {
			parts[k] = part(parts[k], indexes...)
		}
	default:
		if parts = sliceOfJoin(parts, axis, indexes); parts == nil {
			return c.Miss("it is not known of which inputs it takes a part"), nil
		}
	}
	switch {
	case slices.Contains(parts, nil):
		return c.Miss("no op selects such a part"), nil
	case len(parts) == 1:
		return replace(c, n, parts[0])
	case !usedOnce(v):
		return c.Miss("the Join has other uses, and parts would be joined again"), nil
	}
	for d := range axis {
		if !indexes[d].Slice {
			axis--
		}
	}
	return replace(c, n, tensor.Join(axis, parts...))
}

// sliceOfJoin returns the parts that a slice along the axis selects, or nil if it is not known where
// it begins and ends.
func sliceOfJoin(parts []*variable, axis int, indexes []tensor.Index) []*variable {
	total, known := 0, 0
	for _, v := range parts {
		size := typeOf(v).Dim(axis)
		if size == tensor.Unknown {
			break
		}
		total += size
		known++
	}
	along := indexes[axis]
	if known < len(parts) { // it has to begin and end in inputs whose places are known
		start, stop := 0, total+1
		if along.Stop != nil {
			stop, _ = intOf(along.Stop)
		}
		if along.Start != nil {
			start, _ = intOf(along.Start)
		}
		if along.Step < 0 || start < 0 || stop <= 0 || stop > total {
			return nil
		}
	}
	r, ok := along.Range(total)
	if !ok || r.Count == 0 {
		return nil
	}
	var picked []*variable
	at := 0 // where the input begins
	for _, v := range parts[:known] {
		size := typeOf(v).Dim(axis)
		if of := r.Clip(at, at+size); of.Count > 0 {
			of.Start -= at
			i := slices.Clone(indexes)
			i[axis] = tensor.IndexOf(of, size)
			picked = append(picked, part(v, i...))
		}
		at += size
	}
	if r.Step < 0 {
		slices.Reverse(picked)
	}
	return picked
}

func elementOfJoin(c *rewrite.Context, n *apply, parts []*variable, axis int, indexes []tensor.Index) (result, error) {
	k, ok := intOf(indexes[axis].Start)
	if !ok {
		return c.Miss("the index is not known"), nil
	}
	for at, v := range parts {
		if k < 0 { // it counts from the end
			v = parts[len(parts)-1-at]
		}
		switch size := typeOf(v).Dim(axis); {
		case size == tensor.Unknown:
			return c.Miss("it is not known where the inputs begin"), nil
		case k >= size:
			k -= size
		case k < -size:
			k += size
		default:
			indexes[axis] = tensor.At(tensor.Int(k))
			return replace(c, n, part(v, indexes...))
		}
	}
	return c.Miss("the index is out of range"), nil
}
