package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// softmaxRules lists the rules of softmaxes, their logarithms and cross-entropies.
func softmaxRules() []Local {
	onSoftmaxGrad, onCrossentropy := onOp(tensor.SoftmaxGradOp{}), onOp(tensor.CrossentropyCategorical1HotOp{})
	return []Local{
		rule(Canonicalize|Stabilize|unsafe, "local_softmax_of_exp", on(array.TrueDiv), 4, softmaxOfExp,
			"the softmax is an op: exp(x)/sum(exp(x), axis=1, keepdims=True) → Softmax(x); "+
				"the quotient was NaN where exp(x) overflows, and only there; where x is infinite its whole row of the softmax is NaN"),
		rule(Stabilize|Specialize, "local_log_softmax", on(array.Log), 0, logSoftmax,
			"log(Softmax(x)) → LogSoftmax(x), which takes no logarithm of 0; so for a part: log(Softmax(x)[i]) → LogSoftmax(x)[i]"),
		rule(Stabilize|Specialize|unsafe, "local_logsoftmax_grad", onSoftmaxGrad, 0, logSoftmaxGrad,
			"the gradient of the logarithm of a softmax needs no division: SoftmaxGrad(dy/p, p) → LogSoftmaxGrad(dy, log p); "+
				"it was NaN where a probability is 0"),
		rule(Canonicalize|Stabilize|unsafe, "local_mul_part_quotient", on(array.Mul), 0, mulPartQuotient,
			"a factor cancels in what is put together from quotients by its parts: "+
				"p*set_subtensor(zeros[i], x/p[i]) → set_subtensor(zeros[i], x), also where p is zero, NaN or infinite"),
		rule(Stabilize|Specialize, "local_crossentropy_of_part_of_softmax", onCrossentropy, 0, crossentropyOfPart,
			"the cross-entropy of a part of a softmax takes no logarithm of 0: "+
				"CrossentropyCategorical1Hot(Softmax(X).T, y) → -LogSoftmax(X).T[arange(n), y]"),
		rule(Specialize, "local_softmax_with_bias", onOp(tensor.SoftmaxOp{}), 3, softmaxWithBias,
			"a softmax adds a row to a matrix itself: Softmax(X + b) → SoftmaxWithBias(X, b)"),
		rule(Stabilize|Specialize, "crossentropy_to_crossentropy_with_softmax_with_bias", onCrossentropy, 2, crossentropyWithBias,
			"the cross-entropy of a softmax takes no logarithm of 0: one op computes the softmax, the cross-entropy and the largest class"),
		rule(Specialize|unsafe, "local_softmax_grad_to_crossentropy_with_softmax_grad", onSoftmaxGrad, 2, softmaxGradToCrossentropyGrad,
			"the gradient of the cross-entropy of a softmax needs no division; it was NaN where a probability is 0"),
		rule(Specialize, "local_advanced_indexing_crossentropy_onehot", append(on(array.Log), onType[tensor.AdvancedSubtensorOp]()...), 0,
			advancedIndexingCrossentropy, "log(softmax(X))[arange(n), y] → -cross-entropy of the softmax"),
	}
}

// softmaxOfExp is called softmax_simplifier in Theano, and is part of local_mul_canonizer there.
func softmaxOfExp(c *rewrite.Context, n *apply) (result, error) {
	num, den := ownFactors(n.Inputs()[0]), ownFactors(n.Inputs()[1])
	for j, d := range den {
		x, axis := sumOfExp(d)
		if x == nil {
			continue
		}
		i := slices.IndexFunc(num, func(f *variable) bool { return argument(f, array.Exp) == x })
		if i < 0 {
			continue
		}
		num = slices.Clone(num)
		num[i] = softmaxOver(castTo(x, dtypeOf(num[i])), axis)
		return replace(c, n, mulCanonizer.join(num, without(den, j), n.Out()), n.Inputs()...)
	}
	return c.Miss("it does not divide an exponential by its sum along a dimension"), nil
}

// ownFactors is factorsOf where v has a single use, and else v itself. It looks no deeper: a long
// quotient would take long.
func ownFactors(v *variable) []*variable {
	if !usedOnce(v) {
		return []*variable{v}
	}
	return factorsOf(v)
}

// sumOfExp returns x and the dimension along which d is the sum of exp(x), if d keeps that
// dimension with size 1. Otherwise x is nil.
func sumOfExp(d *variable) (x *variable, axis int) {
	a, ds, ok := owner[tensor.DimShuffleOp](d)
	if !ok {
		return nil, 0
	}
	r, op, ok := owner[tensor.Reduce](a.Inputs()[0])
	if !ok || op.Op != array.Sum {
		return nil, 0
	}
	e := r.Inputs()[0]
	if x = argument(e, array.Exp); x == nil || !isFloat(e) {
		return nil, 0
	}
	ndim := typeOf(e).NDim()
	order := make([]int, ndim) // of keepdims
	kept := 0
	axis = -1
	for k := range order {
		if !op.Over(ndim).Has(k) {
			order[k] = kept
			kept++
			continue
		}
		if order[k] = array.NewAxis; axis >= 0 {
			return nil, 0
		}
		axis = k
	}
	if axis < 0 || !slices.Equal(ds.NewOrder(), order) {
		return nil, 0
	}
	return x, axis
}

// softmaxOver returns the softmax along a dimension.
func softmaxOver(x *variable, axis int) *variable {
	last := typeOf(x).NDim() - 1
	if axis == last {
		return tensor.Softmax(x)
	}
	order := make([]int, last+1)
	for d := range order {
		order[d] = d
	}
	order[axis], order[last] = last, axis
	return tensor.DimShuffle(tensor.Softmax(tensor.DimShuffle(x, order...)), order...)
}

func softmaxWithBias(c *rewrite.Context, n *apply) (result, error) {
	v := n.Inputs()[0]
	x, b := withBias(v)
	if x == nil || !usedOnce(v) {
		return c.Miss("the argument is not the sum of a matrix and a vector, with a single use"), nil
	}
	return replace(c, n, tensor.MustApply(tensor.SoftmaxWithBiasOp{}, x, b))
}

// withBias takes a sum of a matrix and a vector apart. x is nil if v is not such a sum.
func withBias(v *variable) (x, bias *variable) {
	a := elem(v, array.Add)
	if a == nil || len(a.Inputs()) != 2 || typeOf(v).NDim() != 2 {
		return nil, nil
	}
	for i, w := range a.Inputs() {
		b, x := stripPadding(w), a.Inputs()[1-i]
		if typeOf(b).NDim() == 1 && typeOf(b).Dim(0) != 1 && samePattern(x, v) && dtypeOf(x) == dtypeOf(b) {
			return x, b
		}
	}
	return nil, nil
}
