package onnxtest

import (
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

var someNumbers = []onnx.DataType{onnx.Float, onnx.Double, onnx.Int32, onnx.Int64, onnx.Int8, onnx.Uint8}

// reducing returns a step of a reduction, whose axes became an input in a version.
func reducing(op string, elems []onnx.DataType, input int64) step {
	return step{op: op, since: 7, elems: elems, rank: 1, make: func(b *builder, op string, x *value) *value {
		axes := b.Perm(x.rank())[:b.IntN(x.rank()+1)]
		keep := b.chance(0.5)
		if slices.ContainsFunc(x.shape, func(s []int) bool { return slices.Contains(s, 0) }) {
			return nil
		}
		all := len(axes) == 0
		shape := b.each(func(k int) []int {
			s := []int{}
			for i, n := range x.shape[k] {
				switch {
				case !all && !slices.Contains(axes, i):
					s = append(s, n)
				case keep:
					s = append(s, 1)
				}
			}
			return s
		})
		in, attributes := []*value{x}, []*onnx.Attribute{truth("keepdims", keep)}
		// Before version 11 axes could not count from the end.
		if b.opset >= 11 && b.chance(0.3) {
			for i := range axes {
				axes[i] -= x.rank()
			}
		}
		switch {
		case all:
		case b.opset >= input:
			in = append(in, b.ints(b.same(axes...)))
		default:
			attributes = append(attributes, list("axes", axes...))
		}
		if op == "ReduceLogSum" || op == "ReduceProd" { // of what is positive, and not large
			a := b.node("Sigmoid", []*value{x}, x.elem, x.shape)
			in[0] = rough(a)
		}
		v := b.node(op, in, x.elem, shape, attributes...)
		if isFloat(x.elem) && op != "ReduceMax" && op != "ReduceMin" {
			rough(v)
		}
		return v
	}}
}

// arguments returns a step of ArgMax or ArgMin.
func arguments(op string) step {
	return step{op: op, since: 7, elems: someNumbers, rank: 1, exact: true, make: func(b *builder, op string, x *value) *value {
		axis, axisNumber := b.axis(x, b.opset >= 11)
		keep := b.chance(0.5)
		if slices.ContainsFunc(x.shape, func(s []int) bool { return slices.Contains(s, 0) }) {
			return nil
		}
		shape := b.each(func(k int) []int {
			s := slices.Clone(x.shape[k])
			if keep {
				s[axis] = 1
				return s
			}
			return slices.Delete(s, axis, axis+1)
		})
		attributes := []*onnx.Attribute{integer("axis", axisNumber), truth("keepdims", keep)}
		if b.opset >= 12 {
			attributes = append(attributes, truth("select_last_index", b.chance(0.3)))
		}
		return b.node(op, []*value{x}, onnx.Int64, shape, attributes...)
	}}
}

// along returns a step of an operator along an axis, whose result has the shape of its input.
func along(op string, since int64) step {
	return step{op: op, since: since, elems: floats, rank: 1, exact: op == "Hardmax", make: func(b *builder, op string, x *value) *value {
		_, axis := b.axis(x, b.opset >= 11)
		if slices.ContainsFunc(x.shape, func(s []int) bool { return slices.Contains(s, 0) }) {
			return nil
		}
		return rough(b.node(op, []*value{x}, x.elem, x.shape, integer("axis", axis)))
	}}
}

var reductionSteps = []step{
	reducing("ReduceSum", someNumbers, 13), reducing("ReduceMean", someNumbers, 18), reducing("ReduceMax", someNumbers, 18), reducing("ReduceMin", someNumbers, 18),
	reducing("ReduceProd", floats, 18), reducing("ReduceL1", someNumbers, 18), reducing("ReduceL2", floats, 18), reducing("ReduceSumSquare", someNumbers, 18),
	reducing("ReduceLogSum", floats, 18), reducing("ReduceLogSumExp", floats, 18),
	arguments("ArgMax"), arguments("ArgMin"),
	along("Softmax", 7), along("LogSoftmax", 7), along("Hardmax", 7), along("LpNormalization", 7),
	{op: "CumSum", since: 11, elems: []onnx.DataType{onnx.Float, onnx.Double, onnx.Int32, onnx.Int64}, rank: 1, make: func(b *builder, op string, x *value) *value {
		_, axis := b.axis(x, true)
		return rough(b.node(op, []*value{x, b.scalarInt(axis)}, x.elem, x.shape, truth("exclusive", b.chance(0.4)), truth("reverse", b.chance(0.4))))
	}},
	{op: "LayerNormalization", since: 17, elems: floats, rank: 1, make: func(b *builder, op string, x *value) *value {
		axis := x.rank() - 1
		size := x.shape[0][axis]
		if !b.agree(x.shape, b.same(x.shape[0]...), axis) || size < 2 {
			return nil
		}
		in := []*value{x, b.drawn(x.elem, size), nil}
		if b.chance(0.6) {
			in[2] = b.drawn(x.elem, size)
		}
		return rough(b.node(op, trimmed(in), x.elem, x.shape, integer("axis", -1), number("epsilon", 0.01)))
	}},
}
