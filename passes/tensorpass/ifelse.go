package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
)

// switchRules are the rules of choices between whole tensors.
var switchRules = goRules{
	"local_useless_ifelse": {onType[tensor.IfElseOp](), nil, 1, uselessIfElse},
}

// uselessIfElse takes the branch that a constant names. Of other IfElses it leaves those results that are read
// and differ.
func uselessIfElse(c *rewrite.Context, n *apply) (result, error) {
	k, in := len(n.Outputs()), n.Inputs()
	then, otherwise := in[1:1+k], in[1+k:]
	if x := tensor.ConstantOf(in[0]); x != nil {
		if x.Int(0) != 0 {
			return rewrite.Replace(slices.Clone(then)...), nil
		}
		return rewrite.Replace(slices.Clone(otherwise)...), nil
	}
	out := make([]*variable, k)
	var places []int
	for i, v := range n.Outputs() {
		x, y := then[i], otherwise[i]
		switch {
		case x == y || x.IsConstant() && y.IsConstant() && x.Type() == y.Type() && fgraph.EqualData(x.Type(), x.Data(), y.Data()):
			out[i] = x
		case len(v.Clients()) > 0:
			places = append(places, i)
		}
	}
	if len(places) == k {
		return c.Miss("the condition is not known, and all results are read and differ"), nil
	}
	if len(places) > 0 {
		var lists [2][]*variable
		for _, i := range places {
			lists[0], lists[1] = append(lists[0], then[i]), append(lists[1], otherwise[i])
		}
		for i, v := range tensor.IfElse(in[0], lists[0], lists[1]) {
			out[places[i]] = v
		}
	}
	return rewrite.Replace(out...), nil
}
