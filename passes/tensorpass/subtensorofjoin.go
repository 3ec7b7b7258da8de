package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
)

// subtensorOfJoin is not one of Theano's. For an element it needs the sizes only of the inputs up to
// it, from either end.
func subtensorOfJoin(_ *rewrite.Context, n, a *apply, indexes []tensor.Index) *variable {
	axis := int(opOf[tensor.JoinOp](a).Axis)
	for len(indexes) <= axis {
		indexes = append(indexes, tensor.Everything())
	}
	along, parts := indexes[axis], a.Inputs()
	switch {
	case isRows(along):
		return nil // it may select rows from several inputs
	case !along.Slice:
		return elementOfJoin(parts, axis, indexes)
	case !along.IsEverything():
		parts = sliceOfJoin(parts, axis, indexes)
	case fewer(n):
		parts = mapped(parts, func(x *variable) *variable { return part(x, indexes...) })
	default:
		return nil // there would be more elements
	}
	switch {
	case len(parts) == 1:
		return parts[0]
	case len(parts) == 0 || !usedOnce(a.Out()):
		return nil // it is not known of which inputs it takes a part, or parts would be joined again
	}
	for d := range axis {
		if !indexes[d].Slice {
			axis--
		}
	}
	return tensor.Join(axis, parts...)
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
		if along.Step <= 0 || start < 0 || stop <= 0 || stop > total {
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

// elementOfJoin returns the part that an element along the axis selects, or nil if it is not known where
// the inputs begin, or the element is out of range.
func elementOfJoin(parts []*variable, axis int, indexes []tensor.Index) *variable {
	k, ok := intOf(indexes[axis].Start)
	if !ok {
		return nil
	}
	for at, v := range parts {
		if k < 0 { // it counts from the end
			v = parts[len(parts)-1-at]
		}
		switch size := typeOf(v).Dim(axis); {
		case size == tensor.Unknown:
			return nil
		case k >= size:
			k -= size
		case k < -size:
			k += size
		default:
			indexes[axis] = tensor.At(tensor.Int(k))
			return part(v, indexes...)
		}
	}
	return nil
}
