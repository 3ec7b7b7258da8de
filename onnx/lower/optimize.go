package lower

import (
	"context"
	"errors"
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// An Operator lowers the nodes of an operator that this package does not have. Inputs that a node leaves
// out are nil. The results have the types of ONNX that belong to the element types of the variables.
type Operator func(n *onnx.Node, inputs []*fgraph.Variable) ([]*fgraph.Variable, error)

// foreign lowers a node by an operator of the options.
func (l *lowering) foreign(lower Operator, n *onnx.Node, in []*value) ([]*value, error) {
	inputs := make([]*fgraph.Variable, len(in))
	for i, v := range in {
		if v != nil && v.v == nil {
			return nil, fmt.Errorf("%w: input %d is no tensor", ErrUnsupported, i)
		}
		if v != nil {
			inputs[i] = v.v
		}
	}
	var outputs []*fgraph.Variable
	var fault error
	_, err := tensor.Try(func() *fgraph.Variable {
		outputs, fault = lower(n, inputs)
		return nil
	})
	if err = errors.Join(err, fault); err != nil {
		return nil, err
	}
	values := make([]*value, len(outputs))
	for i, v := range outputs {
		values[i] = &value{v: v, elem: elementOf(tensor.TypeOf(v).DType())}
	}
	return values, nil
}

// optimized returns the model as the passes for its nodes make it, for inputs of these shapes. A model
// that can't be a graph of nodes stays as it is: what is wrong with it is found by its nodes.
func optimized(ctx context.Context, m *onnx.Model, o Options, inputs map[string]*array.Array) (*onnx.Model, error) {
	if o.Optimizer == nil || len(o.Optimizer.Passes(ir.Dialect)) == 0 {
		return m, nil
	}
	without := o
	without.Optimizer = nil
	opts := ir.Options{Operators: o.Types, Dir: o.Dir, Evaluator: Evaluator{without}, Shapes: make(map[string][]ir.Dim)}
	for name, a := range inputs {
		opts.Shapes[name] = nil
		for _, n := range a.Shape() {
			opts.Shapes[name] = append(opts.Shapes[name], ir.Known(int64(n)))
		}
	}
	g, err := ir.Import(m, opts)
	if err != nil {
		return m, ctx.Err()
	}
	if err := o.Optimizer.Rewrite(ctx, g, nil); err != nil {
		return nil, fmt.Errorf("optimizing nodes: %w", err)
	}
	return ir.Export(g)
}
