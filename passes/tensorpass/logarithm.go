package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// logarithmRules are the rules of logarithms, exponentials and sigmoids.
var logarithmRules = goRules{
	"local_log_add":            {on(array.Log), of(on(array.Add, array.Sub, array.Neg)), 3, logAdd},
	"local_log_of_part":        {on(array.Log), of(onViews), 0, logOfPart},
	"local_sigm_times_exp":     {on(array.Mul), slices.Concat(of(on(array.Exp, array.Mul), onDimShuffle), of(on(array.Sigmoid, array.Mul), onDimShuffle)), 3, sigmTimesExp},
	"local_mul_exp_to_exp_add": {on(array.Mul, array.TrueDiv), of(on(array.Exp, array.Mul)), 2, mulExp},
}

// logarithmFunctions are what the rules of logarithms and sigmoids ask.
var logarithmFunctions = []pattern.Function{
	about("is_sigmoid(x)", "the graph computes x as a sigmoid", func(v *variable) bool { return elem(v, array.Sigmoid) != nil }),
	about("in_log(x)", "x has a single use, which is in a logarithm", func(v *variable) bool {
		op, ok := elemOf(onlyClient(v))
		return ok && op == array.Log
	}),
	pattern.NewGuardOfPairs("unit(a, b)", 2, "a and b are known numbers whose sum is 1", func(a, b *variable) bool {
		x, ok := uniform(a)
		y, ok2 := uniform(b)
		return ok && ok2 && x+y == 1
	}),
	value("(opposite x)", 2, "-x as a float, without an op where x is a negation or a multiple", func(a pattern.Args) *variable { return opposite(a.Vars[0]) }),
}

func logAdd(c *rewrite.Context, n *apply) (result, error) {
	terms, neg, ok := addCanonizer.few(n.Inputs()[0], maxDistributed)
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

func sigmTimesExp(c *rewrite.Context, n *apply) (result, error) {
	client := onlyClient(n.Out())
	if op, ok := elemOf(client); ok && op == array.Mul && dtypeOf(client.Out()) == dtypeOf(n.Out()) {
		return c.Miss("it is a factor of a product, which is rewritten as a whole"), nil
	}
	in, _ := products.terms(n.Out())
	exps := make(map[signed][]*variable) // by the argument
	for _, v := range in {
		if x := argument(v, array.Exp); x != nil {
			key := signOf(x)
			exps[key] = append(exps[key], v)
		}
	}
	if len(exps) == 0 {
		return c.Miss("no factor is an exponential"), nil
	}
	var pairs, gone []*variable
	for _, v := range in {
		x := argument(v, array.Sigmoid)
		if x == nil {
			continue
		}
		key := signOf(x)
		key.minus = !key.minus
		if list := exps[key]; len(list) > 0 {
			exps[key] = list[1:]
			pairs = append(pairs, tensor.Sigmoid(argument(list[0], array.Exp)))
			gone = append(gone, v, list[0])
		}
	}
	if len(pairs) == 0 {
		return c.Miss("it has no factors sigmoid(x) and exp(-x)"), nil
	}
	rest, _, _ := cancel(in, gone)
	return replace(c, n, product(append(rest, pairs...)...), in...)
}

// signed is a variable, or its negation.
type signed struct {
	v     *variable
	minus bool
}

// signOf strips the negations off v, unless they wrap around.
func signOf(v *variable) signed {
	s := signed{v: v}
	for x := negated(v); x != nil && isWide(x); x = negated(x) {
		s = signed{x, !s.minus}
	}
	return s
}
