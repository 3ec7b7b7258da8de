package tensorpass

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
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
	return fusedCrossentropy(n, probs, x, zeroBias(c, x))
}

// zeroBias returns a vector of zeros with an element per column.
func zeroBias(c *rewrite.Context, x *variable) *variable {
	return tensor.Zeros(dtypeOf(x), tensor.ShapesOf(c.Graph()).Dim(x, 1))
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

// mostAncestors bounds the variables that mayDepend looks at.
const mostAncestors = 1000

// mayDepend reports whether v is computed from w, or from too many variables to tell.
func mayDepend(v, w *variable) bool {
	todo, seen := []*variable{v}, map[*variable]bool{v: true}
	for len(todo) > 0 && len(seen) <= mostAncestors {
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

func advancedIndexingCrossentropy(c *rewrite.Context, n *apply) (result, error) {
	pick, log := n, false
	if op, _ := elemOf(n); op == array.Log {
		v := n.Inputs()[0]
		if pick, log = v.Owner(), true; pick == nil || !usedOnce(v) {
			return c.Miss("the argument is not a selection with a single use"), nil
		}
	}
	op, ok := pick.Op().(tensor.AdvancedSubtensorOp)
	if !ok || op.K != 2 || typeOf(pick.Inputs()[0]).NDim() != 2 {
		return c.Miss("it does not pick an element of each row"), nil
	}
	probs, rows, labels := pick.Inputs()[0], pick.Inputs()[1], pick.Inputs()[2]
	if p := argument(probs, array.Log); p != nil && !log && usedOnce(probs) {
		probs, log = p, true
	}
	x, bias := softmaxArgument(probs, log)
	if x == nil || !usedOnce(probs) {
		return c.Miss("it is not the logarithm of a softmax with a single use"), nil
	}
	s := tensor.ShapesOf(c.Graph())
	stop := rangeFromZero(rows)
	all := stop != nil && sameSize(stop, s.Dim(x, 0))
	if stop == nil || typeOf(labels).NDim() != 1 || !all && !sameSize(stop, s.Dim(labels, 0)) {
		return c.Miss("the first index is neither all rows in order nor one for each label"), nil
	}
	if !all {
		x = tensor.Subtensor(x, tensor.SliceOf(nil, s.Dim(labels, 0), 1)) // there may be rows without a label
	}
	if bias == nil {
		bias = zeroBias(c, x)
	}
	return replace(c, n, tensor.Neg(tensor.MustApply(tensor.CrossentropySoftmaxArgmax1HotWithBiasOp{}, x, bias, labels)))
}

// rangeFromZero returns k if v is arange(k), and else nil.
func rangeFromZero(v *variable) *variable {
	a, _, ok := owner[tensor.ARangeOp](v)
	if !ok || !is(a.Inputs()[0], 0) || !is(a.Inputs()[2], 1) {
		return nil
	}
	return a.Inputs()[1]
}

// softmaxArgument returns x and the vector that is added to it, if any, where v is the softmax of
// x. If the logarithm of v is not taken, v has to be the logarithm of the softmax.
func softmaxArgument(v *variable, log bool) (x, bias *variable) {
	if a, _, ok := owner[tensor.SoftmaxWithBiasOp](v); ok && log {
		return a.Inputs()[0], a.Inputs()[1]
	}
	a, op, ok := owner[tensor.SoftmaxOp](v)
	if !ok || op.Log == log {
		return nil, nil
	}
	v = a.Inputs()[0]
	sum := elem(v, array.Add)
	if sum == nil || len(sum.Inputs()) != 2 || typeOf(v).NDim() != 2 || !usedOnce(v) {
		return v, nil
	}
	for i, w := range sum.Inputs() {
		b, x := stripPadding(w), sum.Inputs()[1-i]
		if typeOf(b).NDim() == 1 && typeOf(b).Dim(0) != 1 && samePattern(x, v) && dtypeOf(x) == dtypeOf(b) {
			return x, b
		}
	}
	return v, nil
}
