package array

import "fmt"

// NewAxis is a new dimension of size 1 in an order of dimensions.
const NewAxis = -1

// Transpose returns the view whose dimension i is dimension order[i] of a, or a new one if order[i]
// is NewAxis. Dimensions that are not in order are dropped. It panics if one of these does not have
// size 1.
func (a *Array) Transpose(order ...int) *Array {
	v := new(Array)
	if err := a.TransposeTo(v, order...); err != nil {
		panic(err)
	}
	return v
}

// TransposeTo makes v the result of Transpose, or returns an error where Transpose panics.
func (a *Array) TransposeTo(v *Array, order ...int) error {
	if len(order) > MaxDims {
		return fmt.Errorf("array: %d dimensions, there can be %d", len(order), MaxDims)
	}
	src, kept := a, 0
	if v == a {
		src = &Array{}
		*src = *a
	}
	*v = Array{dtype: src.dtype, ndim: uint8(len(order)), offset: src.offset, data: src.data}
	for i, from := range order {
		if from == NewAxis {
			v.shape[i], v.strides[i] = 1, 0
			continue
		}
		v.shape[i], v.strides[i] = src.shape[from], src.strides[from]
		kept |= 1 << from
	}
	for d := range int(src.ndim) {
		if kept&(1<<d) == 0 && src.shape[d] != 1 {
			return droppedError(d, *src)
		}
	}
	return nil
}

// droppedError takes the array as a value, so that it is on the heap only if there is an error.
func droppedError(d int, a Array) error {
	return fmt.Errorf("array: dimension %d of shape %v is dropped, but does not have size 1", d, a.Shape())
}

// InMemoryOrder returns the view of a with its dimensions in the order of memory, those with longer steps
// first: what a is a view of, if that is a view of all of it. Sizes of 1 have any step.
func (a *Array) InMemoryOrder() *Array {
	var order [MaxDims]int
	dims := order[:a.ndim]
	for d := range dims {
		k := d
		for ; k > 0 && a.shape[d] != 1 && (a.shape[dims[k-1]] == 1 || a.strides[d] > a.strides[dims[k-1]]); k-- {
			dims[k] = dims[k-1]
		}
		dims[k] = d
	}
	return a.Transpose(dims...)
}

// SameLayout reports whether the arrays have the same shape, and elements in the same order in memory.
func SameLayout(a, b *Array) bool {
	if !SameShape(a, b) {
		return false
	}
	for d, n := range a.Shape() {
		if n != 1 && a.strides[d] != b.strides[d] {
			return false
		}
	}
	return true
}

// BroadcastTo returns the view of a with the given shape. It repeats dimensions of size 1 and adds
// missing ones in front.
func (a *Array) BroadcastTo(shape ...int) (*Array, error) {
	pad := len(shape) - int(a.ndim)
	if pad < 0 || len(shape) > MaxDims {
		return nil, fmt.Errorf("array: shape %v does not broadcast to %v", a.Shape(), shape)
	}
	v := &Array{dtype: a.dtype, ndim: uint8(len(shape)), offset: a.offset, data: a.data}
	for i, n := range shape {
		v.shape[i] = n
		if i < pad {
			continue
		}
		switch a.shape[i-pad] {
		case n:
			v.strides[i] = a.strides[i-pad]
		case 1:
		default:
			return nil, fmt.Errorf("array: shape %v does not broadcast to %v", a.Shape(), shape)
		}
	}
	return v, nil
}

// ReshapeTo makes v the view of the elements of a, in row-major order, with another shape of as
// many elements. It reports false if there is no such view because of the strides of a.
func (a *Array) ReshapeTo(v *Array, shape ...int) bool {
	src := *a
	if a.Contiguous() {
		v.layOut(src.dtype, shape)
		v.offset, v.data = src.offset, src.data
		return true
	}
	var to Array
	to.layOut(src.dtype, shape)
	if n := src.Len(); n == 0 || to.Len() != n || !src.restride(&to) {
		return false
	}
	*v = to
	v.offset, v.data = src.offset, src.data
	return true
}

// restride sets the strides of v, whose shape has as many elements as a, to those of a view of a, if
// there is one. As in NumPy, dimensions of both are taken in groups with equal numbers of elements;
// those of a that are in one group must have the strides of contiguous memory, up to a factor.
func (a *Array) restride(v *Array) bool {
	var sizes, strides [MaxDims]int // of a, without sizes of 1
	n := 0
	for d, size := range a.Shape() {
		if size != 1 {
			sizes[n], strides[n] = size, a.strides[d]
			n++
		}
	}
	from, to := 0, 0
	for from < n {
		endFrom, endTo := from+1, to+1
		for x, y := sizes[from], v.shape[to]; x != y; {
			if x < y {
				x *= sizes[endFrom]
				endFrom++
			} else {
				y *= v.shape[endTo]
				endTo++
			}
		}
		for d := from; d < endFrom-1; d++ {
			if strides[d] != sizes[d+1]*strides[d+1] {
				return false
			}
		}
		step := strides[endFrom-1]
		for d := endTo - 1; d >= to; d-- {
			v.strides[d] = step
			step *= v.shape[d]
		}
		from, to = endFrom, endTo
	}
	return true // sizes of 1 that are left have any stride
}

