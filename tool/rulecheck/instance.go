package rulecheck

import (
	"errors"
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

// An Instance is an expression that a rule replaces, with its replacement.
type Instance struct {
	Graph *fgraph.FunctionGraph
	// Constants are those that replace names.
	Constants []*fgraph.Variable
	// Choices made the expression; nil if it was not drawn.
	Choices []int
	// Left are the variables that the rule replaces, and Right what replaces each.
	Left, Right []*fgraph.Variable
}

// fire lets a rule replace the expression. It reports whether it did.
func (in *Instance) fire(c *rewrite.Context, r rewrite.NodeRewriter) (bool, error) {
	return in.fireAt(c, r, in.Graph.Outputs()[0].Owner())
}

// fireAt lets a rule replace an apply.
func (in *Instance) fireAt(c *rewrite.Context, r rewrite.NodeRewriter, root *fgraph.Apply) (fired bool, err error) {
	defer recovered(&err, errPanic)
	result, err := r.Transform(c, root)
	if err != nil || result.Empty() {
		return false, err
	}
	in.Left, in.Right = nil, nil
	for i, v := range result.Outputs {
		if v != nil && v != root.Outputs()[i] {
			in.Left, in.Right = append(in.Left, root.Outputs()[i]), append(in.Right, v)
		}
	}
	for _, p := range result.Pairs {
		in.Left, in.Right = append(in.Left, p.Old), append(in.Right, p.New)
	}
	return len(in.Left) > 0, nil
}

var errPanic = errors.New("panic")

// recovered is deferred to make an error of a panic, which wraps as.
func recovered(err *error, as error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", as, p)
	}
}
