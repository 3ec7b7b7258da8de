package tensor

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// The algebra of indexes: what is selected of what another index selects, and whether two indexes
// select the same.

// An edge is a bound of a slice, or the index of an element.
type edge struct {
	v    *fgraph.Variable
	n    int // if it is a number
	kind edgeKind
}

type edgeKind uint8

const (
	absent edgeKind = iota
	front           // a number that counts from the first element
	back            // a number below 0: it counts from the end
	unknown
)

// far is beyond all sizes. Sums and products of two bounds below it do not overflow.
const far = 1 << 30

func edgeOf(v *fgraph.Variable) edge {
	if v == nil {
		return edge{}
	}
	n, ok := constantInt(v)
	switch {
	case !ok || n >= far || n <= -far:
		return edge{v, 0, unknown}
	case n < 0:
		return edge{v, n, back}
	}
	return edge{v, n, front}
}

// startOf is edgeOf for the start of a slice with a step above 0.
func startOf(v *fgraph.Variable) edge {
	if v == nil {
		return edge{nil, 0, front}
	}
	return edgeOf(v)
}

// fromEnd reports whether the bound, or a missing stop, is a known distance from the end.
func (b edge) fromEnd() bool { return b.kind == absent || b.kind == back }

// Range returns what the index selects of n elements, if its bounds are numbers. It reports false for
// an element that is out of range.
func (i Index) Range(n int) (array.Range, bool) {
	a, b := edgeOf(i.Start), edgeOf(i.Stop)
	if a.kind == unknown || b.kind == unknown || i.Slice && i.Step == 0 {
		return array.Range{}, false
	}
	if !i.Slice {
		p, err := array.Position(int64(a.n), n)
		return array.Range{Start: p, Step: 1, Count: 1}, err == nil
	}
	number := func(b edge) *int {
		if b.kind == absent {
			return nil
		}
		return &b.n
	}
	return array.SliceRange(n, number(a), number(b), i.Step), true
}

// IndexOf returns the slice that selects a range of n elements.
func IndexOf(r array.Range, n int) Index {
	if r.Count == 0 {
		return SliceOf(Int(0), Int(0), 1)
	}
	i := SliceOf(nil, nil, r.Step)
	if r.Step < 0 {
		if r.Start != n-1 {
			i.Start = Int(r.Start)
		}
		// A stop at -1 would be the last element. In front of the first one there is only a missing stop.
		if next := r.Start + r.Count*r.Step; next >= 0 {
			i.Stop = Int(next)
		}
		return i
	}
	if r.Start != 0 {
		i.Start = Int(r.Start)
	}
	// Several stops select the same elements. The least of them is taken, so that equal ranges are written
	// alike.
	if r.Start+r.Count*r.Step < n {
		i.Stop = Int(r.Start + (r.Count-1)*r.Step + 1)
	}
	return i
}

// Reversed returns the index that selects of x[::-1] what i selects of x.
func (i Index) Reversed() Index {
	invert := func(v *fgraph.Variable) *fgraph.Variable {
		if v == nil {
			return nil
		}
		if n, ok := constantInt(v); ok {
			// Element n from the front is element -1-n, which is ^n, of what is reversed, and the other way
			// around.
			return Int(^n)
		}
		return Map(array.Invert, v)
	}
	return Index{Slice: i.Slice, Start: invert(i.Start), Stop: invert(i.Stop), Step: -i.Step}
}

// flipped returns the slice that selects of x[::-1] what i selects of x, in the opposite order: x[i]
// is x[::-1][flipped(i)][::-1]. It works for numbers and the step 1.
func flipped(i Index) (Index, bool) {
	a, b := startOf(i.Start), edgeOf(i.Stop)
	if i.Step != 1 || a.kind == unknown || b.kind == unknown {
		return i, false
	}
	f := Everything()
	switch {
	// x[a:b] is x[::-1][-b:-a][::-1], but -0 is not the end.
	case b.kind == front && b.n == 0:
		return SliceOf(Int(0), Int(0), 1), true
	case b.kind != absent:
		f.Start = Int(-b.n)
	}
	if a.n != 0 {
		f.Stop = Int(-a.n)
	}
	return f, true
}

