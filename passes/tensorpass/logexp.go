package tensorpass

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// opposite returns -x as a float, without an op where x is itself a negation or a multiple of a float.
func opposite(x *vari) *vari {
	if !isFloat(x) {
		return mapAs(typ(x).DType().Float(), array.Neg, x)
	}
	if a := elem(x, array.Neg); a != nil {
		return a.Inputs()[0]
	}
	if a := elem(x, array.Mul); a != nil {
		if k, ok := uniform(a.Inputs()[0]); ok && tensor.ConstantOf(a.Inputs()[0]) != nil {
			rest := a.Inputs()[1:]
			if k == -1 && len(rest) == 1 {
				return rest[0]
			}
			if k == -1 {
				return computeAs(x, array.Mul, rest...)
			}
			return tensor.Mul(append([]*vari{number(-k, a.Inputs()[0])}, rest...)...)
		}
	}
	return tensor.Neg(x)
}

// onePlus returns the other terms if v is a sum of floats: numbers that make 1, and other terms; and nil if not. Integers may wrap around.
func onePlus(v *vari) []*vari {
	a := elem(v, array.Add)
	if a == nil || !isFloat(v) {
		return nil
	}
	total := 0.0
	var rest []*vari
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

// sumOf returns the sum of terms of out.
func sumOf(out *vari, terms []*vari) *vari {
	if len(terms) == 1 {
		return terms[0]
	}
	return computeAs(out, array.Add, terms...)
}

// logOnePlus is local_log1p.
func logOnePlus() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_log1p", Doc: "the logarithm keeps the digits of a small summand: log(1 + x) → log1p(x), log(1 - x) → log1p(-x)", On: on(array.Log), Depth: 3,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			v := n.Inputs()[0]
			if rest := onePlus(v); len(rest) > 0 {
				return replace(c, n, tensor.Map(array.Log1p, sumOf(v, rest)), v.Owner().Inputs()...)
			}
			if a := elem(v, array.Sub); a != nil && isFloat(v) && is(a.Inputs()[0], 1) {
				if elem(a.Inputs()[1], array.Sigmoid) != nil {
					return c.Miss("it is up to log1msigm_to_softplus"), nil
				}
				return replace(c, n, tensor.Map(array.Log1p, opposite(a.Inputs()[1])), a.Inputs()...)
			}
			return c.Miss("the argument is no sum with 1"), nil
		},
	}
}

// logAdd is local_log_add.
func logAdd() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_log_add", Doc: "the logarithm of a sum of exponentials does not overflow: log(exp(x) + exp(y)) → logaddexp(x, y)", On: on(array.Log), Depth: 3,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			terms, neg, ok := addCanonizer.few(n.Inputs()[0], mostDistributed)
			if !ok || len(terms) < 2 || len(neg) > 0 {
				return c.Miss("the argument is no sum, or one of too many terms"), nil
			}
			var total *vari
			for _, t := range terms {
				e := elem(t, array.Exp)
				if e == nil {
					return c.Miss("a term is no exponential"), nil
				}
				if x := e.Inputs()[0]; total == nil {
					total = x
				} else {
					total = tensor.Map(array.LogAddExp, total, x)
				}
			}
			return replace(c, n, total, terms...)
		},
	}
}

// logSumExp is local_log_sum_exp.
func logSumExp() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_log_sum_exp", Doc: "the same along dimensions: log(sum(exp(x))) → logsumexp(x)", On: on(array.Log), Depth: 3,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			v := n.Inputs()[0]
			kept, ds, padded := owner[tensor.DimShuffleOp](v) // of keepdims
			if padded {
				v = kept.Inputs()[0]
			}
			a, op, ok := owner[tensor.Reduce](v)
			if !ok || op.Op != array.Sum {
				return c.Miss("the argument is no sum along dimensions"), nil
			}
			e := elem(a.Inputs()[0], array.Exp)
			if e == nil {
				return c.Miss("what is summed up is no exponential"), nil
			}
			op.Op = array.LogSumExp
			y := tensor.MustApply(op, e.Inputs()[0])
			if padded {
				y = tensor.DimShuffle(y, ds.NewOrder()...)
			}
			return replace(c, n, y)
		},
	}
}

// expMinusOne is local_expm1.
func expMinusOne() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_expm1", Doc: "exp(x) - 1 → expm1(x), which keeps the digits of a small x", On: on(array.Add, array.Sub), Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, _ := elemOf(n)
			in := n.Inputs()
			if len(in) != 2 {
				return c.Miss("there are more than two terms"), nil
			}
			for i, v := range in {
				e := elem(v, array.Exp)
				if e == nil || op == array.Sub && i == 1 {
					continue
				}
				if one, ok := uniform(in[1-i]); ok && (op == array.Sub && one == 1 || op == array.Add && one == -1) {
					return replace(c, n, tensor.Map(array.Expm1, e.Inputs()[0]), in...)
				}
			}
			return c.Miss("it is not an exponential less 1"), nil
		},
	}
}

