package ir

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

// standardShapes are operators that make, change and tell shapes.
var standardShapes = []Operator{
	{Type: "Constant", MinInputs: 0, MaxInputs: 0, Infer: inferConstant},
	{Type: "ConstantOfShape", MinInputs: 1, MaxInputs: 1, Infer: inferConstantOfShape},
	{Type: "EyeLike", MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) {
		c.rank(0, 2)
		c.shaped(0, c.to("dtype", c.Elem(0)), 0)
	}},
	{Type: "Range", MinInputs: 3, MaxInputs: 3, Infer: inferRange},
	{Type: "Shape", MinInputs: 1, MaxInputs: 1, Infer: inferShape},
	{Type: "Size", MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) {
		n := UnknownDim
		if dims, ranked := c.shape(0); ranked {
			n = product(dims)
		}
		c.Set(0, NewType(onnx.Int64).with([]Dim{n}))
	}},
	{Type: "Reshape", MinInputs: 2, MaxInputs: 2, Infer: inferReshape},
	{Type: "Flatten", MinInputs: 1, MaxInputs: 1, Infer: inferFlatten},
	{Type: "Squeeze", MinInputs: 1, MaxInputs: 2, Infer: inferSqueeze},
	{Type: "Unsqueeze", MinInputs: 2, MaxInputs: 2, Infer: inferUnsqueeze},
	{Type: "Transpose", MinInputs: 1, MaxInputs: 1, Infer: inferTranspose},
	{Type: "Expand", MinInputs: 2, MaxInputs: 2, Infer: inferExpand},
	{Type: "Tile", MinInputs: 2, MaxInputs: 2, Infer: inferTile},
	{Type: "Concat", MinInputs: 1, MaxInputs: -1, Infer: inferConcat},
	{Type: "Split", MinInputs: 1, MaxInputs: 2, Infer: inferSplit},
	{Type: "Slice", MinInputs: 3, MaxInputs: 5, Infer: inferSlice},
	{Type: "Pad", MinInputs: 2, MaxInputs: 4, Infer: inferPad},
	{Type: "CenterCropPad", MinInputs: 2, MaxInputs: 2, Infer: inferCenterCropPad, Body: centerCropPad},
	{Type: "DepthToSpace", MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) {
		s, b := c.sizesOf(0, 4), c.blockSize()
		c.Set(0, NewType(c.Elem(0), s[0], c.exactly(s[1], b.Times(b)), s[2].Times(b), s[3].Times(b)))
	}},
	{Type: "SpaceToDepth", MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) {
		s, b := c.sizesOf(0, 4), c.blockSize()
		c.Set(0, NewType(c.Elem(0), s[0], s[1].Times(b).Times(b), c.exactly(s[2], b), c.exactly(s[3], b)))
	}},
	{Type: "Trilu", MinInputs: 1, MaxInputs: 2, Infer: func(c *Call) {
		if dims, ranked := c.shape(0); ranked && len(dims) < 2 {
			c.Fail("%d dimensions are no matrix", len(dims))
		}
		c.like(0, 0)
	}},
	{Type: "ReverseSequence", MinInputs: 2, MaxInputs: 2, Infer: inferSame},
}

func (c *Call) blockSize() Dim {
	b := c.Op.Int("blocksize", 0)
	c.failIf(b <= 0, "blocks of size %d", b)
	return Known(b)
}

// exactly returns a quotient that has no rest where the operator can run.
func (c *Call) exactly(d, e Dim) Dim {
	n, isN := d.Number()
	m, isM := e.Number()
	c.failIf(isN && isM && m != 0 && n%m != 0, "size %d is no multiple of %d", n, m)
	return d.over(e)
}

func inferConstant(c *Call) {
	for _, a := range c.Op.Attributes {
		if t, err := constantTensor(a); err == nil && t != nil {
			c.Set(0, typeOfTensor(t))
		}
	}
}

// typeOfTensor returns the type that a constant has.
func typeOfTensor(t *onnx.Tensor) Type { return TypeOf(Constant(NewValue(t, ""), "")) }

