package tensor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// An Index selects from one dimension, as in Python: one element, or a slice. Bounds are integer scalars; negative ones count from
// the end, and a nil one is missing.
type Index struct {
	Slice       bool
	Start, Stop *fgraph.Variable // of an index: Start alone
	Step        int              // of a slice: not 0
}

// At returns the index of one element, which drops the dimension.
func At(i *fgraph.Variable) Index { return Index{Start: i} }

// SliceOf returns the index start:stop:step.
func SliceOf(start, stop *fgraph.Variable, step int) Index { return Index{true, start, stop, step} }

// Everything returns the index ":".
func Everything() Index { return Index{Slice: true, Step: 1} }

// IsEverything reports whether the index is ":" in this or another way of writing.
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

// A bound is a bound of a slice as an op holds it: a number, or the next input.
type bound struct {
	kind boundKind
	n    int
}

type boundKind uint8

const (
	missing boundKind = iota
	fixed
	fromInput
)

type entry struct {
	slice       bool
	start, stop bound
	step        int
}

// indexing is what the ops have in common that index the first dimensions of a tensor.
type indexing struct{ entries []entry }

// newIndexing splits indexes into an op, which has all numbers, and inputs.
func newIndexing(name string, indexes []Index) (ix indexing, in []*fgraph.Variable) {
	add := func(v *fgraph.Variable) bound {
		if v == nil {
			return bound{}
		}
		v = AsSize(name, v)
		if n, ok := constantInt(v); ok {
			return bound{fixed, n}
		}
		in = append(in, v)
		return bound{fromInput, 0}
	}
	for _, i := range indexes {
		if i.Slice && i.Step == 0 {
			fail(name, "a slice with step 0")
		}
		e := entry{slice: i.Slice, step: i.Step}
		e.start = add(i.Start)
		e.stop = add(i.Stop)
		if !i.Slice {
			e.step = 0
		}
		ix.entries = append(ix.entries, e)
	}
	return ix, in
}

// indexes puts the numbers of the op and its inputs together again.
func (ix indexing) indexes(in []*fgraph.Variable) []Index {
	next := 0
	get := func(b bound) *fgraph.Variable {
		switch b.kind {
		case fixed:
			return Int(b.n)
		case fromInput:
			next++
			return in[next-1]
		}
		return nil
	}
	list := make([]Index, len(ix.entries))
	for i, e := range ix.entries {
		list[i] = Index{Slice: e.slice, Start: get(e.start), Step: e.step}
		list[i].Stop = get(e.stop)
	}
	return list
}

// NumIndexes returns how many dimensions are indexed.
func (ix indexing) NumIndexes() int { return len(ix.entries) }

// IsSlice reports whether index d is a slice, as opposed to one element. Nothing has to be made to tell, as it has for Indexes.
func (ix indexing) IsSlice(d int) bool { return ix.entries[d].slice }

func (ix indexing) numInputs() int {
	n := 0
	for _, e := range ix.entries {
		for _, b := range []bound{e.start, e.stop} {
			if b.kind == fromInput {
				n++
			}
		}
	}
	return n
}

// dropped returns how many dimensions are indexed by one element.
func (ix indexing) dropped() int {
	n := 0
	for _, e := range ix.entries {
		if !e.slice {
			n++
		}
	}
	return n
}

// text returns for example "1:3,_": an underscore is an input.
func (ix indexing) text() string {
	show := func(b bound) string { return [...]string{"", strconv.Itoa(b.n), "_"}[b.kind] }
	parts := make([]string, len(ix.entries))
	for i, e := range ix.entries {
		parts[i] = show(e.start)
		if e.slice {
			parts[i] += ":" + show(e.stop)
			if e.step != 1 {
				parts[i] += ":" + strconv.Itoa(e.step)
			}
		}
	}
	return strings.Join(parts, ",")
}

func (ix indexing) equal(o indexing) bool { return slices.Equal(ix.entries, o.entries) }

func (ix indexing) hash(seed uint64) uint64 {
	h := seed
	for _, e := range ix.entries {
		for _, n := range []int{int(e.start.kind), e.start.n, int(e.stop.kind), e.stop.n, e.step} {
			h = (h ^ uint64(n)) * 0x9e3779b97f4a7c15
			h ^= h >> 31
		}
	}
	return h
}

// infer returns the sizes of what is selected.
func (ix indexing) infer(op fgraph.Op, in []*fgraph.Variable, rest []*fgraph.Variable) (spec, error) {
	x := TypeOf(in[0]).h.Value()
	if len(ix.entries) > int(x.ndim) || x.csr {
		return x, argError(op, 0, "is a %v, which has not %d dimensions to index", in[0].Type(), len(ix.entries))
	}
	if len(rest) != ix.numInputs() {
		return x, &Error{op.String(), -1, fmt.Sprintf("%d indexes, it takes %d", len(rest), ix.numInputs())}
	}
	for i, v := range rest {
		if !isSize(v) {
			return x, argError(op, len(in)+i, "is a %v, not an integer", v.Type())
		}
	}
	s := spec{dtype: x.dtype}
	for d := range int(x.ndim) {
		n := int(x.shape[d])
		switch {
		case d >= len(ix.entries):
		case !ix.entries[d].slice:
			if k := ix.entries[d].start; k.kind == fixed && n != Unknown {
				if _, err := array.Position(int64(k.n), n); err != nil {
					return x, argError(op, 0, "is a %v: %v", in[0].Type(), err)
				}
			}
			continue
		case n != Unknown && ix.entries[d].known():
			n = ix.entries[d].numbers(nil).of(n).Count
		case ix.entries[d] == (entry{slice: true, step: 1}), ix.entries[d] == (entry{slice: true, step: -1}):
		default:
			n = Unknown
		}
		s.shape[s.ndim] = int32(n)
		s.ndim++
	}
	return s, nil
}