// expOver1PlusExp is local_exp_over_1_plus_exp.
func expOver1PlusExp() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_exp_over_1_plus_exp", Depth: 4,
		Doc: "the logistic function is an op: exp(x)/(1 + exp(x)) → sigmoid(x), a/(1 + exp(x)) → a*sigmoid(-x); the quotient was NaN where x is infinite",
		On:  on(array.TrueDiv),
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			num, den := n.Inputs()[0], n.Inputs()[1]
			e, rest := onePlusExp(den)
			if e == nil {
				return c.Miss("the denominator has no factor 1 + exp(x)"), nil
			}
			x := e.Inputs()[0]
			factors := []*vari{num}
			if a := elem(num, array.Mul); a != nil && isFloat(num) {
				factors = slices.Clone(a.Inputs())
			}
			sigmoid := (*vari)(nil)
			for i, f := range factors {
				if f == e.Out() || elem(f, array.Exp) != nil && f.Owner().Inputs()[0] == x {
					sigmoid, factors = tensor.Sigmoid(x), slices.Delete(factors, i, i+1)
					break
				}
			}
			if sigmoid == nil {
				sigmoid = tensor.Sigmoid(opposite(x))
				factors = slices.DeleteFunc(factors, func(f *vari) bool { return is(f, 1) && isScalar(f) })
			}
			y := sigmoid
			if factors = append(factors, sigmoid); len(factors) > 1 {
				y = tensor.Mul(factors...)
			}
			if len(rest) > 0 {
				if y = tensor.TrueDiv(y, rest[0]); len(rest) > 1 {
					y = tensor.TrueDiv(y.Owner().Inputs()[0], tensor.Mul(rest...))
				}
			}
			return replace(c, n, y, num, den)
		},
	}
}

// onePlusExp finds a factor 1 + exp(x) of a product, and returns the exponential and the other factors.
func onePlusExp(v *vari) (e *apply, rest []*vari) {
	factors := []*vari{v}
	if a := elem(v, array.Mul); a != nil {
		factors = a.Inputs()
	}
	for _, f := range factors {
		if terms := onePlus(f); e == nil && len(terms) == 1 && elem(terms[0], array.Exp) != nil {
			e = terms[0].Owner()
		} else {
			rest = append(rest, f)
		}
	}
	return e, rest
}

// inv1PlusExp is local_inv_1_plus_exp.
func inv1PlusExp() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_inv_1_plus_exp", Doc: "inv(1 + exp(x)) → sigmoid(-x)", On: on(array.Inv), Depth: 4,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			e, rest := onePlusExp(n.Inputs()[0])
			if e == nil || len(rest) > 0 {
				return c.Miss("the argument is not 1 + exp(x)"), nil
			}
			return replace(c, n, tensor.Sigmoid(opposite(e.Inputs()[0])), n.Inputs()...)
		},
	}
}

// oneMinusSigmoid is local_1msigmoid.
func oneMinusSigmoid() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_1msigmoid", Doc: "1 - sigmoid(x) → sigmoid(-x), which keeps the digits of a large x", On: on(array.Sub, array.Add), Depth: 3,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			in := n.Inputs()
			one, s := in[0], in[len(in)-1]
			if op, _ := elemOf(n); op == array.Add { // as canonicalize writes it: 1 + -1*sigmoid(x)
				if s.Owner() == nil || len(in) != 2 || !alone(s) {
					return c.Miss("it is no difference"), nil
				}
				if s = negated(s.Owner()); s == nil {
					return c.Miss("it is no difference"), nil
				}
			}
			a := elem(s, array.Sigmoid)
			if a == nil || !alone(a.Out()) || !is(one, 1) {
				return c.Miss("it is not 1 less a sigmoid that is used here only"), nil
			}
			if cl := n.Out().Clients(); len(cl) == 1 && cl[0].Apply != nil && elem(cl[0].Apply.Out(), array.Log) != nil {
				return c.Miss("it is up to log1msigm_to_softplus"), nil
			}
			return replace(c, n, tensor.Sigmoid(opposite(a.Inputs()[0])), n.Inputs()...)
		},
	}
}

