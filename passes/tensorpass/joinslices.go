package tensorpass

import (
	"github.com/nnopt/nnopt/tensor"
)

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
