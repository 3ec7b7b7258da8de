package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// The rules of this file read what was just written.

// subtensorIncSubtensor reads the value where the read part is inside the written one, and the
// tensor behind the write where it is apart from it.
func subtensorIncSubtensor(c *rewrite.Context, n *apply) (result, error) {
	a, op, ok := owner[*tensor.IncSubtensorOp](n.Inputs()[0])
	if !ok || op.Inplace {
		return c.Miss("the argument is not a changed part"), nil
	}
	x, y, s := a.Inputs()[0], a.Inputs()[1], tensor.ShapesOf(c.Graph())
	read, write := everything(typeOf(x).NDim()), everything(typeOf(x).NDim())
	copy(read, indexesOf(n))
	copy(write, op.Indexes(a))
	var of []tensor.Index        // of y
	var checks, lost []*variable // conditions that x and y do not check if the other one is not read
	missed, elsewhere := false, false
	for d, w := range write {
		i, o := tensor.CompareIndexes(read[d], w, s.Dim(x, d))
		elsewhere = elsewhere || o == tensor.Apart
		missed = missed || o == tensor.Mixed || o == tensor.Inside && !w.Slice && read[d].Slice
		if w.Slice {
			if !i.Slice && typeOf(y).Dim(len(of)) == 1 {
				lost = append(lost, inRange(read[d].Start, s.Dim(x, d)))
			}
			of = append(of, i)
		} else if o != tensor.Inside {
			checks = append(checks, beyond(w.Start, read[d], s.Dim(x, d)))
		}
	}
	from := tensor.Subtensor(x, indexesOf(n)...)
	if elsewhere {
		return attempt(c, n, func() *variable { return provided(from, "an index of a write is out of range", checks...) })
	}
	if missed {
		return c.Miss("it is not known that it reads what was written"), nil
	}
	for d := range of {
		switch {
		case typeOf(y).Dim(d) != 1: // else one value is written everywhere
		case of[d].Slice:
			of[d] = tensor.Everything()
		default:
			of[d] = tensor.At(tensor.Int(0))
		}
	}
	y, err := tensor.Try(func() *variable { return part(y, of...) })
	switch {
	case err != nil:
		return c.Miss("%v", err), nil
	case !op.Set:
		return replace(c, n, tensor.Add(from, y))
	case !n.Out().Type().Accepts(y.Type()):
		return replace(c, n, y, from)
	}
	return attempt(c, n, func() *variable { return provided(y, "an index is out of range", lost...) })
}

// beyond returns the condition that an element of a dimension of size n exists. It returns nil if that
// is known, or follows from reading another element.
func beyond(element *variable, read tensor.Index, n *variable) *variable {
	e, ok := intOf(element)
	if !read.Slice && ok {
		if r, ok := intOf(read.Start); ok && (e >= 0 && e <= r || r < 0 && r <= e && e < 0) {
			return nil
		}
	}
	return inRange(element, n)
}

