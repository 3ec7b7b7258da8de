package lower

import (
	"context"
	"errors"
	"fmt"

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
