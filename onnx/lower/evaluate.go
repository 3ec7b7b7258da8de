package lower

import (
	"context"
	"errors"
	"fmt"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// An Evaluator computes nodes of constants, for ir.Options.
type Evaluator struct{ Options Options }

// currentOpset is the version of ONNX's operators that ops of graphs have, see package ir.
const currentOpset = 22

// Evaluate returns the results of an op for inputs, nil for those that are left out.
func (e Evaluator) Evaluate(ctx context.Context, op *ir.Op, inputs []*ir.Value) ([]*ir.Value, error) {
	l := &lowering{ctx: ctx, model: new(onnx.Model), options: e.Options, depends: make(map[string]bool),
		opsets: map[string]int64{"": currentOpset}}
	if op.Legacy != 0 {
		l.opsets[""] = op.Legacy
	}
	in := make([]*value, len(inputs))
	for i, x := range inputs {
		if x == nil {
			continue
		}
		if x.Tensor == nil {
			return nil, fmt.Errorf("%w: a sparse tensor", ErrUnsupported)
		}
		a, err := ArrayOf(x.Tensor, x.Dir())
		if err != nil {
			return nil, err
		}
		in[i] = &value{tensor.Constant(a), x.Tensor.DataType}
	}
	n := &onnx.Node{Op: op.Type, Domain: op.Domain, Overload: op.Overload, Attributes: op.Attributes, Outputs: make([]string, op.Outputs)}
	out, err := l.node(n, in, make(map[string]*value))
	if err = errors.Join(append(l.faults, err)...); err != nil {
		return nil, err
	}
	vars := make([]*fgraph.Variable, len(out))
	for i, v := range out {
		if v == nil {
			return nil, fmt.Errorf("%w: output %d of %s", ErrUnsupported, i, op.Name())
		}
		vars[i] = v.v
	}
	values, err := compute(ctx, vars)
	if err != nil {
		return nil, err
	}
	results := make([]*ir.Value, len(out))
	for i, a := range values {
		t, err := TensorOf("", a, out[i].elem)
		if err != nil {
			return nil, err
		}
		results[i] = ir.NewValue(t, "")
	}
	return results, nil
}

// compute returns the values of variables that depend on constants alone.
func compute(ctx context.Context, vars []*fgraph.Variable) ([]*array.Array, error) {
	f, err := exec.NewFunction(ctx, nil, vars, exec.FunctionOptions{})
	if err != nil {
		return nil, err
	}
	return f.Call(ctx)
}

// Graph lowers a graph of nodes as Model does the model that it is written as.
func Graph(ctx context.Context, g *fgraph.FunctionGraph, o Options, inputs map[string]*array.Array) (*Function, error) {
	m, err := ir.Export(g)
	if err != nil {
		return nil, err
	}
	return Model(ctx, m, o, inputs)
}