// MergeIndexes returns the index that selects what j selects of what the slice i selects of a
// dimension of size n, unless that costs more than selecting twice. size returns the number of elements
// that i selects. An element that is out of the range of i is out of the range of the dimension, too.
func MergeIndexes(i, j Index, n *fgraph.Variable, size func() *fgraph.Variable) (Index, bool) {
	if max(i.Step, -i.Step, j.Step, -j.Step) >= far {
		return i, false
	}
	switch {
	case j.IsEverything():
		return i, true
	case i.SelectsAll(n):
		return j, true
	case i.By != nil || j.By != nil:
		return i, false
	}
	if total, ok := constantInt(n); ok {
		// Of a known size both are ranges, and a range of a range is one.
		first, ok := i.Range(total)
		second, ok2 := j.Range(first.Count)
		if ok && ok2 {
			r := array.Range{Start: first.Start + second.Start*first.Step, Step: first.Step * second.Step, Count: second.Count}
			if !j.Slice {
				return At(Int(r.Start)), true
			}
			return IndexOf(r, total), true
		}
	}
	switch {
	// Of the reversed dimension i selects upwards. The result is reversed back.
	case i.Step < 0:
		m, ok := MergeIndexes(i.Reversed(), j, n, size)
		return m.Reversed(), ok
	case !j.Slice:
		return elementOfSlice(i, j, n, size)
	// What i selects is reversed, so that j selects upwards of that.
	case j.Step < 0:
		f, ok := flipped(i)
		if !ok {
			return i, false
		}
		m, ok := MergeIndexes(f, j.Reversed(), n, size)
		return m.Reversed(), ok
	}
	return sliceOfSlice(i, j)
}

// sliceOfSlice is MergeIndexes for two slices with steps above 0. It fails where the bounds depend
// on the size: computing them costs more than the second view.
func sliceOfSlice(i, j Index) (m Index, ok bool) {
	a, b, c, d := startOf(i.Start), edgeOf(i.Stop), startOf(j.Start), edgeOf(j.Stop)
	m = SliceOf(i.Start, i.Stop, i.Step*j.Step)
	fromEnd := i.Step == 1 && b.fromEnd() // whether it is known where j begins to count from the end
	switch {
	case c.kind == front && c.n == 0:
	case c.kind == front && a.kind == front:
		m.Start = Int(a.n + c.n*i.Step)
	// Both count from the end, so that their distances add up. If i begins at a distance from the end as well,
	// j can't begin before that.
	case c.kind == back && fromEnd && (a.kind == back || a.kind == front && a.n == 0):
		m.Start = Int(b.n + c.n)
		if a.kind == back {
			m.Start = Int(max(a.n, b.n+c.n))
		}
	default:
		return m, false
	}
	switch end := a.n + d.n*i.Step; {
	case d.kind == absent:
	case d.kind == front && a.kind == back && end >= 0: // more than there are
	case d.kind == front && a.kind == front && b.kind == absent:
		m.Stop = Int(end)
	case d.kind == front && a.kind == front && b.kind == front:
		m.Stop = Int(min(b.n, end))
	// A missing stop of i is at distance 0, which b.n is then.
	case d.kind == back && fromEnd:
		m.Stop = Int(b.n + d.n)
	default:
		return m, false
	}
	return m, true
}

