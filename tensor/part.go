package tensor

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// A Part is a part of a tensor that selectors describe. It can be read and changed.
//
// First the slices and the integers among the selectors select a view. In that the dimensions that
// tensors index come first, and the tensors, which have one shape, select of them.
type Part struct {
	op      string
	x       *fgraph.Variable
	basic   []Index
	tensors []*fgraph.Variable
	front   []int            // the order of the dimensions of the view for the tensors
	order   []int            // then, the order of the dimensions of the result
	mask    *fgraph.Variable // if that alone selects, of the first dimensions
}

// NewPart returns the part of x that selectors select in its first dimensions, as in NumPy: the
// dimensions of tensors of integers replace those that they index, or come first if a slice or a new
// dimension separates the tensors or integers from each other. Errors name op.
func NewPart(op string, x *fgraph.Variable, selectors ...Selector) *Part {
	used := 0
	for _, s := range selectors {
		used += s.dims()
	}
	if n := TypeOf(x).NDim(); used > n {
		fail(op, "%d indexes for a %v, which does not have %d dimensions", used, x.Type(), used)
	}
	if at := slices.IndexFunc(selectors, func(s Selector) bool { return s.kind == ellipsis }); at >= 0 {
		full := slices.Repeat([]Selector{ByIndex(Everything())}, TypeOf(x).NDim()-used)
		selectors = slices.Concat(selectors[:at+1], full, selectors[at+1:])
	}
	p := &Part{op: op}
	// Looked for now, since integers makes positions of masks. With the mask, a change may be a Switch.
	p.mask = onlyMask(x, selectors)
	p.x, selectors = integers(op, x, selectors)
	p.arrange(selectors)
	return p
}

// onlyMask returns the mask that a selection consists of, with dimensions of size 1 added for those of
// x that it leaves alone; nil if there is none, if it is a constant, or if it might broadcast.
func onlyMask(x *fgraph.Variable, selectors []Selector) *fgraph.Variable {
	selectors = slices.DeleteFunc(slices.Clone(selectors), func(s Selector) bool { return s.kind == ellipsis })
	for i, s := range selectors {
		if i > 0 && !(s.kind == byIndex && s.index.IsEverything()) {
			return nil
		}
	}
	if len(selectors) == 0 || selectors[0].kind != byTensor || TypeOf(selectors[0].tensor).DType() != array.Bool {
		return nil
	}
	mask := selectors[0].tensor
	order := allDims(mask)
	for d := range order {
		if (TypeOf(mask).Dim(d) == 1) != (TypeOf(x).Dim(d) == 1) {
			return nil
		}
	}
	if mask.IsConstant() || len(order) == 0 {
		return nil
	}
	for len(order) < TypeOf(x).NDim() {
		order = append(order, array.NewAxis)
	}
	return DimShuffle(mask, order...)
}

// arrange finds out how the dimensions move.
func (p *Part) arrange(selectors []Selector) {
	at := -1 // the place of the dimensions of the tensors in order
	groups, within, kept := 0, false, 0
	var rest []int
	for _, s := range selectors {
		picks := s.kind == byTensor || s.kind == byIndex && !s.index.Slice
		if picks && !within {
			groups++
		}
		within = picks
		switch {
		case s.kind == ellipsis:
		case s.kind == newDim:
			p.order = append(p.order, array.NewAxis)
		case s.kind == byTensor:
			if at < 0 {
				at = len(p.order)
			}
			p.basic = append(p.basic, Everything())
			p.tensors = append(p.tensors, s.tensor)
			p.front = append(p.front, kept)
			kept++
		default:
			if p.basic = append(p.basic, s.index); s.index.Slice {
				p.order = append(p.order, len(rest))
				rest = append(rest, kept)
				kept++
			}
		}
	}
	for range TypeOf(p.x).NDim() - len(p.basic) {
		p.order = append(p.order, len(rest))
		rest = append(rest, kept)
		kept++
	}
	if len(p.tensors) == 0 {
		return
	}
	// NumPy's rule for tensors that something separates.
	if groups > 1 {
		at = 0
	}
	p.front = append(p.front, rest...)
	p.tensors = BroadcastAll(p.tensors...)
	n := TypeOf(p.tensors[0]).NDim()
	// Take puts the dimensions of the tensors in front, so the others come n places later.
	for i, d := range p.order {
		if d >= 0 {
			p.order[i] += n
		}
	}
	for d := range n {
		p.order = slices.Insert(p.order, at+d, d)
	}
	if len(p.order) > array.MaxDims {
		fail(p.op, "%d dimensions, there can be %d", len(p.order), array.MaxDims)
	}
}

