package rulecheck

import (
	"context"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

// An instance is an expression that a rule replaces, with its replacement.
type instance struct {
	graph   *fgraph.FunctionGraph
	consts  []*variable // those that replace names
	choices []int
	circuit *circuit
	left    []*variable
	right   []*variable
}

// fire lets a rule replace the expression. It reports whether it did.
func (in *instance) fire(c *rewrite.Context, r rewrite.NodeRewriter) (bool, error) {
	return in.fireAt(c, r, in.graph.Outputs()[0].Owner())
}

// fireAt lets a rule replace an apply.
func (in *instance) fireAt(c *rewrite.Context, r rewrite.NodeRewriter, root *fgraph.Apply) (fired bool, err error) {
	defer recovered(&err, errPanic)
	result, err := r.Transform(c, root)
	if err != nil || result.Empty() {
		return false, err
	}
	in.left, in.right = nil, nil
	for i, v := range result.Outputs {
		if v != nil && v != root.Outputs()[i] {
			in.left, in.right = append(in.left, root.Outputs()[i]), append(in.right, v)
		}
	}
	for _, p := range result.Pairs {
		in.left, in.right = append(in.left, p.Old), append(in.right, p.New)
	}
	return len(in.left) > 0, nil
}

// compile prepares both sides.
func (in *instance) compile(ctx context.Context) (err error) {
	in.circuit, err = newCircuit(ctx, in.graph.Inputs(), in.left, in.right)
	return err
}
