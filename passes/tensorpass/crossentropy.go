package tensorpass

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
)

func crossentropyWithBias(c *rewrite.Context, n *apply) (result, error) {
	probs := n.Inputs()[0]
	a, _, ok := owner[tensor.SoftmaxWithBiasOp](probs)
	if !ok {
		return c.Miss("the probabilities are not a softmax with a bias"), nil
	}
	return fusedCrossentropy(n, probs, a.Inputs()[0], a.Inputs()[1])
}

// crossentropyWithSoftmax is the rule of a pass of its own, as in Theano.
func crossentropyWithSoftmax(c *rewrite.Context, n *apply) (result, error) {
	probs := n.Inputs()[0]
	a, op, ok := owner[tensor.SoftmaxOp](probs)
	if !ok || op.Log {
		return c.Miss("the probabilities are not a softmax"), nil
	}
	x := a.Inputs()[0]
	return fusedCrossentropy(n, probs, x, zeroBias(c.Graph(), x))
}

// zeroBias returns a vector of zeros with an element for each column.
func zeroBias(g *fgraph.FunctionGraph, x *variable) *variable {
	return tensor.Zeros(dtypeOf(x), tensor.ShapesOf(g).Dim(x, 1))
}

// fusedCrossentropy replaces the cross-entropy n and the softmax with the fused op. It leaves the
// softmax alone where the classes may be computed from it, as they would depend on themselves.
func fusedCrossentropy(n *apply, probs, x, b *variable) (result, error) {
	a, err := tensor.Make(tensor.CrossentropySoftmaxArgmax1HotWithBiasOp{}, x, b, n.Inputs()[1])
	if err != nil {
		return none, err
	}
	out := a.Outputs()
	pairs := []fgraph.Replacement{{Old: n.Out(), New: out[0]}}
	if !mayDepend(n.Inputs()[1], probs) {
		pairs = append(pairs, fgraph.Replacement{Old: probs, New: out[1]})
	}
	return rewrite.Result{Pairs: pairs}, nil
}

// maxAncestors bounds the variables that mayDepend looks at.
const maxAncestors = 1000

// mayDepend reports whether v is computed from w, or from too many variables to tell.
func mayDepend(v, w *variable) bool {
	todo, seen := []*variable{v}, map[*variable]bool{v: true}
	for len(todo) > 0 && len(seen) <= maxAncestors {
		u := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if u == w {
			return true
		}
		if u.Owner() == nil {
			continue
		}
		for _, in := range u.Owner().Inputs() {
			if !seen[in] {
				seen[in] = true
				todo = append(todo, in)
			}
		}
	}
	return len(todo) > 0
}

// rangeFromZero returns k if v is arange(k), and else nil.
func rangeFromZero(v *variable) *variable {
	a, _, ok := owner[tensor.ARangeOp](v)
	if !ok || !is(a.Inputs()[0], 0) || !is(a.Inputs()[2], 1) {
		return nil
	}
	return a.Inputs()[1]
}
