package tensorpass

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// logarithmRules lists the rules of logarithms, exponentials and sigmoids.
func logarithmRules() []Local {
	return []Local{
		rule(Stabilize|Specialize, "local_log1p", on(array.Log), 3, logOnePlus,
			"the logarithm keeps the digits of a small term: log(1 + x) → log1p(x), log(1 - x) → log1p(-x)"),
		rule(Stabilize|Specialize|overflows, "local_log_add", on(array.Log), 3, logAdd,
			"the logarithm of a sum of exponentials does not overflow: log(exp(x) + exp(y)) → logaddexp(x, y)"),
		rule(Stabilize|overflows, "local_log_sum_exp", on(array.Log), 3, logSumExp,
			"the logarithm of a sum along dimensions does not overflow: log(sum(exp(x))) → logsumexp(x)"),
		rule(Canonicalize|Stabilize|Specialize, "local_expm1", on(array.Add, array.Sub), 2, expMinusOne,
			"exp(x) - 1 → expm1(x), which keeps the digits of a small x"),
		rule(Stabilize|unsafe, "local_exp_over_1_plus_exp", on(array.TrueDiv), 4, expOver1PlusExp,
			"the logistic function is an op: exp(x)/(1 + exp(x)) → sigmoid(x), a/(1 + exp(x)) → a*sigmoid(-x); "+
				"the quotient was NaN where x is infinite"),
		rule(Stabilize|Specialize, "local_inv_1_plus_exp", on(array.Inv), 4, inv1PlusExp, "inv(1 + exp(x)) → sigmoid(-x)"),
		rule(Stabilize, "local_1msigmoid", on(array.Sub, array.Add), 3, oneMinusSigmoid,
			"1 - sigmoid(x) → sigmoid(-x), which keeps the digits of a large x"),
		rule(Stabilize|unsafe, "local_sigm_times_exp", on(array.Mul), 3, sigmTimesExp,
			"sigmoid(x)*exp(-x) → sigmoid(-x), which does not overflow; the product was NaN where x is infinite"),
		rule(Stabilize, "logsigm_to_softplus", on(array.Log), 0, logSigmoid,
			"log(sigmoid(x)) → -softplus(-x), which takes no logarithm of 0; so for a part: log(sigmoid(x)[i]) → (-softplus(-x))[i]"),
		rule(Stabilize, "log1msigm_to_softplus", on(array.Log), 3, logOneMinusSigmoid, "log(1 - sigmoid(x)) → -softplus(x)"),
		rule(Stabilize, "log1p_neg_sigmoid", on(array.Log1p), 3, log1pNegSigmoid, "log1p(-sigmoid(x)) → -softplus(x)"),
		rule(Stabilize|overflows, "log1pexp_to_softplus", on(array.Log1p), 2, log1pExp, "log1p(exp(x)) → softplus(x), which does not overflow"),
		rule(Stabilize, "local_log1mexp", on(array.Log1p), 0, log1mExp,
			"log1p(-exp(x)) is log(-expm1(x)) where x is so close to 0 that exp(x) has lost its digits"),
		rule(Specialize|unsafe, "local_mul_exp_to_exp_add", on(array.Mul, array.TrueDiv), 2, mulExp,
			"several exponentials become one: exp(x)*exp(y) → exp(x + y), exp(x)/exp(y) → exp(x - y); the product was NaN where one is "+
				"infinite and the other 0, and is NaN where both together are infinite and a third factor is 0"),
	}
}

func logOnePlus(c *rewrite.Context, n *apply) (result, error) {
	v := n.Inputs()[0]
	if rest := onePlus(v); len(rest) > 0 {
		return replace(c, n, tensor.Map(array.Log1p, sumOf(v, rest)), v.Owner().Inputs()...)
	}
	a := elem(v, array.Sub)
	switch {
	case a == nil || !isFloat(v) || !is(a.Inputs()[0], 1):
		return c.Miss("the argument is not a sum with 1"), nil
	case elem(a.Inputs()[1], array.Sigmoid) != nil:
		return c.Miss("log1msigm_to_softplus rewrites it"), nil
	}
	return replace(c, n, tensor.Map(array.Log1p, opposite(a.Inputs()[1])), a.Inputs()...)
}

func logAdd(c *rewrite.Context, n *apply) (result, error) {
	terms, neg, ok := addCanonizer.few(n.Inputs()[0], mostDistributed)
	if !ok || len(terms) < 2 || len(neg) > 0 {
		return c.Miss("the argument is not a sum, or has too many terms"), nil
	}
	var total *variable
	for _, t := range terms {
		switch x := argument(t, array.Exp); {
		case x == nil:
			return c.Miss("a term is not an exponential"), nil
		case total == nil:
			total = x
		default:
			total = tensor.Map(array.LogAddExp, total, x)
		}
	}
	return replace(c, n, total, terms...)
}

