package lower

import (
	"context"
	"errors"
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/tensor"
)

// An Evaluator computes nodes of constants, for ir.Options.
type Evaluator struct{ Options Options }

// currentOpset is the version of ONNX's operators that ops of graphs have, see package ir.
const currentOpset = 22

// Evaluate returns the results of an op for inputs, nil for those that are left out.
func (e Evaluator) Evaluate(ctx context.Context, op *ir.Op, inputs []*ir.Value) ([]*ir.Value, error) {
	if x, ok := e.reshaped(op, inputs); ok {
		return []*ir.Value{x}, nil
	}
	c := &call{lowering: newLowering(ctx, e.Options), op: op}
	in := make([]*value, len(inputs))
	for i, x := range inputs {
		if x == nil {
			continue
		}
		if x.Tensor == nil {
			return nil, fmt.Errorf("%w: a sparse tensor", ErrUnsupported)
		}
		a, err := c.tensorOf(x.Tensor, x.Dir())
		if err != nil {
			return nil, err
		}
		in[i] = &value{v: tensor.Constant(a), elem: x.Tensor.DataType}
	}
	c.take(in)
	out, err := c.node()
	if err = errors.Join(append(c.faults, err)...); err != nil {
		return nil, err
	}
	// A node may leave out the last results of its operator.
	out = out[:min(len(out), op.Outputs)]
	results := make([]*ir.Value, len(out))
	for i, v := range out {
		if v == nil || v.v == nil {
			return nil, fmt.Errorf("%w: output %d of %s", ErrUnsupported, i, op.Name())
		}
		a, err := c.values.Value(v.v)
		if err == nil && v.elem == onnx.String {
			a, err = c.strings.Texts(a)
		}
		if err != nil {
			return nil, err
		}
		t, err := TensorOf("", a, v.elem)
		if err != nil {
			return nil, err
		}
		results[i] = ir.NewValue(t, "")
	}
	return results, nil
}

// reshaped returns the result of an op that moves no element, with the bytes of its input: there may be
// many, and rules that move factors into weights reshape them twice.
func (e Evaluator) reshaped(op *ir.Op, inputs []*ir.Value) (*ir.Value, bool) {
	switch op.Type {
	case "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity":
	default:
		return nil, false
	}
	if op.Domain != "" || op.Legacy != 0 || len(inputs) == 0 || inputs[0] == nil || inputs[0].Tensor == nil || inputs[0].Tensor.DataType.Bits() == 0 {
		return nil, false
	}
	types := e.Options.Types
	if types == nil {
		types = ir.Standard()
	}
	vars := make([]*fgraph.Variable, len(inputs))
	for i, x := range inputs {
		if x != nil {
			vars[i] = ir.Constant(x, "")
		}
	}
	a, err := types.Apply(op, vars...)
	if err != nil || len(a.Outputs()) != 1 {
		return nil, false
	}
	dims, ok := ir.TypeOf(a.Out()).Numbers()
	data, err := inputs[0].Bytes()
	if !ok || err != nil {
		return nil, false
	}
	t, err := onnx.NewTensor("", inputs[0].Tensor.DataType, dims, data)
	return ir.NewValue(t, ""), err == nil
}
