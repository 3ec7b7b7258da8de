package array

import (
	"errors"
	"fmt"

	"github.com/nnopt/nnopt/internal/divide"
)

// A selection is the subarrays a[indexes[0][i], indexes[1][i], …] of an array.
type selection struct {
	places []int // the offset of subarray i
	rest   Array // its dimensions, as those of a view of the array
	size   int   // its elements
	// outer says that the elements of different subarrays are closer to each other than those of
	// one, as in the columns of a matrix. Then they are visited in that order.
	outer bool
	// before is how many dimensions of rest have longer steps than those between subarrays, if they come
	// first and the others have shorter ones, as the lines of an image whose columns are indexed.
	before int
}

// selected returns the selection by integer arrays of one shape. The error wraps ErrIndex. The
// selection is valid until the next call.
func (ws *Workspace) selected(a *Array, indexes []*Array) (*selection, error) {
	s := &ws.selection
	*s = selection{}
	k, n := len(indexes), indexes[0].Len()
	if cap(ws.places) < n {
		ws.places = make([]int, n)
	}
	s.places = ws.places[:n]
	for i := range s.places {
		s.places[i] = a.offset
	}
	// The smallest step between two subarrays, in any dimension that is indexed.
	nearest := int(^uint(0) >> 1)
	for d, index := range indexes {
		index = index.inRows()
		size, step := a.shape[d], a.strides[d]
		nearest = min(nearest, max(step, -step))
		for i, p := range Slice[int64](index) {
			// Negative indexes count from the end. Of those that are out of range, Position makes
			// the error.
			if p < 0 {
				p += int64(size)
			}
			if uint64(p) >= uint64(size) {
				_, err := Position(Slice[int64](index)[i], size)
				return s, err
			}
			s.places[i] += int(p) * step
		}
	}
	s.rest = Array{dtype: a.dtype, ndim: a.ndim - uint8(k), data: a.data}
	copy(s.rest.shape[:], a.shape[k:a.ndim])
	copy(s.rest.strides[:], a.strides[k:a.ndim])
	// If every step within a subarray is longer than one between subarrays, the loop over subarrays
	// is the inner one. Then the result has its dimensions in that order, too, and is transposed
	// without a copy.
	s.size, s.outer = s.rest.Len(), s.rest.ndim > 0 && n > 1
	sorted, between := true, false
	for d, step := range s.rest.strides[:s.rest.ndim] {
		one, longer := s.rest.shape[d] <= 1, max(step, -step) > nearest
		s.outer = s.outer && (longer || one)
		first := s.before == d
		sorted, between = sorted && (first || one || !longer), between || longer && !one
		if first && (longer || one) {
			s.before = d + 1
		}
	}
	s.outer = s.outer && s.size > 1
	if !sorted || !between || s.outer || n <= 1 || s.size <= 1 {
		s.before = 0
	}
	return s, nil
}

// forget keeps nothing alive.
func (s *selection) forget() { s.rest.data = nil }

// Take makes out[i] a[indexes[0][i], indexes[1][i], …]. The indexes are integer arrays of one
// shape. The shape of out is that of the indexes, followed by the remaining dimensions of a. The
// error wraps ErrIndex or ErrTooLarge.
func (ws *Workspace) Take(out, a *Array, indexes ...*Array) error {
	if done, err := ws.pick(out, a, indexes); done {
		return err
	}
	s, err := ws.selected(a, indexes)
	if err != nil {
		return err
	}
	var buf [2 * MaxDims]int
	lead, rest := indexes[0].Shape(), s.rest.Shape()
	if s.before > 0 {
		return ws.takeBetween(out, s, lead)
	}
	first, last := lead, rest
	if s.outer {
		first, last = rest, lead
	}
	if err := ws.New(out, a.dtype, append(append(buf[:0], first...), last...)...); err != nil {
		return err
	}
	defer s.forget()
	ws.take(out, s)
	if !s.outer {
		return nil
	}
	return out.TransposeTo(out, leadFirst(&buf, len(lead), len(rest))...)
}