// known reports whether no bound is an input.
func (e entry) known() bool { return e.start.kind != fromInput && e.stop.kind != fromInput }

// numbers are the bounds of an entry at run time.
type numbers struct {
	entry
	start, stop *int
}

// numbers takes bounds that are inputs from values, in order.
func (e entry) numbers(next func() int) numbers {
	get := func(b bound) *int {
		switch b.kind {
		case fixed:
			return &b.n
		case fromInput:
			n := next()
			return &n
		}
		return nil
	}
	start := get(e.start)
	return numbers{e, start, get(e.stop)}
}

func (n numbers) of(size int) array.Range { return array.SliceRange(size, n.start, n.stop, n.step) }

// view makes v the part of x that is selected, given the inputs.
func (ix indexing) view(op fgraph.Op, v, x *array.Array, in []*array.Array) error {
	var buf [MaxDims]array.Range
	k := 0
	next := func() int { k++; return int(in[k-1].Int(0)) }
	for d, e := range ix.entries {
		b := e.numbers(next)
		if e.slice {
			buf[d] = b.of(x.Dim(d))
			continue
		}
		p, err := array.Position(int64(*b.start), x.Dim(d))
		if err != nil {
			return fmt.Errorf("%w: %v: %w", ErrShape, op, err)
		}
		buf[d] = array.Range{Start: p, Drop: true}
	}
	x.RangeTo(v, buf[:len(ix.entries)]...)
	return nil
}

// SubtensorOp selects a part of its first input; its other inputs are bounds that are not numbers.
type SubtensorOp struct{ indexing }

// NewSubtensor returns the op that selects with indexes; variables among their bounds are inputs of the op.
func NewSubtensor(indexes ...Index) *SubtensorOp {
	ix, _ := newIndexing("Subtensor", indexes)
	return &SubtensorOp{ix}
}

// Subtensor returns the part of x that the indexes select in its first dimensions; x itself if that is everything.
func Subtensor(x *fgraph.Variable, indexes ...Index) *fgraph.Variable {
	for len(indexes) > 0 && indexes[len(indexes)-1].IsEverything() {
		indexes = indexes[:len(indexes)-1]
	}
	if len(indexes) == 0 {
		return x
	}
	return RawSubtensor(x, indexes...)
}

// RawSubtensor is Subtensor that leaves in what selects everything.
func RawSubtensor(x *fgraph.Variable, indexes ...Index) *fgraph.Variable {
	ix, in := newIndexing("Subtensor", indexes)
	return Apply(&SubtensorOp{ix}, append([]*fgraph.Variable{x}, in...)...)
}

// Indexes returns the indexes of an apply of the op.
func (op *SubtensorOp) Indexes(a *fgraph.Apply) []Index { return op.indexes(a.Inputs()[1:]) }

// String returns for example Subtensor{1:3,_}, where an underscore stands for an input.
func (op *SubtensorOp) String() string { return "Subtensor{" + op.text() + "}" }

// EqualOp compares the indexes.
func (op *SubtensorOp) EqualOp(o fgraph.Op) bool {
	p, ok := o.(*SubtensorOp)
	return ok && op.equal(p.indexing)
}

// HashOp agrees with EqualOp.
func (op *SubtensorOp) HashOp() uint64 { return op.hash(1) }

// ViewMap tells that the output shows the first input.
func (op *SubtensorOp) ViewMap() []fgraph.Alias { return []fgraph.Alias{{Output: 0, Input: 0}} }

// Infer takes sizes from bounds that are numbers.
func (op *SubtensorOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) == 0 {
		return nil, &Error{op.String(), -1, "needs a tensor"}
	}
	s, err := op.infer(op, in[:1], in[1:])
	if err != nil {
		return nil, err
	}
	return []fgraph.Type{s.intern()}, nil
}

// Compile makes a view.
func (op *SubtensorOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(_ *array.Workspace, in, out []*array.Array) error { return op.view(op, out[0], in[0], in[1:]) }, nil
}

// InferShape computes the lengths of slices.
func (op *SubtensorOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x := a.Inputs()[0]
	indexes := op.Indexes(a)
	dims := []*fgraph.Variable{}
	for d := range TypeOf(x).NDim() {
		switch {
		case d >= len(indexes):
			dims = append(dims, s.Dim(x, d))
		case indexes[d].Slice:
			dims = append(dims, indexes[d].length(s.Dim(x, d)))
		}
	}
	return [][]*fgraph.Variable{dims}
}

// length returns how many elements a slice selects of n.
func (i Index) length(n *fgraph.Variable) *fgraph.Variable {
	if i.Start == nil && i.Stop == nil && (i.Step == 1 || i.Step == -1) {
		return n
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
		return span // from 0 on, or up to the end, it can't be negative
	}
	return intMap(array.Maximum, span, Int(0))
}

// bounds returns where a slice of n elements begins and ends, both within what is there.
func (i Index) bounds(n *fgraph.Variable) (start, stop *fgraph.Variable) {
	clip := func(b *fgraph.Variable) *fgraph.Variable {
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
		b = Switch(Lt(b, Int(0)), Add(b, n), b)
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

// Grad puts the gradient where the elements were taken from.
func (op *SubtensorOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	x := a.Inputs()[0]
	grads := make([]*fgraph.Variable, len(a.Inputs()))
	grads[0] = IncSubtensor(ZerosLike(x), out[0], op.Indexes(a)...)
	return grads
}

// ScalarLike returns the constant 0 without dimensions of the type of elements of x.
func ScalarLike(x *fgraph.Variable) *fgraph.Variable {
	return Constant(array.New(TypeOf(x).DType()))
}
