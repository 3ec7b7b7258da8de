package rulecheck

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

// An Instance is an expression that a rule replaces, with its replacement.
type Instance struct {
	Graph *fgraph.FunctionGraph
	// Constants are those that replace names.
	Constants []*fgraph.Variable
	// choices made the expression; nil if it was not drawn.
	choices []int
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

// Simplify looks for simpler instances: those of fewer choices, or of smaller ones, since the first choice is the simplest.
// again makes the instance of choices, or returns nil. keep says which instances will do; the next ones are simpler than
// the last of these. Choices get strictly smaller in their order, so this terminates.
func Simplify(in *Instance, again func(choices []int) *Instance, keep func(*Instance) bool) {
	next := func() *Instance {
		for k, choice := range in.choices {
			for _, to := range []int{0, 1, choice / 2} {
				if to >= choice {
					continue
				}
				choices := slices.Clone(in.choices)
				choices[k] = to
				simpler := again(choices)
				if simpler == nil || cmp.Or(len(simpler.choices)-len(in.choices), slices.Compare(simpler.choices, in.choices)) >= 0 {
					continue
				}
				if keep(simpler) {
					return simpler
				}
			}
		}
		return nil
	}
	for again != nil && in != nil {
		in = next()
	}
}

var errPanic = errors.New("panic")

// recovered is deferred to make an error of a panic, which wraps as.
func recovered(err *error, as error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", as, p)
	}
}
