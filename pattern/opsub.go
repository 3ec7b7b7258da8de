package pattern

import (
	"cmp"
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/rewrite"
)

// OpSub returns the rule that replaces the op from with to, keeping the inputs and the types of
// the outputs. It is Theano's OpSub.
func OpSub(from, to fgraph.Op, list ...Option) rewrite.Rule {
	r := opRule(from, fmt.Sprintf("%s -> %s", from, to), list, func(c *rewrite.Context, n *fgraph.Apply) (rewrite.Result, error) {
		outs := n.Outputs()
		types := lists.Map(outs, func(v *fgraph.Variable) fgraph.Type { return v.Type() })
		return rewrite.Result{Outputs: fgraph.NewApply(to, n.Inputs(), types...).Outputs()}, nil
	})
	r.Destroys = fgraph.Destroys(to)
	return r
}

// OpRemove returns the rule that replaces each output of the op with the input of the same
// index. It does not fire if there are fewer inputs than outputs, or an input has an
// incompatible type. It is Theano's OpRemove.
func OpRemove(op fgraph.Op, list ...Option) rewrite.Rule {
	return opRule(op, fmt.Sprintf("remove %s", op), list, func(c *rewrite.Context, n *fgraph.Apply) (rewrite.Result, error) {
		ins, outs := n.Inputs(), n.Outputs()
		if len(ins) < len(outs) {
			return c.Miss("%d inputs for %d outputs", len(ins), len(outs)), nil
		}
		for i, v := range outs {
			if !v.Type().Accepts(ins[i].Type()) {
				return c.Miss("input %d has type %v, not %v", i, ins[i].Type(), v.Type()), nil
			}
		}
		return rewrite.Result{Outputs: ins[:len(outs):len(outs)]}, nil
	})
}

// opRule returns a rule for the applies of one op. Of the options, only the name and the
// documentation matter; both default to text.
func opRule(op fgraph.Op, text string, list []Option, fn func(*rewrite.Context, *fgraph.Apply) (rewrite.Result, error)) rewrite.Rule {
	o := newOptions(nil, list)
	return rewrite.Rule{Name: cmp.Or(o.name, text), Doc: cmp.Or(o.doc, text), On: []rewrite.Track{rewrite.TrackOp(op)}, Depth: 1, Fn: fn}
}
