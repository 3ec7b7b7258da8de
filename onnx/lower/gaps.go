package lower

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx/ir"
)

// A Gap is something in a model that can't be computed.
type Gap struct {
	// Where is a node, "node 3, If/then_branch/node 0, Optional", an initializer or an input.
	Where string `json:"where"`
	// Op is the operator of the node, with its domain unless that is ONNX's own.
	Op string `json:"op,omitempty"`
	// Unknown means that ONNX has no such operator, and the model no such function.
	Unknown bool   `json:"unknown,omitempty"`
	Reason  string `json:"reason"`
}

// String returns the gap as a line.
func (g Gap) String() string { return g.Where + ": " + g.Reason }

// maxGaps bounds the gaps that are listed.
const maxGaps = 1000

// Unsupported lists what can't be computed in the graph of a model, whatever the inputs are: operators, and
// types of elements. What depends on shapes and values, Graph finds. Weights are not read. others are
// operators that can be computed besides those of this package, see [Options].
func Unsupported(g *fgraph.FunctionGraph, others map[string]Operator) []Gap {
	var list []Gap
	add := func(g Gap) {
		if len(list) < maxGaps {
			list = append(list, g)
		}
	}
	source, l := ir.SourceOf(g), &lowering{options: Options{Operators: others}}
	for _, in := range g.Inputs() {
		if err := supported(ir.TypeOf(in)); err != nil {
			add(Gap{Where: "input " + in.Name(), Reason: err.Error()})
		}
	}
	for v := range g.Variables() {
		if x := ir.ValueOf(v); x != nil && x.Tensor != nil {
			if _, err := dtypeOf(x.Tensor.DataType); err != nil {
				add(Gap{Where: "initializer " + v.Name(), Reason: err.Error()})
			}
		}
	}
	for where, op := range source.Nodes {
		if !l.computes(op) {
			add(Gap{where, op.Name(), op.Operator() == nil, noOperator(op).Error()})
		}
	}
	return list
}

// noOperator returns the error about an operator that can't be computed.
func noOperator(op *ir.Op) error {
	if op.Operator() != nil { // ONNX has it
		return fmt.Errorf("%w %s", ErrOperator, op.Name())
	}
	return fmt.Errorf("%w %s is unknown", ErrOperator, op.Name())
}
