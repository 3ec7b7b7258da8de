package onnxpass

import (
	"context"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/rewrite"
)

// rough is by how many bytes a result may be too large and is computed nevertheless.
const rough = 1 << 10

func fold(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	op := a.Op().(*ir.Op)
	if len(a.Inputs()) == 0 && op.Operator() == nil || op.Unmergeable() || op.Captures() > 0 {
		return c.Miss("%s may be something else each time", op.Name()), nil
	}
	// As floats the weights would take four times as much, and the product would not be one of integers.
	if op.Type == "DequantizeLinear" && slices.ContainsFunc(a.Out().Clients(), multiplies) {
		return c.Miss("a product may multiply the integers"), nil
	}
	inputs := make([]*ir.Value, len(a.Inputs()))
	for i, v := range a.Inputs() {
		if ir.IsOmitted(v) {
			continue
		}
		if inputs[i] = ir.ValueOf(v); inputs[i] == nil {
			return c.Miss("its input %d is no constant", i), nil
		}
	}
	source := ir.SourceOf(c.Graph())
	// What is known of the size is asked first, because a result could be larger than memory. The graph counts
	// exactly, see ir.Source. Inputs that others read stay, so the result comes on top of them.
	room := source.Room() + ir.OwnBytes(a)
	out := int64(0)
	for _, v := range a.Outputs() {
		out += bytesOf(v)
	}
	if out > room+rough {
		return c.Miss("its result of %d bytes would make the constants larger than is allowed, by %d", out, out-room), nil
	}
	if op.Type == "Range" && out == 0 {
		return c.Miss("how many numbers it has is not known"), nil // three numbers may make any number of them
	}
	if source.Evaluator == nil {
		return c.Miss("there is nothing that computes nodes"), nil
	}
	results, err := source.Evaluator.Evaluate(c.Context(), op, inputs)
	if err != nil {
		if c.Context().Err() != nil {
			return rewrite.Result{}, context.Cause(c.Context())
		}
		return c.Miss("it can't be computed: %v", err), nil
	}
	folded := lists.Map(results, func(x *ir.Value) *fgraph.Variable { return ir.Constant(x, "") })
	for i, v := range a.Outputs() {
		if !v.Type().Accepts(folded[i].Type()) {
			return c.Miss("output %d would be %v, and is %v", i, folded[i].Type(), v.Type()), nil
		}
	}
	return rewrite.Replace(folded...), nil
}

// bytesOf returns the size of a value, 0 if it is not known.
func bytesOf(v *fgraph.Variable) int64 {
	t := ir.TypeOf(v)
	dims, ok := t.Numbers()
	if !ok {
		return 0
	}
	n := int64(t.Elem().Bits())
	// A file may declare any sizes, whose product overflows.
	for _, d := range dims {
		if d > 0 && n > 1<<50/d {
			return 1 << 50
		}
		n *= d
	}
	return n / 8
}

// shapeFolding makes constants of integers that types know.
func shapeFolding(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	if len(a.Outputs()) != 1 {
		return c.Miss("it has %d outputs", len(a.Outputs())), nil
	}
	v := a.Out()
	list, ok := ir.NumbersOf(v)
	dims, ranked := ir.TypeOf(v).Numbers()
	if !ok || !ranked {
		return c.Miss("%v does not say all elements", v.Type()), nil
	}
	x, err := ir.Integers(list, ir.TypeOf(v).Elem(), dims...)
	if err != nil {
		return c.Miss("%v", err), nil
	}
	return rewrite.Replace(x), nil
}

// ifConstant takes the branch of an If whose condition is known.
func ifConstant(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	if !ir.IsIf(a) {
		return c.Miss("it is no If"), nil
	}
	k := len(a.Outputs())
	list, ok := ir.NumbersOf(a.Inputs()[0])
	if !ok || len(list) != 1 {
		return c.Miss("its condition is not known"), nil
	}
	values := a.Inputs()[1 : 1+k]
	if list[0] == 0 {
		values = a.Inputs()[1+k:]
	}
	return rewrite.Replace(slices.Clone(values)...), nil
}

// multiplies reports whether a client is a product or a convolution.
func multiplies(c fgraph.Client) bool {
	if c.Apply == nil {
		return false
	}
	op, ok := c.Apply.Op().(*ir.Op)
	return ok && op.Operator() != nil && slices.Contains([]string{"Conv", "Gemm", "MatMul"}, op.Type)
}

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