// PartOf returns the part that a Subtensor or an AdvancedSubtensor selects, and reports whether v is
// the output of one.
func PartOf(v *fgraph.Variable) (*Part, bool) {
	var selectors []Selector
	switch op := OpOf(v).(type) {
	case *SubtensorOp:
		for _, i := range op.Indexes(v.Owner()) {
			selectors = append(selectors, ByIndex(i))
		}
	case AdvancedSubtensorOp:
		for _, i := range v.Owner().Inputs()[1:] {
			selectors = append(selectors, ByTensor(i))
		}
	default:
		return nil, false
	}
	return NewPart("index", v.Owner().Inputs()[0], selectors...), true
}

// Get returns the value of the part.
func (p *Part) Get() *fgraph.Variable {
	if len(p.tensors) > 0 {
		return DimShuffle(Take(p.places(), p.tensors...), p.order...)
	}
	v := p.x
	if len(p.basic) > 0 {
		v = RawSubtensor(v, p.basic...)
	}
	return DimShuffle(v, p.order...)
}

// places returns what the tensors index: the dimensions for them come first.
func (p *Part) places() *fgraph.Variable { return DimShuffle(Subtensor(p.x, p.basic...), p.front...) }

// Set returns the tensor with the part replaced by y, which is broadcast.
func (p *Part) Set(y *fgraph.Variable) *fgraph.Variable {
	whole := func(_, y *fgraph.Variable) *fgraph.Variable { return y }
	return p.change("set_subtensor", y, whole, SetSubtensor, SetTake)
}

// Inc returns the tensor with y, which is broadcast, added to the part. Where tensors select an
// element several times, all values for it are added.
func (p *Part) Inc(y *fgraph.Variable) *fgraph.Variable {
	whole := func(x, y *fgraph.Variable) *fgraph.Variable {
		if TypeOf(x).DType() == array.Bool {
			return Map(array.Or, x, y)
		}
		return Add(x, y)
	}
	return p.change("inc_subtensor", y, whole, IncSubtensor, IncTake)
}

// change applies a function of all elements where a mask is true, a function of indexes, or one of
// tensors.
func (p *Part) change(
	op string, y *fgraph.Variable,
	whole func(x, y *fgraph.Variable) *fgraph.Variable,
	basic func(x, y *fgraph.Variable, indexes ...Index) *fgraph.Variable,
	advanced func(x, y *fgraph.Variable, indexes ...*fgraph.Variable) *fgraph.Variable,
) *fgraph.Variable {
	if n := TypeOf(y).NDim(); n > len(p.order) {
		fail(op, "a %v does not fit into a part of %d dimensions", y.Type(), len(p.order))
	}
	if len(p.tensors) == 0 {
		// New dimensions of the part are none of x, so y must lose them.
		if slices.Contains(p.order, array.NewAxis) {
			y = DimShuffle(PadLeft(y, len(p.order)), inverse(p.order)...)
		}
		return basic(p.x, y, p.basic...)
	}
	y = fitting(op, y, p.x)
	if p.mask != nil && TypeOf(y).AllOnes() { // of all elements
		return Switch(p.mask, whole(p.x, DimShuffle(y)), p.x)
	}
	// Broadcasting aligns dimensions at the end, which the new order would break, so y gets its full shape
	// first.
	if part := p.Get(); !sameBroadcast(TypeOf(y), TypeOf(part)) {
		y = Second(part, y)
	}
	v := advanced(p.places(), DimShuffle(y, inverse(p.order)...), p.tensors...)
	v = DimShuffle(v, inverse(p.front)...)
	// If the slices select everything, what was changed is x itself.
	if view := Subtensor(p.x, p.basic...); view == p.x {
		return v
	}
	return SetSubtensor(p.x, v, p.basic...)
}

// sameBroadcast reports whether a tensor of type y needs no broadcasting to one of type t.
func sameBroadcast(y, t Type) bool {
	if y.NDim() != t.NDim() {
		return false
	}
	for d := range t.NDim() {
		if (y.Dim(d) == 1) != (t.Dim(d) == 1) {
			return false
		}
	}
	return true
}

// inverse returns the order that undoes an order of dimensions. New ones are dropped.
func inverse(order []int) []int {
	n := 0
	for _, d := range order {
		n = max(n, d+1)
	}
	back := make([]int, n)
	for i, d := range order {
		if d >= 0 {
			back[d] = i
		}
	}
	return back
}

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