func inferConstantOfShape(c *Call) {
	elem, value := onnx.Float, UnknownDim
	if a := c.Op.Attribute("value"); a != nil && a.Tensor != nil {
		elem = a.Tensor.DataType
		if list, ok := typeOfTensor(a.Tensor).Data(); ok && len(list) == 1 {
			value = list[0]
		}
	}
	sizes := c.listed(0, elem)
	for _, d := range sizes {
		c.notNegative(d)
	}
	t := NewType(elem, sizes...)
	if n := product(sizes); len(sizes) <= 1 && isInteger(elem) && !n.IsUnknown() {
		if k, ok := n.Number(); ok && k <= maxData {
			t = t.with(slices.Repeat([]Dim{value}, int(k)))
		}
	}
	c.Set(0, t)
}

// notNegative fails for a size that is known to be negative.
func (c *Call) notNegative(d Dim) {
	if n, ok := d.Number(); ok && n < 0 {
		c.Fail("a size of %d", n)
	}
}

func inferRange(c *Call) {
	elem := c.elemOf(0, 1, 2)
	from, to, step := c.one(0), c.one(1), c.one(2)
	n, ok := step.Number()
	var count Dim
	switch {
	case ok && n == 0:
		c.Fail("a step of 0")
	case ok && n > 0:
		count = to.Minus(from).Plus(Known(n - 1)).over(step).max(Known(0))
	case ok && n > math.MinInt64:
		count = from.Minus(to).Plus(Known(-n - 1)).over(Known(-n)).max(Known(0))
	default:
		count = c.rangeOfFloats()
	}
	t := NewType(elem, count)
	if k, ok := count.Number(); ok && k <= maxData && isInteger(elem) {
		list := make([]Dim, k)
		for i := range list {
			list[i] = from.Plus(step.Times(Known(int64(i))))
		}
		t = t.with(list)
	}
	c.Set(0, t)
}

// rangeOfFloats returns how many numbers there are in a range of constants, unless rounding may matter.
func (c *Call) rangeOfFloats() Dim {
	var x [3]float64
	whole := true
	for k := range x {
		list, ok := c.floats(k)
		if !ok || len(list) != 1 {
			return UnknownDim
		}
		x[k] = list[0]
		whole = whole && x[k] == math.Trunc(x[k]) && math.Abs(x[k]) < 1<<20
	}
	c.failIf(x[2] == 0, "a step of 0")
	n := (x[1] - x[0]) / x[2]
	if whole || n < 1<<10 && math.Abs(n-math.Round(n)) > 1e-3 {
		return Known(max(int64(math.Ceil(n)), 0))
	}
	return UnknownDim
}

func inferShape(c *Call) {
	dims, ranked := c.shape(0)
	if !ranked {
		c.Set(0, NewType(onnx.Int64, UnknownDim))
		return
	}
	clamp := func(k int64) int64 {
		n := int64(len(dims))
		if k < 0 {
			k = max(k, -n) + n
		}
		return min(k, n)
	}
	start, end := clamp(c.Op.Int("start", 0)), clamp(c.Op.Int("end", int64(len(dims))))
	dims = dims[start:max(start, end)]
	c.Set(0, NewType(onnx.Int64, Known(int64(len(dims)))).with(dims))
}