// elementOfSlice is MergeIndexes for an element of a slice with a step above 0. Where it can't know
// that the element is in range, it computes an index that is n if it is not.
func elementOfSlice(i, j Index, n *fgraph.Variable, size func() *fgraph.Variable) (Index, bool) {
	a, b, k := startOf(i.Start), edgeOf(i.Stop), edgeOf(j.Start)
	fromEnd := i.Step == 1 && b.fromEnd() && k.kind == back
	if a.kind == front && k.kind == front && b.kind <= front {
		// All is known, so nothing has to be computed in a run.
		p := a.n + k.n*i.Step
		return At(Int(p)), b.kind == absent || p < b.n // else it is always out of range
	}
	if fromEnd && (a.kind == back || a.kind == front && a.n == 0) {
		return At(Int(b.n + k.n)), a.kind == front || b.n+k.n >= a.n
	}
	p := k.v
	var valid []*fgraph.Variable
	switch {
	case fromEnd:
		at := Int(b.n + k.n)
		valid, p = append(valid, Map(array.Ge, intMap(array.Add, n, at), beginning(a, n))), at
	case k.kind == unknown:
		p = Switch(Map(array.Lt, p, Int(0)), intMap(array.Add, p, size()), p)
	case k.kind == back:
		p = intMap(array.Add, p, size())
	}
	if !fromEnd && k.kind != front {
		valid = append(valid, Map(array.Ge, p, Int(0)))
	}
	if k.kind != back && b.kind != absent { // without a stop, what is beyond the slice is beyond the dimension
		valid = append(valid, Map(array.Lt, p, size()))
	}
	if !fromEnd {
		p = intMap(array.Add, beginning(a, n), intMap(array.Mul, p, Int(i.Step)))
	}
	if len(valid) > 0 {
		p = Switch(allOf(valid), p, n)
	}
	return At(p), true
}

// beginning returns the position of the first element of a slice of n elements that begins at a, if it
// has one.
func beginning(a edge, n *fgraph.Variable) *fgraph.Variable {
	if a.kind == front {
		return Int(a.n)
	}
	start := intMap(array.Maximum, intMap(array.Add, a.v, n), Int(0))
	if a.kind == back {
		return start
	}
	return Switch(Map(array.Lt, a.v, Int(0)), start, a.v)
}

// allOf returns the conjunction of conditions.
func allOf(conditions []*fgraph.Variable) *fgraph.Variable {
	all := conditions[0]
	for _, v := range conditions[1:] {
		all = Map(array.And, all, v)
	}
	return all
}

// Overlap is how what one index selects lies to what another one selects.
type Overlap uint8

// The overlaps.
const (
	Mixed  Overlap = iota // or not known
	Apart                 // nothing is selected by both
	Inside                // all of it is selected by the other one
)

// CompareIndexes says how what r selects of n elements lies to what w selects. If it is inside, part
// selects it of what w selects.
func CompareIndexes(r, w Index, n *fgraph.Variable) (part Index, o Overlap) {
	if r.Same(w) {
		return Everything(), Inside
	}
	if max(r.Step, -r.Step, w.Step, -w.Step) >= far || r.Slice && r.Step == 0 || w.Slice && w.Step == 0 {
		return r, Mixed
	}
	if total, ok := constantInt(n); ok {
		return compareRanges(r, w, total)
	}
	switch {
	// Both lie the same way in dimensions of all sizes, so the largest one shows how.
	case counts(r, front) && counts(w, front):
		return compareRanges(r, w, far)
	// The same from the other side: in what is reversed, distances from the end are positions.
	case counts(r, back) && counts(w, back):
		if part, o = compareRanges(flippedPlace(r), flippedPlace(w), far); o == Inside {
			part = flippedPlace(part)
		}
		return part, o
	}
	return r, Mixed
}

// counts reports whether what an index selects has the same distance from the first element, or
// from the end, in dimensions of all sizes.
func counts(i Index, from edgeKind) bool {
	a, b := edgeOf(i.Start), edgeOf(i.Stop)
	ok := (a.kind == absent || a.kind == from) && (b.kind == absent || b.kind == from)
	return ok && (!i.Slice || i.Step == 1 || i.Step > 0 && from == front)
}

// flippedPlace is flipped for an element, too.
func flippedPlace(i Index) Index {
	if !i.Slice {
		return i.Reversed()
	}
	f, _ := flipped(i)
	return f
}

