package ir

import (
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

// standardSequences are operators of sequences and of optional values.
var standardSequences = []Operator{
	{Type: "SequenceEmpty", MinInputs: 0, MaxInputs: 0, Infer: func(c *Call) { c.Set(0, sequenceOf(AnyShape(c.to("dtype", onnx.Float)))) }},
	{Type: "SequenceConstruct", MinInputs: 1, MaxInputs: -1, Infer: func(c *Call) {
		t := c.In(0).withoutData()
		for k := 1; k < c.numInputs(); k++ {
			t = t.Join(c.In(k).withoutData())
		}
		if elem := c.elemOf(c.all()...); t.IsUnknown() {
			t = AnyShape(elem)
		}
		c.Set(0, sequenceOf(t))
	}},
	{Type: "SequenceInsert", MinInputs: 2, MaxInputs: 3, Infer: func(c *Call) {
		t := c.element(0)
		c.Set(0, sequenceOf(t.Join(c.In(1).withoutData())))
	}},
	{Type: "SequenceErase", MinInputs: 1, MaxInputs: 2, Infer: inferSame},
	{Type: "SequenceAt", MinInputs: 2, MaxInputs: 2, Infer: func(c *Call) { c.Set(0, c.element(0)) }},
	{Type: "SequenceLength", MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) { c.Set(0, NewType(onnx.Int64)) }},
	{Type: "SplitToSequence", MinInputs: 1, MaxInputs: 2, Infer: inferSplitToSequence},
	{Type: "ConcatFromSequence", MinInputs: 1, MaxInputs: 1, Infer: inferConcatFromSequence},
	{Type: "Optional", MinInputs: 0, MaxInputs: 1, Infer: func(c *Call) {
		t := c.In(0)
		if a := c.Op.Attribute("type"); a != nil && !c.has(0) {
			t = FromProto(a.TypeProto)
		}
		c.Set(0, optionalOf(t))
	}},
	// Since opset 18 the input need not be optional.
	{Type: "OptionalGetElement", MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) {
		t := c.In(0)
		if elem, _, optional := t.ElementOf(); optional {
			t = elem
		}
		c.Set(0, t)
	}},
	{Type: "OptionalHasElement", MinInputs: 0, MaxInputs: 1, Infer: func(c *Call) {
		t := NewType(onnx.Bool)
		if !c.has(0) {
			t = t.with([]Dim{Known(0)})
		}
		c.Set(0, t)
	}},
}

// element returns the type of the elements of an input that is a sequence.
func (c *Call) element(k int) Type {
	t := c.In(k)
	elem, sequence, _ := t.ElementOf()
	c.failIf(!sequence && !t.IsUnknown() && c.has(k), "input %d is no sequence, but %v", k, t)
	return elem
}

// inferSplitToSequence: parts are of the sizes of a list, of one size but for the last, or of size 1,
// whose dimension may then be left out.
func inferSplitToSequence(c *Call) {
	dims, ranked := c.shape(0)
	if ranked {
		axis := c.axis(c.Op.Int("axis", 0), len(dims))
		size := dims[axis]
		dims[axis] = UnknownDim
		if !c.has(1) {
			if dims[axis] = Known(1); c.Op.Int("keepdims", 1) == 0 {
				dims = slices.Delete(dims, axis, axis+1)
			}
		} else if list, ok := c.elements(1); ok && len(list) > 0 {
			same := !slices.ContainsFunc(list, func(d Dim) bool { return !d.Same(list[0]) })
			// A scalar may leave a smaller rest; a list says all sizes.
			if _, exact := size.exactly(list[0]); same && (exact || c.In(1).Rank() == 1) {
				dims[axis] = list[0]
			}
		}
	}
	c.Set(0, sequenceOf(tensor(c.Elem(0), dims, ranked)))
}

func inferConcatFromSequence(c *Call) {
	elem := c.element(0)
	dims, ranked := elem.Shape()
	if ranked {
		axis := c.Op.Int("axis", 0)
		if c.Op.Int("new_axis", 0) != 0 {
			dims = slices.Insert(dims, c.axis(axis, len(dims)+1), UnknownDim)
		} else {
			dims[c.axis(axis, len(dims))] = UnknownDim
		}
	}
	c.Set(0, tensor(elem.elem, dims, ranked))
}

// standardStrings are operators of strings.
var standardStrings = []Operator{
	{Type: "StringConcat", MinInputs: 2, MaxInputs: 2, Infer: inferElements(nil)},
	{Type: "RegexFullMatch", MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) { c.shaped(0, onnx.Bool, 0) }},
	// Strings may be removed from the last dimension.
	{Type: "StringNormalizer", MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) {
		dims, ranked := c.shape(0)
		if n := len(dims); n > 0 {
			dims[n-1] = UnknownDim
		}
		c.Set(0, tensor(onnx.String, dims, ranked))
	}},
	{Type: "StringSplit", MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) {
		dims, ranked := c.shape(0)
		c.Set(1, tensor(onnx.Int64, dims, ranked))
		c.Set(0, tensor(onnx.String, append(dims, UnknownDim), ranked))
	}},
	{Type: "TfIdfVectorizer", MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) {
		size := int64(0)
		for _, i := range c.Op.Ints("ngram_indexes") {
			size = max(size, i+1)
		}
		dims, ranked := c.shape(0)
		if n := len(dims); n > 0 {
			dims[n-1] = Known(size)
		}
		c.Set(0, tensor(onnx.Float, dims, ranked))
	}},
}
