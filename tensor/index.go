package tensor

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// An Index selects one element or a slice of a dimension, as in Python. Bounds are integer scalars:
// negative ones count from the end, and nil ones are missing.
type Index struct {
	Slice       bool
	Start, Stop *fgraph.Variable // of one element: Start only
	Step        int              // of a slice: not 0, unless By is its step
	By          *fgraph.Variable // a step that only a run knows, or nil
}

// At returns the index of one element, which drops the dimension.
func At(i *fgraph.Variable) Index { return Index{Start: i} }

// SliceOf returns the index start:stop:step.
func SliceOf(start, stop *fgraph.Variable, step int) Index {
	return Index{Slice: true, Start: start, Stop: stop, Step: step}
}

// SliceBy returns the index start:stop:step, where step is an integer scalar or nil.
func SliceBy(start, stop, step *fgraph.Variable) Index {
	if step == nil {
		return SliceOf(start, stop, 1)
	} else if n, ok := constantInt(step); ok {
		return SliceOf(start, stop, n)
	}
	return Index{Slice: true, Start: start, Stop: stop, By: step}
}

// Everything returns the index ":".
func Everything() Index { return Index{Slice: true, Step: 1} }

// IsEverything reports whether the index is ":", however it is written.
func (i Index) IsEverything() bool {
	if !i.Slice || i.Step != 1 || i.Stop != nil {
		return false
	}
	n, ok := 0, true
	if i.Start != nil {
		n, ok = constantInt(i.Start)
	}
	return ok && n == 0
}

// length returns the number of elements that a slice selects of n.
func (i Index) length(n *fgraph.Variable) *fgraph.Variable {
	if i.Start == nil && i.Stop == nil && (i.Step == 1 || i.Step == -1) {
		return n
	} else if i.By != nil {
		// The bounds are clipped in another way for each sign of the step. With step 0 the op fails.
		up, down := SliceOf(i.Start, i.Stop, 1).length(n), SliceOf(i.Start, i.Stop, -1).length(n)
		span, by := Switch(Map(array.Lt, i.By, Int(0)), down, up), Map(array.Abs, i.By)
		return intMap(array.IntDiv, intMap(array.Add, span, intMap(array.Sub, by, Int(1))), by)
	}
	start, stop := i.bounds(n)
	step := i.Step
	if step < 0 {
		start, stop, step = stop, start, -step
	}
	span := intMap(array.Sub, stop, start)
	if step > 1 {
		span = intMap(array.IntDiv, intMap(array.Add, span, Int(step-1)), Int(step))
	}
	if i.Step > 0 && (i.Start == nil || i.Stop == nil) {
		return span // not negative
	}
	return intMap(array.Maximum, span, Int(0))
}

// bounds returns start and stop of a slice of n elements, clipped to the elements.
func (i Index) bounds(n *fgraph.Variable) (start, stop *fgraph.Variable) {
	clip := func(b *fgraph.Variable) *fgraph.Variable {
		// For a step down, the bound behind all elements is the one before the first: -1.
		lo, hi := Int(0), n
		if i.Step < 0 {
			lo, hi = Int(-1), intMap(array.Sub, n, Int(1))
		}
		k, ok := constantInt(b)
		switch {
		case ok && k >= 0:
			return intMap(array.Minimum, b, hi)
		case ok:
			return intMap(array.Maximum, intMap(array.Add, n, b), lo)
		case positive(b):
			return intMap(array.Minimum, b, hi)
		}
		b = Switch(Map(array.Lt, b, Int(0)), Add(b, n), b)
		return intMap(array.Minimum, intMap(array.Maximum, b, lo), hi)
	}
	if start = Int(0); i.Step < 0 {
		start = intMap(array.Sub, n, Int(1))
	}
	if stop = n; i.Step < 0 {
		stop = Int(-1)
	}
	if i.Start != nil {
		start = clip(i.Start)
	}
	if i.Stop != nil {
		stop = clip(i.Stop)
	}
	return start, stop
}

// Same reports whether two indexes are written in the same way.
func (i Index) Same(j Index) bool {
	same := func(v, w *fgraph.Variable) bool { return v == w || v != nil && w != nil && SameSize(v, w) }
	return i.Slice == j.Slice && (!i.Slice || i.Step == j.Step) && same(i.Start, j.Start) && same(i.Stop, j.Stop) && same(i.By, j.By)
}

// Plain returns the index as it is written with the fewest bounds, for a dimension of size n, which
// may be Unknown. An index of an element then counts from the first one, if n is known.
func (i Index) Plain(n int) Index {
	if i.IsEverything() {
		return Everything() // also of nothing, where 0:0 would be another way to write it
	}
	if n != Unknown {
		r, ok := i.Range(n)
		switch {
		case !ok:
			return i
		case !i.Slice:
			return At(Int(r.Start))
		case r.Count == 1:
			r.Step = 1
		}
		return IndexOf(r, n)
	}
	if start := edgeOf(i.Start); i.Slice && (i.Step > 0 && start.kind == front && start.n == 0 || i.Step < 0 && start.kind == back && start.n == -1) {
		i.Start = nil
	}
	return i
}
