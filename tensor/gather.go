package tensor

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// The functions below have the meaning of the operators of ONNX of their names. Negative indexes and
// dimensions count from the end.

// elementsAlong returns the part of x with a place for each element of index: its own, except along
// a dimension, where the index names it.
func elementsAlong(name string, x, index *fgraph.Variable, axis int) *Part {
	n := TypeOf(x).NDim()
	if t := TypeOf(index); t.NDim() != n || n == 0 || t.DType() == array.Bool {
		fail(name, "an index that is a %v for a %v", t, x.Type())
	}
	axis = NormalAxes(name, x, []int{axis})[0]
	at := make([]Selector, n)
	for d := range at {
		at[d] = ByTensor(asDim(positions(sizeOf(index, d), 0), d, n))
	}
	at[axis] = ByTensor(index)
	return NewPart(name, x, at...)
}

// GatherElements returns a tensor of the shape of index: at (…, j, …) x at (…, index[…, j, …], …).
func GatherElements(x, index *fgraph.Variable, axis int) *fgraph.Variable {
	return elementsAlong("gather_elements", x, index, axis).Get()
}

// ScatterElements returns x with the elements that GatherElements selects replaced by y, or with add
// increased by it. Of several values for one element the last one counts, or all are added.
func ScatterElements(x, index, y *fgraph.Variable, axis int, add bool) *fgraph.Variable {
	return scattered(elementsAlong("scatter_elements", x, index, axis), y, add)
}

func scattered(p *Part, y *fgraph.Variable, add bool) *fgraph.Variable {
	if add {
		return p.Inc(y)
	}
	return p.Set(y)
}

// partsAt returns the part of x that the last dimension of index, whose size is known, names in the
// first dimensions.
func partsAt(name string, x, index *fgraph.Variable) *Part {
	t := TypeOf(index)
	last := t.NDim() - 1
	if last < 0 || t.DType().IsFloat() || t.DType() == array.Bool {
		fail(name, "an index that is a %v", t)
	}
	k := t.Dim(last)
	if k == Unknown || k < 1 || k > TypeOf(x).NDim() {
		fail(name, "an index that is a %v for a %v: the last dimension is how many are indexed", t, x.Type())
	}
	at := make([]Selector, k)
	for d := range at {
		at[d] = ByTensor(Subtensor(index, along(last, At(Int(d)))...))
	}
	return NewPart(name, x, at...)
}

// GatherND returns x at the places that the last dimension of index names in the first dimensions
// of x: as many as its size, which has to be known.
func GatherND(x, index *fgraph.Variable) *fgraph.Variable {
	return partsAt("gather_nd", x, index).Get()
}

// ScatterND returns x with what GatherND selects replaced by y, or with add increased by it.
func ScatterND(x, index, y *fgraph.Variable, add bool) *fgraph.Variable {
	return scattered(partsAt("scatter_nd", x, index), y, add)
}
