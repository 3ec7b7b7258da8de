package ir

import "github.com/nnopt/nnopt/onnx"

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
