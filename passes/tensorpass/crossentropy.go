package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// crossentropyWithBias is crossentropy_to_crossentropy_with_softmax_with_bias.
func crossentropyWithBias() rewrite.Rule {
	return rewrite.Rule{
		Name: "crossentropy_to_crossentropy_with_softmax_with_bias", Depth: 2,
		Doc: "the cross-entropy of a softmax takes no logarithm of 0: the softmax, the cross-entropy and the largest class are computed at once",
		On:  []rewrite.Track{rewrite.TrackOp(tensor.CrossentropyCategorical1HotOp{})},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			sm := n.Inputs()[0]
			a, _, ok := owner[tensor.SoftmaxWithBiasOp](sm)
			if !ok {
				return c.Miss("the probabilities are no softmax with a bias"), nil
			}
			return fusedCrossentropy(n, sm, a.Inputs()[0], a.Inputs()[1])
		},
	}
}

// crossentropyWithSoftmax is crossentropy_to_crossentropy_with_softmax, which in Theano is a pass of its own.
func crossentropyWithSoftmax() rewrite.Rule {
	return rewrite.Rule{
		Name: "crossentropy_to_crossentropy_with_softmax", Depth: 2,
		Doc: "the same for a softmax without a bias, which becomes a bias of zeros",
		On:  []rewrite.Track{rewrite.TrackOp(tensor.CrossentropyCategorical1HotOp{})},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			sm := n.Inputs()[0]
			a, op, ok := owner[tensor.SoftmaxOp](sm)
			if !ok || op.Log {
				return c.Miss("the probabilities are no softmax"), nil
			}
			x := a.Inputs()[0]
			return fusedCrossentropy(n, sm, x, zeroBias(c, x))
		},
	}
}

// zeroBias returns a vector of zeros with an element per column.
func zeroBias(c *rewrite.Context, x *vari) *vari {
	return tensor.Zeros(typ(x).DType(), tensor.ShapesOf(c.Graph()).Dim(x, 1))
}

// fusedCrossentropy proposes the fused op in the place of the cross-entropy n and of the softmax; of n alone where the classes may have been found
// with that softmax, as it would depend on itself then.
func fusedCrossentropy(n *apply, sm, x, b *vari) (result, error) {
	a, err := tensor.Make(tensor.CrossentropySoftmaxArgmax1HotWithBiasOp{}, x, b, n.Inputs()[1])
	if err != nil {
		return none, err
	}
	out := a.Outputs()
	pairs := []fgraph.Replacement{{Old: n.Out(), New: out[0]}}
	if !mayDepend(n.Inputs()[1], sm) {
		pairs = append(pairs, fgraph.Replacement{Old: sm, New: out[1]})
	}
	return rewrite.Result{Pairs: pairs}, nil
}

// mostAncestors bounds what mayDepend looks at.
const mostAncestors = 1000

// mayDepend reports whether v is computed from w, or from so much that it takes long to tell.
func mayDepend(v, w *vari) bool {
	todo, seen := []*vari{v}, map[*vari]bool{v: true}
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

// softmaxWithBias is local_softmax_with_bias.
func softmaxWithBias() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_softmax_with_bias", Doc: "a softmax of a matrix and a row adds them by itself: Softmax(X + b) → SoftmaxWithBias(X, b)", Depth: 3,
		On: []rewrite.Track{rewrite.TrackOp(tensor.SoftmaxOp{})},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			v := n.Inputs()[0]
			x, b := withBias(v)
			if x == nil || !alone(v) {
				return c.Miss("the argument is no sum of a matrix and a vector that is used here only"), nil
			}
			return replace(c, n, tensor.MustApply(tensor.SoftmaxWithBiasOp{}, x, b))
		},
	}
}

// softmaxGradToCrossentropyGrad is local_softmax_grad_to_crossentropy_with_softmax_grad.
func softmaxGradToCrossentropyGrad() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_softmax_grad_to_crossentropy_with_softmax_grad", Depth: 2,
		Doc: "the gradient of the cross-entropy of a softmax divides by nothing; it was NaN where a probability is 0",
		On:  []rewrite.Track{rewrite.TrackOp(tensor.SoftmaxGradOp{})},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			a, _, ok := owner[tensor.CrossentropyCategorical1HotGradOp](n.Inputs()[0])
			sm := n.Inputs()[1]
			if !ok || a.Inputs()[1] != sm {
				return c.Miss("what comes in is not the gradient of a cross-entropy of this softmax"), nil
			}
			return replace(c, n, tensor.MustApply(tensor.CrossentropySoftmax1HotWithBiasDxOp{}, a.Inputs()[0], sm, a.Inputs()[2]))
		},
	}
}