func logSumExp(c *rewrite.Context, n *apply) (result, error) {
	v := n.Inputs()[0]
	kept, ds, padded := owner[tensor.DimShuffleOp](v) // for keepdims
	if padded {
		v = kept.Inputs()[0]
	}
	a, op, ok := owner[tensor.Reduce](v)
	if !ok || op.Op != array.Sum {
		return c.Miss("the argument is not a sum along dimensions"), nil
	}
	x := argument(a.Inputs()[0], array.Exp)
	if x == nil {
		return c.Miss("it does not sum exponentials"), nil
	}
	op.Op = array.LogSumExp
	y := tensor.MustApply(op, x)
	if padded {
		y = tensor.DimShuffle(y, ds.NewOrder()...)
	}
	return replace(c, n, y)
}

func log1pExp(c *rewrite.Context, n *apply) (result, error) {
	if x := argument(n.Inputs()[0], array.Exp); x != nil {
		return replace(c, n, tensor.Softplus(x))
	}
	return c.Miss("the argument is not an exponential"), nil
}

// log1mExp is a part of PyTensor's local_log1p_plusminus_exp, with the limit of Mächler (Accurately
// Computing log(1 - exp(-|a|)), 2012).
func log1mExp(c *rewrite.Context, n *apply) (result, error) {
	e := negated(n.Inputs()[0])
	if e == nil || elem(e, array.Exp) == nil || dtypeOf(e) != dtypeOf(n.Out()) {
		return c.Miss("the argument is not a negated exponential"), nil
	}
	x := castTo(argument(e, array.Exp), dtypeOf(e))
	if guarded(n.Out(), x, -math.Ln2) {
		return c.Miss("a switch guards it already"), nil
	}
	return guard(n, x, -math.Ln2, tensor.Log(tensor.Neg(tensor.Map(array.Expm1, x))))
}

func expMinusOne(c *rewrite.Context, n *apply) (result, error) {
	op, _ := elemOf(n)
	in := n.Inputs()
	if len(in) != 2 {
		return c.Miss("there are more than two terms"), nil
	}
	for i, v := range in {
		x := argument(v, array.Exp)
		if x == nil || op == array.Sub && i == 1 {
			continue
		}
		if one, ok := uniform(in[1-i]); ok && (op == array.Sub && one == 1 || op == array.Add && one == -1) {
			return replace(c, n, tensor.Map(array.Expm1, x), in...)
		}
	}
	return c.Miss("it is not an exponential minus 1"), nil
}

// mulExp keeps exponentials with other uses, as they would be computed anyway, and those of a
// column and a row, which have fewer elements than their product.
func mulExp(c *rewrite.Context, n *apply) (result, error) {
	out := n.Out()
	exponents := func(factors []*variable) (exponents, rest []*variable) {
		for _, f := range factors {
			if x := argument(f, array.Exp); x != nil && usedOnce(f) && dtypeOf(f) == dtypeOf(out) {
				exponents = append(exponents, x)
			} else {
				rest = append(rest, f)
			}
		}
		return exponents, rest
	}
	var pos, neg, num, den []*variable
	if op, _ := elemOf(n); op == array.Mul {
		pos, num = exponents(n.Inputs())
	} else {
		pos, num = exponents(ownFactors(n.Inputs()[0]))
		neg, den = exponents(ownFactors(n.Inputs()[1]))
	}
	if len(pos)+len(neg) < 2 {
		return c.Miss("there are not two exponentials with a single use"), nil
	}
	sum := addCanonizer.join(pos, neg, out)
	if !slices.ContainsFunc(slices.Concat(pos, neg), func(x *variable) bool { return samePattern(x, sum) }) {
		return c.Miss("a column times a row has more elements to exponentiate than both"), nil
	}
	return replace(c, n, mulCanonizer.join(append(num, tensor.Exp(sum)), den, out))
}

// onePlus returns the other terms of v if v is a sum of floats whose numbers add up to 1, and else
// nil. Integers may wrap around.
func onePlus(v *variable) []*variable {
	a := elem(v, array.Add)
	if a == nil || !isFloat(v) {
		return nil
	}
	total := 0.0
	var rest []*variable
	for _, t := range a.Inputs() {
		if x, ok := uniform(t); ok {
			total += x
		} else {
			rest = append(rest, t)
		}
	}
	if total != 1 || len(rest) == len(a.Inputs()) {
		return nil
	}
	return rest
}

// opposite returns -x as a float. It needs no op where x is a negation or a multiple of a float.
func opposite(x *variable) *variable {
	if !isFloat(x) {
		return mapAs(dtypeOf(x).Float(), array.Neg, x)
	}
	if y := argument(x, array.Neg); y != nil {
		return y
	}
	if a := elem(x, array.Mul); a != nil && a.Inputs()[0].IsConstant() {
		if k, ok := uniform(a.Inputs()[0]); ok {
			rest := a.Inputs()[1:]
			if k == -1 && len(rest) == 1 {
				return rest[0]
			}
			if k == -1 {
				return computeAs(x, array.Mul, rest...)
			}
			return tensor.Mul(append([]*variable{number(-k, a.Inputs()[0])}, rest...)...)
		}
	}
	return tensor.Neg(x)
}