// takeBetween is Take where the indexed dimensions lie between others, in the result as well, which is
// transposed without a copy. So what is next to each other in memory is copied in one go.
func (ws *Workspace) takeBetween(out *Array, s *selection, lead []int) error {
	defer s.forget()
	k, n := s.before, len(s.places)
	outer, steps := s.rest.shape[:k], s.rest.strides[:k]
	var buf, order [2 * MaxDims]int
	shape := append(append(append(buf[:0], outer...), lead...), s.rest.Shape()[k:]...)
	count := product(outer)
	w := walk(0, outer, steps, 0)
	for range count - 1 {
		w.advance(1)
		for _, p := range s.places[:n] {
			s.places = append(s.places, p+w.at)
		}
	}
	ws.places = s.places
	for d := range shape {
		switch {
		case d < len(lead):
			order[d] = d + k
		case d < len(lead)+k:
			order[d] = d - len(lead)
		default:
			order[d] = d
		}
	}
	if err := ws.New(out, s.rest.dtype, shape...); err != nil {
		return err
	}
	inner := Array{dtype: s.rest.dtype, ndim: s.rest.ndim - uint8(k), data: s.rest.data}
	copy(inner.shape[:], s.rest.shape[k:s.rest.ndim])
	copy(inner.strides[:], s.rest.strides[k:s.rest.ndim])
	*s = selection{places: s.places, rest: inner, size: s.size / count}
	ws.take(out, s)
	return out.TransposeTo(out, order[:len(shape)]...)
}

// pick is Take of few single elements, which takes no longer than to look at where they are. It reports false if
// they are not so, and does nothing.
func (ws *Workspace) pick(out, a *Array, indexes []*Array) (done bool, err error) {
	index := indexes[0]
	if a.Len() != a.shape[0] || len(indexes) > 1 || !index.Contiguous() || index.Len() > fewPicked || ws.Threads != nil && divide.Always.Load() {
		return false, nil
	}
	var buf [2 * MaxDims]int
	if err := ws.New(out, a.dtype, append(append(buf[:0], index.Shape()...), a.shape[1:a.ndim]...)...); err != nil {
		return true, err
	}
	from := Slice[int64](index)
	if bad := kinds[a.dtype].pick(out, a, from); bad < len(from) {
		_, err = Position(from[bad], a.shape[0])
	}
	return true, err
}

// fewPicked is the number of elements that one thread takes: several begin with more.
const fewPicked = 4096

// pickElements sets out to elements of a, up to an index that is out of range, which it returns.
func pickElements[T Element](out, a *Array, from []int64) int {
	dst, src := dataOf[T](out)[:len(from)], dataOf[T](a)
	size, at, step := a.shape[0], a.offset, a.strides[0]
	for i, p := range from {
		if p < 0 { // it counts from the end
			p += int64(size)
		}
		if uint64(p) >= uint64(size) {
			return i
		}
		dst[i] = src[at+int(p)*step]
	}
	return len(from)
}

// take sets out to what is selected, by several threads if that is worth it.
func (ws *Workspace) take(out *Array, s *selection) {
	things := len(s.places)
	if s.outer {
		things = s.size
	}
	// Elements that are taken one by one lie anywhere.
	work := len(s.places) * s.size * 2 * moved * out.dtype.Size()
	if s.size == 1 || s.outer {
		work = len(s.places) * s.size * taken
	}
	unit := max(leastMoved*things/max(len(s.places)*s.size, 1), 1)
	parts := ws.partsOf(work, things, unit)
	if parts <= 1 {
		kinds[out.dtype].take(out, s, 0, things)
		return
	}
	ws.inParts(parts, things, unit, func(_ *Workspace, first, next int) { kinds[out.dtype].take(out, s, first, next) })
}

// taken is what it takes to move an element from anywhere, in picoseconds.
const taken = 1000

// leadFirst returns the order that moves lead dimensions before rest others.
func leadFirst(buf *[2 * MaxDims]int, lead, rest int) []int {
	order := buf[:lead+rest]
	for d := range order {
		order[d] = (d + rest) % (lead + rest)
	}
	return order
}

// takeElements takes the elements of subarrays first to next, or if the loop over subarrays is the
// inner one, elements first to next of each of them.
func takeElements[T Element](out *Array, s *selection, first, next int) {
	dst, src := dataOf[T](out), dataOf[T](&s.rest)
	if s.outer {
		s.each(first, next, func(r, at int) {
			part := dst[r*len(s.places):][:len(s.places)]
			for i, p := range s.places {
				part[i] = src[p+at]
			}
		})
		return
	}
	places := s.places[first:next]
	dst = dst[first*s.size:]
	switch {
	case s.size == 0:
	case s.size == 1:
		for i, at := range places {
			dst[i] = src[at]
		}
	case s.rest.Contiguous():
		for i, at := range places {
			copy(dst[i*s.size:][:s.size], src[at:])
		}
	default:
		for i, at := range places {
			gather(dst[i*s.size:][:s.size], src, at, s.rest.Shape(), s.rest.strides[:s.rest.ndim], 0)
		}
	}
}