// sigmTimesExp is local_sigm_times_exp.
func sigmTimesExp() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_sigm_times_exp", Doc: "sigmoid(x)*exp(-x) → sigmoid(-x), which does not overflow; the product was NaN where x is infinite", On: on(array.Mul), Depth: 3,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			if cl := n.Out().Clients(); len(cl) == 1 && cl[0].Apply != nil && elem(cl[0].Apply.Out(), array.Mul) != nil && typ(cl[0].Apply.Out()).DType() == typ(n.Out()).DType() {
				return c.Miss("it is a factor of a product, which has all of its factors"), nil
			}
			in, _ := products.terms(n.Out())
			exps := make(map[signed][]*vari) // by the argument
			for _, v := range in {
				if e := elem(v, array.Exp); e != nil {
					key := signOf(e.Inputs()[0])
					exps[key] = append(exps[key], v)
				}
			}
			if len(exps) == 0 {
				return c.Miss("no factor is an exponential"), nil
			}
			gone := make(map[*vari]int) // factors that are part of a pair, and how often
			var pairs, rest []*vari
			for _, v := range in {
				s := elem(v, array.Sigmoid)
				if s == nil {
					continue
				}
				key := signOf(s.Inputs()[0])
				key.minus = !key.minus
				if list := exps[key]; len(list) > 0 {
					e := list[0]
					exps[key] = list[1:]
					pairs = append(pairs, tensor.Sigmoid(e.Owner().Inputs()[0]))
					gone[v]++
					gone[e]++
				}
			}
			if len(pairs) == 0 {
				return c.Miss("it has no factors sigmoid(x) and exp(-x)"), nil
			}
			for _, v := range in {
				if gone[v] > 0 {
					gone[v]--
				} else {
					rest = append(rest, v)
				}
			}
			y := append(rest, pairs...)
			if len(y) == 1 {
				return replace(c, n, y[0], in...)
			}
			return replace(c, n, tensor.Mul(y...), in...)
		},
	}
}

// signed is a variable, or its negation.
type signed struct {
	v     *vari
	minus bool
}

// signOf takes the negations of v away.
func signOf(v *vari) signed {
	s := signed{v: v}
	for s.v.Owner() != nil {
		x := negated(s.v.Owner())
		if x == nil {
			break
		}
		s = signed{x, !s.minus}
	}
	return s
}

// logSigmoid is logsigm_to_softplus.
func logSigmoid() rewrite.Rule {
	return rewrite.Rule{
		Name: "logsigm_to_softplus", Doc: "log(sigmoid(x)) → -softplus(-x), which is no logarithm of 0, also of a part: log(sigmoid(x)[i]) → (-softplus(-x))[i]", On: on(array.Log),
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			s, chain := viewed(n.Inputs()[0])
			a := elem(s, array.Sigmoid)
			if a == nil {
				return c.Miss("the argument is no sigmoid nor a part of one"), nil
			}
			return replace(c, n, viewAgain(tensor.Neg(tensor.Softplus(opposite(a.Inputs()[0]))), chain))
		},
	}
}

// logOneMinusSigmoid is log1msigm_to_softplus.
func logOneMinusSigmoid() rewrite.Rule {
	return rewrite.Rule{
		Name: "log1msigm_to_softplus", Doc: "log(1 - sigmoid(x)) → -softplus(x)", On: on(array.Log), Depth: 3,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			a := elem(n.Inputs()[0], array.Sub)
			if a == nil || !is(a.Inputs()[0], 1) || elem(a.Inputs()[1], array.Sigmoid) == nil {
				return c.Miss("the argument is not 1 less a sigmoid"), nil
			}
			return replace(c, n, tensor.Neg(tensor.Softplus(a.Inputs()[1].Owner().Inputs()[0])), a.Inputs()...)
		},
	}
}

// log1pNegSigmoid is log1p_neg_sigmoid.
func log1pNegSigmoid() rewrite.Rule {
	return rewrite.Rule{
		Name: "log1p_neg_sigmoid", Doc: "log1p(-sigmoid(x)) → -softplus(x)", On: on(array.Log1p), Depth: 3,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			if v := n.Inputs()[0]; v.Owner() != nil {
				if s := negated(v.Owner()); s != nil && elem(s, array.Sigmoid) != nil {
					return replace(c, n, tensor.Neg(tensor.Softplus(s.Owner().Inputs()[0])))
				}
			}
			return c.Miss("the argument is no negated sigmoid"), nil
		},
	}
}

// log1pExp is log1pexp_to_softplus.
func log1pExp() rewrite.Rule {
	return rewrite.Rule{
		Name: "log1pexp_to_softplus", Doc: "log1p(exp(x)) → softplus(x), which does not overflow", On: on(array.Log1p), Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			a := elem(n.Inputs()[0], array.Exp)
			if a == nil {
				return c.Miss("the argument is no exponential"), nil
			}
			return replace(c, n, tensor.Softplus(a.Inputs()[0]))
		},
	}
}

// log1mExp is a part of PyTensor's local_log1p_plusminus_exp, whose limit is Mächler's (Accurately Computing log(1 - exp(-|a|)), 2012).
func log1mExp() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_log1mexp", Doc: "log1p(-exp(x)) is log(-expm1(x)) where x is so close to 0 that exp(x) has lost its digits", On: on(array.Log1p),
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			v := n.Inputs()[0]
			if v.Owner() == nil {
				return c.Miss("nothing computes the argument"), nil
			}
			m := negated(v.Owner())
			if m == nil || elem(m, array.Exp) == nil || typ(m).DType() != typ(n.Out()).DType() {
				return c.Miss("the argument is no negated exponential"), nil
			}
			x := castTo(m.Owner().Inputs()[0], typ(m).DType())
			if guarded(n.Out(), x, -math.Ln2) {
				return c.Miss("that has been done"), nil
			}
			return guard(n, x, -math.Ln2, tensor.Log(tensor.Neg(tensor.Map(array.Expm1, x))))
		},
	}
}
