package ir

import (
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

// standardIndexing are operators that select, place, sort and count elements.
var standardIndexing = []Operator{
	{Type: "Gather", MinInputs: 2, MaxInputs: 2, Infer: inferGather},
	{Type: "GatherElements", MinInputs: 2, MaxInputs: 2, Infer: func(c *Call) {
		c.sameRank(0, 1)
		c.shaped(0, c.Elem(0), 1)
	}},
	{Type: "GatherND", MinInputs: 2, MaxInputs: 2, Infer: inferGatherND},
	{Type: "Scatter", MinInputs: 3, MaxInputs: 3, Infer: inferScatterElements},
	{Type: "ScatterElements", MinInputs: 3, MaxInputs: 3, Infer: inferScatterElements},
	{Type: "ScatterND", MinInputs: 3, MaxInputs: 3, Infer: inferScatterND},
	{Type: "TensorScatter", MinInputs: 2, MaxInputs: 3, Infer: func(c *Call) {
		c.elemOf(0, 1)
		c.sameRank(0, 1)
		c.like(0, 0)
	}},
	{Type: "OneHot", MinInputs: 3, MaxInputs: 3, Infer: inferOneHot},
	{Type: "TopK", MinInputs: 2, MaxInputs: 2, Infer: inferTopK},
	{Type: "NonZero", MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) {
		n := UnknownDim
		if dims, ranked := c.shape(0); ranked {
			n = Known(int64(len(dims)))
		}
		c.Set(0, NewType(onnx.Int64, n, UnknownDim))
	}},
	{Type: "Compress", MinInputs: 2, MaxInputs: 2, Infer: inferCompress},
	{Type: "Unique", MinInputs: 1, MaxInputs: 1, Infer: inferUnique},
	{Type: "NonMaxSuppression", MinInputs: 2, MaxInputs: 5, Infer: func(c *Call) {
		c.rank(0, 3)
		c.rank(1, 3)
		c.Set(0, NewType(onnx.Int64, UnknownDim, Known(3)))
	}},
}

// sameRank fails if two inputs have not as many dimensions.
func (c *Call) sameRank(a, b int) {
	x, ranked := c.shape(a)
	if y, too := c.shape(b); ranked && too && len(x) != len(y) {
		c.Fail("inputs %d and %d have %d and %d dimensions", a, b, len(x), len(y))
	}
}

func inferGather(c *Call) {
	elem := c.Elem(0)
	dims, at := c.ranked(0, elem), c.ranked(1, elem)
	axis := c.axis(c.Op.Int("axis", 0), len(dims))
	size, isNumber := dims[axis].Number()
	indices, known := c.numbers(1)
	for _, i := range indices {
		c.failIf(known && isNumber && (i < -size || i >= size), "index %d of %d elements", i, size)
	}
	t := NewType(elem, slices.Concat(dims[:axis], at, dims[axis+1:])...)
	if list, ok := c.elements(0); ok && known && len(dims) == 1 && len(at) <= 1 && len(indices) <= maxData {
		part := make([]Dim, len(indices))
		for k, i := range indices {
			if i < 0 {
				i += int64(len(list))
			}
			part[k] = list[i]
		}
		t = t.with(part)
	}
	c.Set(0, t)
}

// inferGatherND: the last dimension of the indices says how many dimensions behind the first ones, which
// both inputs have, an index is of.
func inferGatherND(c *Call) {
	elem := c.Elem(0)
	dims, at := c.ranked(0, elem), c.ranked(1, elem)
	first := c.Op.Int("batch_dims", 0)
	if first < 0 || first > int64(len(dims)) || first >= int64(len(at)) {
		c.Fail("%d first dimensions of %d and %d", first, len(dims), len(at))
	}
	last := len(at) - 1
	n, ok := at[last].Number()
	// Even the number of dimensions of the result depends on it.
	if !ok {
		c.anyShape(elem)
	}
	c.failIf(n < 0 || first+n > int64(len(dims)), "indices of %d dimensions, and there are %d", first+n, len(dims))
	out := slices.Concat(at[:last], dims[first+n:])
	for i := range first {
		out[i] = c.meet(at[i], dims[i])
	}
	c.Set(0, NewType(elem, out...))
}

func inferScatterElements(c *Call) {
	c.elemOf(0, 2)
	c.sameRank(0, 1)
	c.sameRank(0, 2)
	c.scattered(true)
}

func inferScatterND(c *Call) {
	c.elemOf(0, 2)
	at, _ := c.shape(1)
	c.scattered(len(at) == 2 && at[1].Is(1))
}

// scattered says that the result is the first input with other elements at some indices. These are known at most
// of a list, whose indices must be numbers.
func (c *Call) scattered(numbers bool) {
	t := c.In(0).withoutData()
	c.Set(0, t)
	list, ok := c.elements(0)
	indices, known := c.numbers(1)
	updates, too := c.elements(2)
	if !numbers || !ok || !known || !too || t.Rank() != 1 || len(indices) != len(updates) || c.Op.Text("reduction", "none") != "none" {
		return
	}
	for k, i := range indices {
		n := int64(len(list))
		c.failIf(i < -n || i >= n, "index %d of %d elements", i, n)
		if i < 0 {
			i += n
		}
		list[i] = updates[k]
	}
	c.Set(0, t.with(list))
}

func inferOneHot(c *Call) {
	elem := c.Elem(2)
	dims := c.ranked(0, elem)
	depth := c.one(1)
	// ONNX allows numbers of any type for the depth.
	if list, ok := c.floats(1); ok && len(list) == 1 {
		depth = Known(int64(list[0]))
	}
	c.notNegative(depth)
	axis := c.axis(c.Op.Int("axis", -1), len(dims)+1)
	c.Set(0, NewType(elem, slices.Insert(dims, axis, depth)...))
}

func inferTopK(c *Call) {
	c.Set(1, AnyShape(onnx.Int64))
	dims := c.ranked(0, c.Elem(0))
	axis := c.axis(c.Op.Int("axis", -1), len(dims))
	k := c.one(1)
	if c.notNegative(k); dims[axis].Plus(Known(1)).atMost(k) {
		c.Fail("%v of %v elements", k, dims[axis])
	}
	dims[axis] = k
	c.Set(0, NewType(c.Elem(0), dims...))
	c.Set(1, NewType(onnx.Int64, dims...))
}

func inferCompress(c *Call) {
	elem := c.Elem(0)
	count := UnknownDim
	if list, ok := c.numbers(1); ok {
		n := int64(0)
		for _, v := range list {
			n += min(v, 1)
		}
		count = Known(n)
	}
	if c.Op.Attribute("axis") == nil {
		c.Set(0, NewType(elem, count))
		return
	}
	dims := c.ranked(0, elem)
	dims[c.axis(c.Op.Int("axis", 0), len(dims))] = count
	c.Set(0, NewType(elem, dims...))
}

// inferUnique: without an axis, the input is one list.
func inferUnique(c *Call) {
	elem := c.Elem(0)
	dims, ranked := c.shape(0)
	size := UnknownDim
	if c.Op.Attribute("axis") == nil {
		if ranked {
			size = product(dims)
		}
		dims, ranked = []Dim{UnknownDim}, true
	} else if ranked {
		axis := c.axis(c.Op.Int("axis", 0), len(dims))
		size, dims[axis] = dims[axis], UnknownDim
	}
	c.Set(0, tensor(elem, dims, ranked))
	c.Set(1, NewType(onnx.Int64, UnknownDim))
	c.Set(2, NewType(onnx.Int64, size))
	c.Set(3, NewType(onnx.Int64, UnknownDim))
}
