package export

import (
	"fmt"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/nnet3/component"
)

// steps makes nodes of a formula, and returns its values in order. operands are the values of its
// inputs, in order.
func (w *writer) steps(f *component.Formula, operands []value) ([]value, error) {
	values := make([]value, 0, len(f.Steps()))
	for _, s := range f.Steps() {
		if s.Op == component.OpInput {
			values, operands = append(values, operands[0]), operands[1:]
			continue
		}
		args := lists.Map(s.Args, func(a component.Term) value { return values[a-1] })
		v, err := w.step(s, args)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

func (w *writer) step(s component.Step, args []value) (value, error) {
	switch s.Op {
	case component.OpConstant:
		dims := append([]int{1}, s.Dims...)
		return value{name: w.floats(s.Values, dims...), dims: s.Dims}, nil
	case component.OpProduct:
		return w.multiply(args[0], s.W), nil
	case component.OpAdd, component.OpSubtract, component.OpMultiply, component.OpDivide, component.OpMaximum:
		return w.binary(s.Op, args[0], args[1]), nil
	case component.OpConcat:
		return w.concat(s.Axis, args), nil
	}
	v := args[0]
	switch s.Op {
	case component.OpSigmoid, component.OpTanh, component.OpReLU, component.OpLog, component.OpSqrt, component.OpReciprocal:
		v.name = w.node(string(s.Op), []string{v.name})
		return v, nil
	case component.OpSlice:
		return w.slice(v, s.Axis, int(s.Ints[0]), int(s.Ints[0]+s.Ints[1]), 1), nil
	case component.OpTake:
		return w.take(v, s.Axis, s.Ints), nil
	case component.OpReshape:
		return w.reshape(v, s.Dims), nil
	case component.OpTranspose:
		return w.transpose(v, s.Ints), nil
	case component.OpSum, component.OpMean, component.OpLargest:
		return w.reduce(s.Op, v, s.Axis), nil
	case component.OpSoftmax, component.OpLogSoftmax:
		if s.Axis == 0 {
			v = w.allRows(v)
		}
		v.name = w.node(string(s.Op), []string{v.name}, intAttribute("axis", s.Axis+1))
		return v, nil
	case component.OpConvolve:
		return w.convolve(v, s), nil
	case component.OpBatchMean:
		return w.batchMean(v), nil
	}
	return value{}, fmt.Errorf("export: a formula has the unknown operation %q", s.Op)
}