// inferReshape: a 0 is the size that the input has there, unless allowzero, and one -1 is what is left
// of all elements. A size of the shape that is computed, and turns out to be 0, would be one of the
// input, too; tensors that are not empty have no such size, and of empty ones it is not told apart.
func inferReshape(c *Call) {
	elem := c.Elem(0)
	sizes := c.listed(1, elem)
	in, ranked := c.shape(0)
	rest := slices.Clone(in) // sizes of the input that are not copied
	var others []Dim         // sizes of the result that are not copied, but for that of -1
	infer, open := -1, -1    // where the size is -1, and where it is no number
	opens, empty := 0, false // whether the size that is copied may be 0
	for i, d := range sizes {
		n, isNumber := d.Number()
		switch {
		case isNumber && n < -1:
			c.Fail("a size of %d", n)
		case isNumber && n == -1:
			c.failIf(infer >= 0, "there are two sizes of -1; one can be computed")
			infer = i
		case isNumber && n == 0 && c.Op.Int("allowzero", 0) == 0:
			sizes[i] = UnknownDim
			switch {
			case !ranked:
			case i >= len(in) && (c.inputs[1].IsConstant() || product(in).Differs(Known(0))):
				c.Fail("size %d is 0, which is that of the input, and there is none", i)
			case i >= len(in):
				sizes[i] = d // it was computed, of the sizes of an empty tensor
			default:
				sizes[i], rest[i] = in[i], taken
				low, _ := in[i].bounds(0)
				empty = empty || low < 1
			}
		case !isNumber:
			open, opens = len(others), opens+1
			others = append(others, d)
		default:
			others = append(others, d)
		}
	}
	rest = slices.DeleteFunc(rest, func(d Dim) bool { return d == taken })
	switch {
	case !ranked:
		if infer >= 0 {
			sizes[infer] = UnknownDim
		}
	case infer >= 0:
		sizes[infer] = c.left(rest, others)
	case empty: // then others may be any
	case opens == 1:
		// The size is what is left, if that is more than an expression.
		d := others[open]
		at := slices.Index(sizes, d)
		if left := c.left(rest, slices.Delete(others, open, open+1)); d.IsUnknown() || left.expr == "" {
			sizes[at] = left
		}
	default:
		n, isNumber := product(rest).Number()
		m, too := product(others).Number()
		c.failIf(isNumber && too && n != m, "%d elements can't be %d ones", n, m)
	}
	c.setReshaped(NewType(elem, sizes...))
}

// setReshaped sets the type of a result that has the elements of the first input in the same order.
func (c *Call) setReshaped(t Type) {
	if list, ok := c.data(0); ok {
		t = t.with(list)
	}
	c.Set(0, t)
}

// taken marks a size that is copied.
var taken = Dim{n: -1, expr: unknownDim}

// left returns the product of sizes divided by that of others, of which some may be the same. It has no
// rest where a Reshape can run.
func (c *Call) left(sizes, others []Dim) Dim {
	sizes, others = slices.Clone(sizes), slices.Clone(others)
	// What both products have is cancelled first: the rest has a quotient more often, and one of fewer terms.
	for i := 0; i < len(others); i++ {
		if k := slices.IndexFunc(sizes, others[i].Same); k >= 0 && !others[i].Is(0) {
			sizes, others = slices.Delete(sizes, k, k+1), slices.Delete(others, i, i+1)
			i--
		}
	}
	n, m := product(sizes), product(others)
	if m.Is(0) {
		return UnknownDim // any size would do
	}
	return c.exactly(n, m)
}

func inferFlatten(c *Call) {
	elem, dims := c.Elem(0), []Dim{UnknownDim, UnknownDim}
	if in, ranked := c.shape(0); ranked {
		n := int64(len(in))
		axis := c.Op.Int("axis", 1)
		c.failIf(axis < -n || axis > n, "there is no axis %d of %d", axis, n)
		if axis < 0 {
			axis += n
		}
		dims = []Dim{product(in[:axis]), product(in[axis:])}
	} else if c.Op.Int("axis", 1) == 0 {
		dims[0] = Known(1)
	}
	c.Set(0, NewType(elem, dims...))
}

func inferSqueeze(c *Call) {
	elem := c.Elem(0)
	dims := c.ranked(0, elem)
	axes, known := c.numbers(1)
	var out []Dim
	switch {
	case known:
		gone := make([]bool, len(dims))
		for _, a := range axes {
			k := c.axis(a, len(dims))
			if gone[k] = true; dims[k].Differs(Known(1)) {
				c.Fail("axis %d has size %v, not 1", a, dims[k])
			}
		}
		for i, d := range dims {
			if !gone[i] {
				out = append(out, d)
			}
		}
	case c.has(1):
		n := c.count(1)
		if n < 0 || n > len(dims) {
			c.anyShape(elem)
		}
		out = unknowns(len(dims) - n)
	default:
		for _, d := range dims {
			if d.Is(1) {
				continue
			}
			if !d.Differs(Known(1)) { // it may be 1 in some run
				c.anyShape(elem)
			}
			out = append(out, d)
		}
	}
	c.setReshaped(NewType(elem, out...))
}

