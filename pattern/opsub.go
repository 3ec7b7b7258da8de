package pattern

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

// OpSub returns the rule that applies the op to instead of from, to the same
// inputs and with outputs of the same types. Theano calls it OpSub.
func OpSub(from, to fgraph.Op, list ...Option) rewrite.Rule {
	r := opRule(from, fmt.Sprintf("%s -> %s", from, to), list, func(c *rewrite.Context, n *fgraph.Apply) (rewrite.Result, error) {
		outs := n.Outputs()
		types := make([]fgraph.Type, len(outs))
		for i, v := range outs {
			types[i] = v.Type()
		}
		return rewrite.Result{Outputs: fgraph.NewApply(to, n.Inputs(), types...).Outputs()}, nil
	})
	r.Destroys = destroys(to)
	return r
}

// OpRemove returns the rule that puts the inputs of the op in the place of its
// outputs, the first of the first and so on. It does not fire where the op has
// fewer inputs than outputs, or an input of another type. Theano calls it
// OpRemove.
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

// opRule returns a rule for the applies of one op, of whose options only the name
// and the documentation matter.
func opRule(op fgraph.Op, text string, list []Option, fn func(*rewrite.Context, *fgraph.Apply) (rewrite.Result, error)) rewrite.Rule {
	o := newOptions(list)
	r := rewrite.Rule{Name: o.name, Doc: o.doc, On: []rewrite.Track{rewrite.TrackOp(op)}, Depth: 1, Fn: fn}
	if r.Name == "" {
		r.Name = text
	}
	if r.Doc == "" {
		r.Doc = text
	}
	return r
}
