package ir

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/internal/lists"
)

func inferConcat(c *Call) {
	elem := c.elemOf(c.all()...)
	c.failIf(c.Op.Attribute("axis") == nil, "there is no axis")
	axis := c.Op.Int("axis", 0)
	var out []Dim
	sum, known := Known(0), false
	for k := range c.numInputs() {
		dims, ranked := c.shape(k)
		if !ranked {
			// Other inputs still tell the sizes along the other axes.
			sum = UnknownDim
			continue
		}
		at := c.axis(axis, len(dims))
		sum = sum.Plus(dims[at])
		if !known {
			known, out = true, dims
			continue
		}
		c.failIf(len(dims) != len(out), "inputs of %d and of %d dimensions", len(out), len(dims))
		for i, d := range dims {
			if i != at {
				out[i] = c.meet(out[i], d)
			}
		}
	}
	if !known {
		c.Set(0, AnyShape(elem))
		return
	}
	out[c.axis(axis, len(out))] = sum
	t := NewType(elem, out...)
	if n, ok := sum.Number(); ok && len(out) == 1 && n <= maxData {
		list := make([]Dim, 0, n)
		for k := range c.numInputs() {
			part, _ := c.elements(k)
			list = append(list, part...)
		}
		t = t.with(list)
	}
	c.Set(0, t)
}

func inferSplit(c *Call) {
	elem := c.Elem(0)
	dims, ranked := c.shape(0)
	if !ranked {
		for k := range c.Op.Outputs {
			c.Set(k, AnyShape(elem))
		}
		return
	}
	axis := c.axis(c.Op.Int("axis", 0), len(dims))
	sizes := c.splitSizes(dims[axis])
	list, known := c.elements(0)
	for k, d := range sizes {
		dims[axis] = d
		t := NewType(elem, dims...)
		n, ok := d.Number()
		if known = known && ok && n <= int64(len(list)); known && len(dims) == 1 {
			t = t.with(list[:n])
			list = list[n:]
		}
		c.Set(k, t)
	}
}

// splitSizes returns the sizes of the parts that a size is split into.
func (c *Call) splitSizes(size Dim) []Dim {
	count := int64(c.Op.Outputs)
	if c.has(1) {
		list, ok := c.elements(1)
		if !ok {
			return unknowns(int(count))
		}
		c.failIf(int64(len(list)) != count, "%d parts, and %d outputs", len(list), count)
		sum := Known(0)
		for _, d := range list {
			c.notNegative(d)
			sum = sum.Plus(d)
		}
		c.failIf(sum.Differs(size), "the parts have size %v in all, and the input %v", sum, size)
		return list
	}
	asked := c.Op.Int("num_outputs", count)
	c.failIf(asked != count, "num_outputs is %d, and there are %d", asked, count)
	sizes := make([]Dim, count)
	part := size.Plus(Known(count - 1)).over(Known(count))
	exact, isExact := size.exactly(Known(count))
	if !isExact && c.Op.Attribute("num_outputs") == nil {
		// Before opset 18, there had to be no rest.
		exact, isExact = c.exactly(size, Known(count)), true
	}
	for i := range sizes {
		switch {
		case isExact:
			sizes[i] = exact
		case i == 0:
			sizes[i] = part
		case count == 2:
			// A number minus its half rounded up is its half rounded down.
			sizes[i] = size.over(Known(2))
		default:
			// Parts are as large as the first one until nothing is left: the last may be short or empty.
			sizes[i] = size.Minus(part.Times(Known(int64(i)))).max(Known(0)).min(part)
		}
	}
	return sizes
}

func inferSlice(c *Call) {
	elem := c.Elem(0)
	dims := c.ranked(0, elem)
	starts, ok := c.elements(1)
	ends, too := c.elements(2)
	axes, known := c.numbers(3)
	if !c.has(3) {
		known = ok || too
		for i := range max(len(starts), len(ends)) {
			axes = append(axes, int64(i))
		}
	}
	if !known {
		c.Set(0, NewType(elem, unknowns(len(dims))...))
		return
	}
	if !ok {
		starts = unknowns(len(axes))
	}
	if !too {
		ends = unknowns(len(axes))
	}
	steps, ok := c.numbers(4)
	if len(starts) != len(axes) || len(ends) != len(axes) || ok && len(steps) != len(axes) {
		c.Fail("%d starts, %d ends and %d axes", len(starts), len(ends), len(axes))
	}
	data, hasData := c.data(0)
	sizes, _ := c.In(0).Numbers()
	for i, a := range axes {
		k, step := c.axis(a, len(dims)), int64(1)
		if ok {
			step = steps[i]
		}
		c.failIf(step == 0, "a step of 0")
		n := dims[k]
		if dims[k] = UnknownDim; ok || !c.has(4) {
			dims[k] = sliceLength(n, starts[i], ends[i], step)
		}
		if hasData {
			data, hasData = sliceOf(data, sizes, k, starts[i], step, dims[k])
		}
	}
	t := NewType(elem, dims...)
	if hasData {
		t = t.with(data)
	}
	c.Set(0, t)
}

// endless is what ONNX has exporters write for the end of a dimension whose size is not known, or more.
const endless = math.MaxInt32

