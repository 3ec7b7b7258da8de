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