// each calls f for elements first to next of a subarray, in row-major order, with their offsets from
// the first one.
func (s *selection) each(first, next int, f func(r, at int)) {
	if first >= next {
		return
	}
	w := walk(0, s.rest.Shape(), s.rest.strides[:s.rest.ndim], first)
	for r := first; r < next; r++ {
		f(r, w.at)
		w.advance(1)
	}
}

// Put sets a[indexes[0][i], …] to y[i], or adds y[i] to it, in the order of i. The shape of y is
// that of the result of Take. The error wraps ErrIndex.
func (ws *Workspace) Put(a, y *Array, add bool, indexes ...*Array) error {
	s, err := ws.selected(a, indexes)
	defer s.forget()
	if err != nil || len(s.places) == 0 || s.size == 0 {
		return err
	}
	if s.outer { // y with the same order of elements
		var buf [2 * MaxDims]int
		lead, rest := indexes[0].NDim(), s.rest.NDim()
		y = y.Transpose(leadFirst(&buf, rest, lead)...)
	}
	// Elements of y are then read one after the other.
	kinds[a.dtype].put(y.inRows(), s, add)
	return nil
}

// putElements sets or adds elements of y, which is in the order of the selection.
func putElements[T number](y *Array, s *selection, add bool) {
	dst, src := dataOf[T](&s.rest), Slice[T](y)
	switch {
	// Indexes may repeat, and then each of the terms counts. So additions go one by one, in the
	// order of the indexes for each element.
	case s.outer && add:
		s.each(0, s.size, func(r, at int) {
			for i, v := range src[r*len(s.places):][:len(s.places)] {
				dst[s.places[i]+at] += v
			}
		})
	case add && s.size > 1 && s.rest.Contiguous():
		for i, p := range s.places {
			part := dst[p:][:s.size]
			for r, v := range src[i*s.size:][:s.size] {
				part[r] += v
			}
		}
	case add:
		s.each(0, s.size, func(r, at int) {
			for i, p := range s.places {
				dst[p+at] += src[i*s.size+r]
			}
		})
	default:
		setElements(dst, src, s)
	}
}

// putBools is putElements for bools. A sum is true if one of its terms is.
func putBools(y *Array, s *selection, add bool) {
	putBy(y, s, add, func(x, y bool) bool { return x || y })
}

// putBy is putElements for elements whose sum is a function.
func putBy[T Element](y *Array, s *selection, add bool, sum func(x, y T) T) {
	dst, src := dataOf[T](&s.rest), Slice[T](y)
	if !add {
		setElements(dst, src, s)
		return
	}
	s.each(0, s.size, func(r, at int) {
		for i, p := range s.places {
			k := i*s.size + r
			if s.outer {
				k = r*len(s.places) + i
			}
			dst[p+at] = sum(dst[p+at], src[k])
		}
	})
}

func setElements[T Element](dst, src []T, s *selection) {
	switch {
	case s.outer:
		s.each(0, s.size, func(r, at int) {
			for i, v := range src[r*len(s.places):][:len(s.places)] {
				dst[s.places[i]+at] = v
			}
		})
	case s.size > 1 && s.rest.Contiguous():
		for i, p := range s.places {
			copy(dst[p:], src[i*s.size:][:s.size])
		}
	default:
		s.each(0, s.size, func(r, at int) {
			for i, p := range s.places {
				dst[p+at] = src[i*s.size+r]
			}
		})
	}
}

// ErrIndex is wrapped if an index is out of range.
var ErrIndex = errors.New("index out of range")

// Position returns the position of index i in a dimension of size n. Negative indexes count from
// the end.
func Position(i int64, n int) (int, error) {
	k := i
	if k < 0 {
		k += int64(n)
	}
	if k < 0 || k >= int64(n) {
		return 0, fmt.Errorf("%w: %d in a dimension of size %d", ErrIndex, i, n)
	}
	return int(k), nil
}

// Add adds y, which has the type of a and is broadcast to its shape, to a.
func (ws *Workspace) Add(a, y *Array) {
	v, err := y.BroadcastTo(a.Shape()...)
	if err != nil {
		panic(err)
	}
	ws.Map(addPrograms[a.dtype], []*Array{a}, []*Array{a, v})
}

var addPrograms, mulPrograms = binaryPrograms(Add, Or), binaryPrograms(Mul, And)

func binaryPrograms(number, truth Opcode) (list [numDTypes]*Program) {
	for d := range list {
		op := number
		if DType(d) == Bool {
			op = truth
		}
		p := NewProgram(DType(d), DType(d))
		list[d] = p.Return(p.Append(op, 0, 1))
	}
	return list
}