// advSub1AdvIncSub1 takes indexes that are numbers, or that were just written and are known to be
// different. Where some of the places that it reads were written, it writes to what it reads.
func advSub1AdvIncSub1(c *rewrite.Context, n *apply) (result, error) {
	v := n.Inputs()[0]
	a, op, ok := owner[tensor.AdvancedIncSubtensorOp](v)
	if !ok || op.Inplace || opOf[tensor.AdvancedSubtensorOp](n).K != op.K {
		return c.Miss("it does not read rows that were changed"), nil
	}
	x, y, write, read := a.Inputs()[0], a.Inputs()[1], a.Inputs()[2:], n.Inputs()[1:]
	if slices.Equal(write, read) && tensor.DistinctIndexes(x, write) && n.Out().Type().Accepts(y.Type()) {
		if !op.Set {
			y = tensor.Add(tensor.Take(x, read...), y)
		}
		return replace(c, n, y)
	}
	from, ok := tensor.PlacesOf(x, write)
	to, ok2 := tensor.PlacesOf(x, read)
	at, once := from.Last()
	if !ok || !ok2 || !from.SameSigns(to) || !op.Set && !once || len(from) == 0 {
		return c.Miss("it is not known which rows were changed, or one was several times"), nil
	}
	var written, rows []int64 // of n.Out() and y
	inOrder := true
	for k, p := range to {
		if j, ok := at[p]; ok {
			inOrder = inOrder && j == len(rows)
			written, rows = append(written, int64(k)), append(rows, int64(j))
		}
	}
	list := func(l []int64) *variable { return tensor.Constant(array.Of(l, len(l))) }
	if len(rows) > 0 && typeOf(y).Dim(0) == 1 && len(from) > 1 {
		return c.Miss("one value is written everywhere"), nil
	}
	old := tensor.Take(x, read...)
	if !inOrder || len(rows) < len(from) {
		y = tensor.Take(y, list(rows))
	}
	switch {
	case len(rows) == len(to) && op.Set:
		return replace(c, n, y, old)
	case len(rows) == len(to):
		return replace(c, n, tensor.Add(old, y))
	case len(rows) > 0 && !usedOnce(v):
		return c.Miss("what was written has other uses"), nil
	}
	s := tensor.ShapesOf(c.Graph())
	var checks []*variable
	for d := range write {
		checks = append(checks, reached(from, to, d, s.Dim(x, d)))
	}
	old = provided(old, "an index of a write is out of range", checks...)
	switch {
	case len(rows) == 0:
		return replace(c, n, old)
	case op.Set:
		return replace(c, n, tensor.SetTake(old, y, list(written)))
	}
	return replace(c, n, tensor.IncTake(old, y, list(written)))
}

// reached returns the condition that a dimension of size n has the places that are written. It returns
// nil if that follows from the places that are read.
func reached(written, read tensor.Places, d int, n *variable) *variable {
	if k := written.LeastSize(d); k > read.LeastSize(d) {
		if size, ok := intOf(n); !ok || size < k {
			return tensor.Map(array.Ge, n, tensor.Int(k))
		}
	}
	return nil
}

// sliceOfRows reads a slice of rows of which others, or exactly these, were written.
func sliceOfRows(_ *rewrite.Context, n, a *apply) *variable {
	op, x, y := opOf[tensor.AdvancedIncSubtensorOp](a), a.Inputs()[0], a.Inputs()[1]
	indexes, size := indexesOf(n), typeOf(x).Dim(0)
	places, ok := tensor.PlacesOf(x, a.Inputs()[2:])
	if !ok || op.K != 1 || op.Inplace || size == tensor.Unknown || len(indexes) == 0 {
		return nil
	}
	r, ok := indexes[0].Range(size)
	if !ok || r.Count == 0 {
		return nil
	}
	at, distinct := places.Last()
	var rows []int64 // of y
	for k := range r.Count {
		if j, ok := at[tensor.Place{r.Start + k*r.Step}]; ok {
			rows = append(rows, int64(j))
		}
	}
	switch {
	case len(rows) == 0:
		return tensor.Subtensor(x, indexes...)
	case len(rows) < r.Count || !distinct || typeOf(y).Dim(0) == 1 && len(places) > 1:
		return nil
	}
	read := slices.Clone(indexes)
	read[0] = tensor.Everything()
	y = tensor.Take(y, tensor.Constant(array.Of(rows, len(rows))))
	if !indexes[0].Slice {
		read[0] = tensor.At(tensor.Int(0))
	}
	for d := 1; d < len(read); d++ {
		if typeOf(y).Dim(d) != 1 || typeOf(x).Dim(d) == 1 {
			continue // else one value is written everywhere
		} else if read[d] = tensor.Everything(); !indexes[d].Slice {
			read[d] = tensor.At(tensor.Int(0))
		}
	}
	if y = tensor.Subtensor(y, read...); op.Set {
		return conform(n.Out(), y, tensor.Subtensor(x, indexes...))
	}
	return tensor.Add(tensor.Subtensor(x, indexes...), y)
}
