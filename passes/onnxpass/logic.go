package onnxpass

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/rewrite"
)

func ifEqualBranches(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	if !ir.IsIf(a) {
		return c.Miss("it is no If"), nil
	}
	k := len(a.Outputs())
	var pairs []fgraph.Replacement
	for i, v := range a.Outputs() {
		x, y := a.Inputs()[1+i], a.Inputs()[1+k+i]
		if equal := x == y || ir.EqualConstants(x, y); equal && len(v.Clients()) > 0 {
			pairs = append(pairs, fgraph.Replacement{Old: v, New: x})
		}
	}
	if len(pairs) == 0 {
		return c.Miss("its branches give different values"), nil
	}
	return rewrite.Result{Pairs: pairs}, nil
}

func dropUnreadOutputs(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	op, ok := a.Op().(*ir.Op)
	n := len(a.Outputs())
	if !ok || n < 2 || !op.MayLeaveOut(n-1) {
		return c.Miss("it has no results that may be left out"), nil
	}
	for n > 1 && len(a.Outputs()[n-1].Clients()) == 0 {
		n--
	}
	if n == len(a.Outputs()) {
		return c.Miss("its last result is read"), nil
	}
	b, err := ir.SourceOf(c.Graph()).Operators.Apply(op.WithOutputs(n), a.Inputs()...)
	if err != nil {
		return c.Miss("%v", err), nil
	}
	outputs := make([]*fgraph.Variable, len(a.Outputs()))
	types := make([]fgraph.Type, n)
	for i, v := range b.Outputs() {
		t, ok := ir.TypeOf(v).Meet(ir.TypeOf(a.Outputs()[i]))
		if !ok {
			return c.Miss("result %d would be %v, and is %v", i, v.Type(), a.Outputs()[i].Type()), nil
		}
		types[i] = t
	}
	copy(outputs, retyped(b, b, types).Outputs())
	return rewrite.Replace(outputs...), nil
}