func inferUnsqueeze(c *Call) {
	elem := c.Elem(0)
	dims := c.ranked(0, elem)
	axes, known := c.numbers(1)
	n := len(dims) + c.count(1)
	switch {
	case known:
		n = len(dims) + len(axes)
	case n < len(dims):
		c.anyShape(elem)
	default:
		c.Set(0, NewType(elem, unknowns(n)...))
		return
	}
	added := make([]bool, n)
	for _, a := range axes {
		k := c.axis(a, n)
		c.failIf(added[k], "axis %d is there twice", a)
		added[k] = true
	}
	out := make([]Dim, n)
	for i := range out {
		if out[i] = Known(1); !added[i] {
			out[i], dims = dims[0], dims[1:]
		}
	}
	c.setReshaped(NewType(elem, out...))
}

func inferTranspose(c *Call) {
	dims, ranked := c.shape(0)
	perm := c.Op.Ints("perm")
	if c.Op.Attribute("perm") == nil {
		for i := range c.ranked(0, c.Elem(0)) {
			perm = append(perm, int64(len(dims)-1-i))
		}
	}
	if !ranked {
		// perm is as long as a file says, and no more is made than is refused below.
		dims = unknowns(min(len(perm), maxRank+1))
	}
	c.failIf(ranked && len(perm) != len(dims), "perm has %d axes, and the input %d", len(perm), len(dims))
	if len(perm) > maxRank {
		c.anyShape(c.Elem(0))
	}
	seen := make([]bool, len(perm))
	out := make([]Dim, len(perm))
	for i, p := range perm {
		c.failIf(p < 0 || p >= int64(len(perm)) || seen[p], "perm is %v, no order of %d axes", perm, len(perm))
		seen[p] = true
		out[i] = dims[p]
	}
	t := NewType(c.Elem(0), out...)
	if list, ok := c.data(0); ok {
		from, _ := c.In(0).Numbers()
		to, _ := t.Numbers()
		old := make([]int64, len(perm))
		t = t.with(picked(list, to, func(index []int64) int64 {
			for i, p := range perm {
				old[p] = index[i]
			}
			return place(from, old)
		}))
	}
	c.Set(0, t)
}

func inferExpand(c *Call) {
	elem := c.Elem(0)
	dims, sizes := c.ranked(0, elem), c.listed(1, elem)
	for i, d := range sizes {
		if n, ok := d.Number(); ok && n < 0 { // some exporters mean the size of the input
			sizes[i] = UnknownDim
		}
	}
	t := NewType(elem, c.broadcast(dims, sizes)...)
	if list, ok := c.elements(0); ok && t.Rank() <= 1 {
		if n, ok := product(c.broadcast(dims, sizes)).Number(); ok && n <= maxData && len(list) == 1 {
			list = slices.Repeat(list, int(n))
		}
		t = t.with(list)
	}
	c.Set(0, t)
}

func inferTile(c *Call) {
	elem := c.Elem(0)
	repeats, ok := c.elements(1)
	if ok && c.In(0).Rank() < 0 {
		c.Set(0, NewType(elem, unknowns(len(repeats))...))
		return
	}
	dims := c.ranked(0, elem)
	switch {
	case !ok:
		repeats = unknowns(len(dims))
	case len(repeats) != len(dims):
		c.Fail("%d repeats of %d dimensions", len(repeats), len(dims))
	}
	list, known := c.elements(0)
	for i, d := range dims {
		c.notNegative(repeats[i])
		dims[i] = d.Times(repeats[i])
	}
	t := NewType(elem, dims...)
	if known && len(dims) == 1 {
		// Each is asked alone first, since their product could overflow.
		if n, ok := repeats[0].Number(); ok && n <= maxData && n*int64(len(list)) <= maxData {
			t = t.with(slices.Repeat(list, int(n)))
		}
	}
	c.Set(0, t)
}
