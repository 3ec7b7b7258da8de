package onnxpass

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/rewrite"
)

// decompose replaces nodes by what they are made of.
func decompose(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	op := a.Op().(*ir.Op)
	if o := op.Operator(); o == nil || o.Body == nil {
		return c.Miss("it is made of no others"), nil
	}
	outputs, _, err := ir.SourceOf(c.Graph()).Operators.Expand(op, a.Inputs())
	if err != nil {
		return c.Miss("%v", err), nil
	}
	for i, v := range a.Outputs() {
		switch {
		case i >= len(outputs):
			outputs = append(outputs, nil)
		case outputs[i] != nil:
			outputs[i] = conform(v, outputs[i])
		}
		if outputs[i] == nil && len(v.Clients()) > 0 {
			return c.Miss("result %d has no meaning", i), nil
		}
	}
	return rewrite.Replace(outputs...), nil
}