// advancedIndexingCrossentropy is local_advanced_indexing_crossentropy_onehot.
func advancedIndexingCrossentropy() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_advanced_indexing_crossentropy_onehot",
		Doc:  "log(softmax(X))[arange(n), y] → -cross-entropy of the softmax", On: append(on(array.Log), rewrite.TrackType[tensor.AdvancedSubtensorOp]()),
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			pick := n
			log := false
			if op, _ := elemOf(n); op == array.Log {
				if pick = n.Inputs()[0].Owner(); pick == nil || !alone(n.Inputs()[0]) {
					return c.Miss("the argument is no selection"), nil
				}
				log = true
			}
			op, ok := pick.Op().(tensor.AdvancedSubtensorOp)
			if !ok || op.K != 2 || typ(pick.Inputs()[0]).NDim() != 2 {
				return c.Miss("it does not pick an element of each row"), nil
			}
			probs := pick.Inputs()[0]
			if l := elem(probs, array.Log); l != nil && !log && alone(probs) {
				probs, log = l.Inputs()[0], true
			}
			x, bias := softmaxArgument(probs, log)
			if x == nil || !alone(probs) {
				return c.Miss("it is not the logarithm of a softmax that is used here only"), nil
			}
			labels, s := pick.Inputs()[2], tensor.ShapesOf(c.Graph())
			r, _, ok := owner[tensor.ARangeOp](pick.Inputs()[1])
			if !ok || !is(r.Inputs()[0], 0) || !is(r.Inputs()[2], 1) || typ(labels).NDim() != 1 {
				return c.Miss("the first index is not rows in order"), nil
			}
			if stop, n := r.Inputs()[1], s.Dim(labels, 0); !sameSize(stop, s.Dim(x, 0)) {
				if !sameSize(stop, n) {
					return c.Miss("the first index is neither all rows nor one for each label"), nil
				}
				x = tensor.Subtensor(x, tensor.SliceOf(nil, n, 1)) // there may be rows without a label
			}
			if bias == nil {
				bias = zeroBias(c, x)
			}
			nll := tensor.MustApply(tensor.CrossentropySoftmaxArgmax1HotWithBiasOp{}, x, bias, labels)
			return replace(c, n, tensor.Neg(nll))
		},
	}
}

// softmaxArgument returns what v is the softmax of, or, unless the logarithm is taken of v, the logarithm of the softmax, and the vector that
// is added to it, if there is one.
func softmaxArgument(v *vari, log bool) (x, bias *vari) {
	if a, _, ok := owner[tensor.SoftmaxWithBiasOp](v); ok && log {
		return a.Inputs()[0], a.Inputs()[1]
	}
	a, op, ok := owner[tensor.SoftmaxOp](v)
	if !ok || op.Log == log {
		return nil, nil
	}
	v = a.Inputs()[0]
	if x, bias = withBias(v); x != nil && alone(v) {
		return x, bias
	}
	return v, nil
}

// withBias takes a sum of a matrix and a vector apart; x is nil if v is none.
func withBias(v *vari) (x, bias *vari) {
	a := elem(v, array.Add)
	if a == nil || len(a.Inputs()) != 2 || typ(v).NDim() != 2 {
		return nil, nil
	}
	for i, w := range a.Inputs() {
		b, x := stripPadding(w), a.Inputs()[1-i]
		if typ(b).NDim() == 1 && typ(b).Dim(0) != 1 && samePattern(x, v) && typ(x).DType() == typ(b).DType() {
			return x, b
		}
	}
	return nil, nil
}

// usmm is Theano's nameless rule sub(z, mul(alpha, SparseDot(x, y))) → Usmm(neg(alpha), x, y, z), local_usmm.
func usmm() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_usmm", Doc: "a sparse product is subtracted where it is computed: z - alpha*SparseDot(x, y) → Usmm(-alpha, x, y, z), if alpha is a scalar; where it is infinite zeros that are not stored stay 0, and were NaN", On: on(array.Sub), Depth: 3,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			z, v := n.Inputs()[0], n.Inputs()[1]
			factors := []*vari{v}
			if m := elem(v, array.Mul); m != nil && alone(v) {
				factors = slices.Clone(m.Inputs())
			}
			at := slices.IndexFunc(factors, func(f *vari) bool { _, _, ok := owner[tensor.SparseDotOp](f); return ok && alone(f) })
			if at < 0 || len(factors) > 2 || !samePattern(z, n.Out()) || typ(z).DType() != typ(n.Out()).DType() {
				return c.Miss("what is subtracted is no sparse product"), nil
			}
			a := factors[at].Owner()
			alpha := tensor.Constant(array.Full(typ(z).DType(), -1))
			if len(factors) == 2 {
				f := factors[1-at]
				if !isScalar(f) || typ(f).DType() != typ(z).DType() {
					return c.Miss("the factor is no scalar"), nil
				}
				if alpha = scalarOf(f); tensor.ConstantOf(alpha) != nil {
					alpha = tensor.Constant(array.Full(typ(z).DType(), -tensor.ConstantOf(alpha).Float(0)))
				} else {
					alpha = tensor.Neg(alpha)
				}
			}
			return replace(c, n, tensor.MustApply(tensor.UsmmOp{}, alpha, a.Inputs()[0], a.Inputs()[1], z))
		},
	}
}
