package tensor

import "github.com/nnopt/nnopt/fgraph"

// NewGraph is [fgraph.NewCopy]: a graph of copies of what the outputs are computed from, so that the
// expressions can be used again.
func NewGraph(inputs, outputs []*fgraph.Variable, features ...fgraph.Feature) (*fgraph.FunctionGraph, error) {
	return fgraph.NewCopy(inputs, outputs, features...)
}

// InputsOf is [fgraph.InputsOf].
func InputsOf(outputs ...*fgraph.Variable) []*fgraph.Variable { return fgraph.InputsOf(outputs...) }