// sliceLength returns how many elements of n a slice has. Positions beyond the ends are the ends.
func sliceLength(n, start, end Dim, step int64) Dim {
	if step < 0 {
		return reverseLength(n, start, end, step)
	}
	from, isNumber := start.Number()
	to, too := end.Number()
	if isNumber && from <= -endless {
		start, from = Known(0), 0
	}
	// Both count from the same end, so there is nothing between them whatever n is.
	if isNumber && too && from >= to && (from < 0) == (to < 0) {
		return Known(0)
	}
	low, ok := position(n, start)
	high, too2 := position(n, end)
	if isNumber && from >= endless {
		return Known(0)
	}
	if !ok || !too2 {
		return UnknownDim
	}
	var length Dim
	switch {
	case too && to >= endless && isNumber && from < 0: // the last ones
		length = n.min(Known(-from))
	case !isNumber || from >= 0:
		// That the start is at most n need not be said: the length would be less than 0 otherwise.
		length = high.Minus(start).max(Known(0))
		if b, _ := start.bounds(0); b < 0 {
			length = high.Minus(low).max(Known(0))
		}
	default:
		length = high.Minus(low).max(Known(0))
	}
	return length.Plus(Known(step - 1)).over(Known(step))
}

// position returns the place of a start or end within n elements.
func position(n, at Dim) (Dim, bool) {
	low, high := at.bounds(0)
	switch {
	case low >= endless:
		return n, true
	case low >= 0:
		return at.min(n), true
	case high < 0 && low > -endless:
		return n.Plus(at).max(Known(0)), true
	case high < 0:
		return Known(0), high <= -endless
	}
	return UnknownDim, false
}

// reverseLength is sliceLength for a negative step, from the last element on or of a number of them.
func reverseLength(n, start, end Dim, step int64) Dim {
	from, ok := start.Number()
	to, too := end.Number()
	if !ok || !too || step == math.MinInt64 {
		return UnknownDim
	}
	if from == -1 || from >= endless {
		length := n // the end is in front of all
		switch {
		case to >= 0:
			length = n.Minus(Known(1)).Minus(end).max(Known(0))
		case to > -endless:
			length = n.min(Known(-1 - to))
		}
		return length.Plus(Known(-step - 1)).over(Known(-step))
	}
	size, isNumber := n.Number()
	if !isNumber {
		return UnknownDim
	}
	if size == 0 {
		return Known(0)
	}
	if from < 0 {
		from = max(from+size, 0)
	}
	if to < 0 {
		to = max(to, -size-1) + size
	}
	// The end is not reached, so it is -1 where element 0 is the last one.
	from, to = min(from, size-1), min(max(to, -1), size-1)
	return Known(max(0, (from-to-step-1)/-step))
}

// sliceOf returns the elements of a slice along an axis of a tensor of these elements and sizes, and sets
// the new size in sizes. ok is false if it can't be told which they are.
func sliceOf(list []Dim, sizes []int64, axis int, start Dim, step int64, length Dim) (part []Dim, ok bool) {
	n, known := length.Number()
	from, isNumber := start.Number()
	if !known || !isNumber {
		return nil, false
	}
	size := sizes[axis]
	if from < 0 {
		from = max(from+size, 0)
	}
	from = min(from, size-1)
	shape := slices.Clone(sizes)
	shape[axis] = n
	old := make([]int64, len(sizes))
	part = picked(list, shape, func(index []int64) int64 {
		copy(old, index)
		old[axis] = from + index[axis]*step
		return place(sizes, old)
	})
	sizes[axis] = n
	return part, int64(len(part)) == product(knowns(shape)).n
}

func inferPad(c *Call) {
	elem := c.Elem(0)
	dims := c.ranked(0, elem)
	axes, known := c.axesOr(3, len(dims))
	if !known {
		c.Set(0, NewType(elem, unknowns(len(dims))...))
		return
	}
	pads, ok := c.elements(1)
	if !ok {
		pads = unknowns(2 * len(axes))
	}
	c.failIf(len(pads) != 2*len(axes), "%d numbers of padding for %d axes", len(pads), len(axes))
	for i, a := range axes {
		dims[a] = dims[a].Plus(pads[i]).Plus(pads[len(axes)+i])
		c.notNegative(dims[a])
	}
	c.Set(0, NewType(elem, dims...))
}

// centerCropPad pads both sides, by negative numbers where it cuts off. An odd element is cut off, or added, at the end.
func centerCropPad(b *Builder) []variable {
	x := b.input(0)
	axes := b.Ints("axes")
	if b.Attribute("axes") == nil {
		axes = lists.Range[int64](b.rankOf(x))
	}
	more := b.sub(b.integers(1), b.Do("Gather", b.Do("Shape", x), axes))
	before := b.Do("Div", more, 2)
	return []variable{b.Do("Pad", x, b.concat(0, before, b.sub(more, before)), nil, axes)}
}

func inferCenterCropPad(c *Call) {
	elem := c.Elem(0)
	dims := c.ranked(0, elem)
	axes := c.axesOf(c.Op.Ints("axes"), c.Op.Attribute("axes") != nil, len(dims))
	sizes, ok := c.elements(1)
	if !ok {
		sizes = unknowns(len(axes))
	}
	c.failIf(len(sizes) != len(axes), "%d sizes for %d axes", len(sizes), len(axes))
	for i, a := range axes {
		c.notNegative(sizes[i])
		dims[a] = sizes[i]
	}
	c.Set(0, NewType(elem, dims...))
}