// compareRanges is CompareIndexes for numbers.
func compareRanges(r, w Index, n int) (part Index, o Overlap) {
	a, ok := r.Range(n)
	b, ok2 := w.Range(n)
	if !ok || !ok2 {
		return r, Mixed
	}
	low := func(r array.Range) int { return min(r.Start, r.Reversed().Start) }
	high := func(r array.Range) int { return max(r.Start, r.Reversed().Start) }
	if a.Count == 0 || b.Count == 0 || high(a) < low(b) || high(b) < low(a) {
		return r, Apart
	}
	off := a.Start - b.Start
	// The places that w selects are a grid. What r selects lies on it, or between its places, or both.
	onGrid := b.Count == 1 || off%b.Step == 0
	switch {
	case !onGrid && (a.Count == 1 || a.Step%b.Step == 0), a.Count > 1 && b.Count == 1 && off%a.Step != 0:
		return r, Apart // between the elements
	case !onGrid || low(a) < low(b) || high(a) > high(b) || a.Count > 1 && a.Step%b.Step != 0:
		return r, Mixed
	case !r.Slice:
		return At(Int(off / b.Step)), Inside
	}
	// One element has every step, and this one can be divided.
	if a.Count == 1 {
		a.Step = b.Step
	}
	return IndexOf(array.Range{Start: off / b.Step, Step: a.Step / b.Step, Count: a.Count}, b.Count), Inside
}

// SelectsAll reports whether the index is known to select all n elements of a dimension, in order.
func (i Index) SelectsAll(n *fgraph.Variable) bool {
	if start := startOf(i.Start); !i.Slice || i.Step != 1 || start.kind != front || start.n != 0 {
		return false
	}
	if i.Stop == nil || SameSize(i.Stop, n) {
		return true
	}
	stop, ok := constantInt(i.Stop)
	size, ok2 := constantInt(n)
	return ok && ok2 && stop >= size
}

// SameSize reports whether two integer scalars are known to be equal: they are one variable, equal
// constants, the same dimension of one variable, or the same is computed of such.
func SameSize(a, b *fgraph.Variable) bool { return sameSize(a, b, 0) }

// maxSizeDepth bounds how deep the computations of sizes are compared.
const maxSizeDepth = 6

func sameSize(a, b *fgraph.Variable, depth int) bool {
	if a == b {
		return true
	}
	x, ok := constantInt(a)
	y, ok2 := constantInt(b)
	if ok || ok2 {
		return ok && ok2 && x == y
	}
	if depth > maxSizeDepth || !isSize(a) || !isSize(b) {
		return false
	}
	same := func(v, w *fgraph.Variable) bool { return v == w || isSize(v) && sameSize(v, w, depth+1) }
	if p, q := a.Owner(), b.Owner(); p != nil && q != nil && fgraph.OpsEqual(p.Op(), q.Op()) && slices.Index(p.Outputs(), a) == slices.Index(q.Outputs(), b) {
		in, other := p.Inputs(), q.Inputs()
		commutes := len(in) == 2 && len(other) == 2 && (p.Op() == OpFor(array.Add) || p.Op() == OpFor(array.Mul))
		if slices.EqualFunc(in, other, same) || commutes && same(in[0], other[1]) && same(in[1], other[0]) {
			return true
		}
	}
	// What is fused with other sizes may be one that is not, or is with others.
	v, w := unfused(a), unfused(b)
	return (v != a || w != b) && sameSize(v, w, depth+1)
}

// SameSizes reports whether dimension d of x is known to be as large as dimension e of y.
func (s *Shapes) SameSizes(x *fgraph.Variable, d int, y *fgraph.Variable, e int) bool {
	n, m := TypeOf(x).Dim(d), TypeOf(y).Dim(e)
	if n != Unknown || m != Unknown {
		return n == m
	}
	return SameSize(s.Dim(x, d), s.Dim(y, e))
}
