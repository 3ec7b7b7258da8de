package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
)

// subtensorOfJoin is not one of Theano's. For an element it needs the sizes only of the inputs up to
// it, from either end.
func subtensorOfJoin(c *rewrite.Context, n, a *apply, indexes []tensor.Index) *variable {
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
	case fewer(c, n):
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

// adjacent returns the part of a tensor that consists of v and w, if these are parts of it that are
// adjacent in a dimension. It returns nil otherwise.
func adjacent(v, w *variable, axis int) *variable {
	a, _, isPart := owner[*tensor.SubtensorOp](v)
	b, _, isToo := owner[*tensor.SubtensorOp](w)
	if !isPart || !isToo || a.Inputs()[0] != b.Inputs()[0] {
		return nil
	}
	x := a.Inputs()[0]
	of, after := everything(typeOf(x).NDim()), everything(typeOf(x).NDim())
	copy(of, indexesOf(a))
	copy(after, indexesOf(b))
	for d := range of {
		if i, j := of[d], after[d]; i.Slice && j.Slice {
			if axis--; axis == -1 {
				if i.Step != 1 || j.Step != 1 || i.Stop == nil || !sameBound(i.Stop, j.Start) || !ordered(i.Start, i.Stop) || !ordered(j.Start, j.Stop) {
					return nil
				}
				of[d].Stop = j.Stop
				continue
			}
		}
		if i, j := of[d], after[d]; i.Slice != j.Slice || i.Step != j.Step || !sameBound(i.By, j.By) || !sameBound(i.Start, j.Start) || !sameBound(i.Stop, j.Stop) {
			return nil
		}
	}
	return tensor.Subtensor(x, of...)
}

// sameBound reports whether two bounds of slices, which may be nil, are known to be the same.
func sameBound(i, j *variable) bool {
	return i == j || i != nil && j != nil && tensor.SameSize(i, j)
}

// ordered reports whether a slice from start to stop is known not to end before it begins, however
// many elements there are to select from. Otherwise it is empty, and what lies between its bounds
// is selected by both slices of start:stop and stop:end.
func ordered(start, stop *variable) bool {
	if start == nil || stop == nil {
		return true
	}
	i, known := intOf(start)
	j, too := intOf(stop)
	return known && i == 0 || known && too && i <= j && (i < 0) == (j < 0)
}