// Reshape returns the elements of a, in row-major order, with another shape of as many
// elements: as a view if that is possible, otherwise as a copy.
func (a *Array) Reshape(shape ...int) *Array {
	v := new(Array)
	if !a.ReshapeTo(v, shape...) {
		a.Clone().ReshapeTo(v, shape...)
	}
	if v.Len() != a.Len() {
		panic(fmt.Sprintf("array: shape %v reshaped to %v", a.Shape(), shape))
	}
	return v
}

// A Range selects Count elements of a dimension, from Start on and Step apart. If Drop is set, it
// selects the element at Start and drops the dimension.
type Range struct {
	Start, Step, Count int
	Drop               bool
}

// RangeTo makes v the view of the elements of a that the ranges select, one per dimension. Missing
// ranges select everything.
func (a *Array) RangeTo(v *Array, ranges ...Range) {
	src := *a
	*v = Array{dtype: src.dtype, offset: src.offset, data: src.data}
	empty := false
	for i := range int(src.ndim) {
		r := Range{0, 1, src.shape[i], false}
		if i < len(ranges) {
			r = ranges[i]
		}
		v.offset += r.Start * src.strides[i]
		if r.Drop {
			continue
		}
		empty = empty || r.Count == 0
		v.shape[v.ndim], v.strides[v.ndim] = r.Count, r.Step*src.strides[i]
		v.ndim++
	}
	if empty { // of no elements, the first one would lie anywhere, also behind the memory
		v.offset = src.offset
	}
}

// Reversed returns the same elements in the opposite order.
func (r Range) Reversed() Range {
	return Range{Start: r.Start + (r.Count-1)*r.Step, Step: -r.Step, Count: r.Count}
}

// Clip returns the elements in [lo, hi).
func (r Range) Clip(lo, hi int) Range {
	if r.Step < 0 {
		return r.Reversed().Clip(lo, hi).Reversed()
	}
	below := func(p int) int { return min(max(0, (p-r.Start+r.Step-1)/r.Step), r.Count) } // how many elements are
	first := below(lo)
	return Range{Start: r.Start + first*r.Step, Step: r.Step, Count: below(hi) - first}
}

// SliceRange returns the Range of Python's start:stop:step in a dimension of size n. Bounds may be
// negative, or missing, and are clipped. The step must not be 0.
func SliceRange(n int, start, stop *int, step int) Range {
	lo, hi, sign := 0, n, 1
	first, end := lo, hi // if the bounds are missing
	if step < 0 {
		lo, hi, sign = -1, n-1, -1
		first, end = hi, lo
	}
	clip := func(bound *int, missing int) int {
		if bound == nil {
			return missing
		}
		b := *bound
		if b < 0 {
			b += n
		}
		return min(max(b, lo), hi)
	}
	r := Range{Start: clip(start, first), Step: step}
	if left := clip(stop, end) - r.Start; left*sign > 0 {
		// That is left/step rounded up, for steps of both signs: the last step may be cut off.
		r.Count = (left-sign)/step + 1
	}
	return r
}

// DiagonalTo makes v the view of a diagonal in two different dimensions, from the element at (0,
// offset) on, or at (-offset, 0) if offset is negative. The diagonal becomes the last dimension.
func (a *Array) DiagonalTo(v *Array, offset, dim1, dim2 int) {
	src := *a
	*v = Array{dtype: src.dtype, offset: src.offset, data: src.data}
	for d := range int(src.ndim) {
		if d != dim1 && d != dim2 {
			v.shape[v.ndim], v.strides[v.ndim] = src.shape[d], src.strides[d]
			v.ndim++
		}
	}
	// One step goes to the next row and column at once.
	n := DiagonalLen(src.shape[dim1], src.shape[dim2], offset)
	v.shape[v.ndim], v.strides[v.ndim] = n, src.strides[dim1]+src.strides[dim2]
	v.ndim++
	// The first element of an empty diagonal lies outside, where a view must not begin.
	if v.Len() > 0 {
		v.offset += max(offset, 0)*src.strides[dim2] + max(-offset, 0)*src.strides[dim1]
	}
}

// DiagonalLen returns the number of elements of a diagonal of a matrix.
func DiagonalLen(rows, columns, offset int) int {
	return max(0, min(rows-max(-offset, 0), columns-max(offset, 0)))
}
