package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// arithmeticRules lists the rules of sums, products and powers.
func arithmeticRules() []Local {
	return []Local{
		rule(Canonicalize|unsafe, "local_add_canonizer", on(array.Add, array.Sub, array.Neg), 0, addCanonizer.transform,
			"sums are flat and have one constant: x + 1 - (x - y) → 1 + y; x - x → 0, also where x is NaN or infinite"),
		rule(Canonicalize|unsafe, "local_mul_canonizer", on(array.Mul, array.TrueDiv, array.Inv), 0, mulCanonizer.transform,
			"products are flat and have one constant: 2*x/(4*x*y) → 0.5/y; x/x → 1, also where x is zero, NaN or infinite"),
		rule(Canonicalize|Specialize|unsafe, "local_mul_pow_to_pow_add", on(array.Mul, array.TrueDiv), 2, mulPow,
			"powers of one base become one power: x**2*x**3 → x**5, x**3/x → x**2, a**x*a**y → a**(x + y); "+
				"the powers may have been NaN or infinite where x or a is 0, infinite or negative"),
		rule(Canonicalize|Stabilize|unsafe, "local_greedy_distributor", on(array.Mul, array.TrueDiv, array.Inv), 0, greedyDistribute,
			"a factor is multiplied into a sum where that saves operations: (a/x + b)*x → a + b*x; changes results at zero and infinity"),
		rule(Canonicalize, "local_neg_to_mul", on(array.Neg), 1, negToMul,
			"a negation is a product: -x → -1*x, -(x*y) → -1*x*y; specialize turns what is left of it into a negation again"),
		rule(Canonicalize|Specialize|unsafe, "local_mul_zero", on(array.Mul), 2, mulZero,
			"a product with 0 is 0: x*0 → 0, also where x is NaN or infinite"),
		rule(Canonicalize|Specialize|unsafe, "local_zero_div", on(array.TrueDiv, array.IntDiv), 2, zeroDiv,
			"0 divided by anything is 0: 0/x → 0, also where x is zero or NaN"),
		rule(Canonicalize|Specialize, "local_intdiv_by_one", on(array.IntDiv), 2, intDivByOne,
			"an integer divided by 1 is itself: x//1 → x"),
		rule(Canonicalize, "local_abs_lift", on(array.Abs), 2, absLift,
			"the absolute value of a product is the product of the absolute values: |x*y| → |x|*|y|, |x/y| → |x|/|y|, ||x|| → |x|"),
		rule(Specialize, "local_abs_merge", on(array.Mul, array.TrueDiv), 2, absMerge,
			"a product of absolute values is the absolute value of the product: |x|*|y|*2 → |x*y*2|, |x|/|y| → |x/y|"),
		rule(Specialize, "local_mul_specialize", on(array.Mul), 2, mulSpecialize,
			"factors of 1 are dropped, and signs are counted: 1*x → x, -1*x → -x, (-x)*(-y) → x*y"),
		rule(Specialize, "local_add_specialize", on(array.Add), 2, addSpecialize, "terms of 0 are dropped: x + 0 → x"),
		rule(Specialize, "local_add_neg_to_sub", on(array.Add), 2, addNegToSub, "x + -y → x - y"),
		rule(Specialize|unsafe, "local_elemwise_sub_zeros", on(array.Sub), 1, subZeros,
			"x - x → 0, also where x is NaN or infinite"),
		rule(Specialize, "local_div_to_inv", on(array.TrueDiv), 2, divToInv, "1/x → inv(x)"),
		rule(Specialize, "local_neg_div_neg", on(array.Neg), 3, negDivNeg,
			"a negation moves into a quotient where it meets a negation or a number: -((-a)/b) → a/b, -(c/b) → (-c)/b"),
		rule(Canonicalize, "local_pow_canonicalize", on(array.Pow), 2, powCanonicalize, "x**0 → 1, x**1 → x"),
		rule(Specialize, "local_pow_specialize", on(array.Pow), 2, powSpecialize,
			"powers with small exponents are cheaper ops: x**2 → sqr(x), x**-1 → inv(x), x**-2 → inv(sqr(x))"),
		rule(Specialize|unsafe, "local_pow_to_sqrt", on(array.Pow), 2, powToSqrt,
			"x**0.5 → sqrt(x), x**-0.5 → inv(sqrt(x)), which are NaN where x is minus infinity, and keep the sign of zero"),
	}
}

// mulSpecialize leaves products with 0 to mulZero.
func mulSpecialize(c *rewrite.Context, n *apply) (result, error) {
	out, models := n.Out(), n.Inputs()
	in := make([]*variable, 0, len(models))
	minus, negs, numbers := false, 0, 0
	for _, v := range models {
		for x := argument(v, array.Neg); x != nil && exactIn(out, v); x = argument(v, array.Neg) {
			minus, v = !minus, x
			negs++
		}
		switch x, ok := uniform(v); {
		case ok && x == 1:
			numbers++
		case ok && x == -1:
			numbers++
			minus = !minus
		default:
			in = append(in, v)
		}
	}
	switch {
	case slices.Equal(in, models):
		return c.Miss("no factor is 1, -1 or a negation"), nil
	case len(in) == 0 && minus:
		return replace(c, n, number(-1, out), models...)
	case len(in) == 0:
		return replace(c, n, number(1, out), models...)
	case len(in) == 1 && minus:
		return replace(c, n, computeAs(out, array.Neg, in[0]), models...)
	case len(in) == 1:
		return replace(c, n, in[0], models...)
	case minus && negs == 0 && numbers == 1:
		return c.Miss("the sign is a factor of -1 already"), nil
	case minus:
		in = slices.Insert(in, 0, number(-1, out))
	}
	return replace(c, n, computeAs(out, array.Mul, in...), models...)
}

func addSpecialize(c *rewrite.Context, n *apply) (result, error) {
	rest := slices.DeleteFunc(slices.Clone(n.Inputs()), func(v *variable) bool { return is(v, 0) })
	switch len(rest) {
	case len(n.Inputs()):
		return c.Miss("no term is 0"), nil
	case 0:
		return replace(c, n, number(0, n.Out()), n.Inputs()...)
	}
	return replace(c, n, sumOf(n.Out(), rest), n.Inputs()...)
}

func addNegToSub(c *rewrite.Context, n *apply) (result, error) {
	in := n.Inputs()
	if len(in) != 2 {
		return c.Miss("there are more than two terms"), nil
	}
	for i, v := range in {
		if x := argument(v, array.Neg); x != nil && usedOnce(v) && exactIn(n.Out(), v) {
			return replace(c, n, computeAs(n.Out(), array.Sub, in[1-i], x))
		}
	}
	return c.Miss("no term is a negation with a single use"), nil
}

func subZeros(c *rewrite.Context, n *apply) (result, error) {
	if n.Inputs()[0] != n.Inputs()[1] {
		return c.Miss("the terms differ"), nil
	}
	return replace(c, n, number(0, n.Out()), n.Inputs()...)
}

func divToInv(c *rewrite.Context, n *apply) (result, error) {
	if !is(n.Inputs()[0], 1) {
		return c.Miss("the numerator is not 1"), nil
	}
	return replace(c, n, computeAs(n.Out(), array.Inv, n.Inputs()[1]), n.Inputs()...)
}

// negToMul leaves the terms of a sum to the canonizer.
func negToMul(c *rewrite.Context, n *apply) (result, error) {
	if !addCanonizer.outermost(n) {
		return c.Miss("it is a term of a sum"), nil
	}
	x := n.Inputs()[0]
	factors := []*variable{number(-1, n.Out()), x}
	if a := elem(x, array.Mul); a != nil && usedOnce(x) && samePattern(x, n.Out()) {
		factors = append(factors[:1], a.Inputs()...)
	}
	return replace(c, n, tensor.Mul(factors...))
}

func negDivNeg(c *rewrite.Context, n *apply) (result, error) {
	q := elem(n.Inputs()[0], array.TrueDiv)
	if q == nil || !usedOnce(q.Out()) {
		return c.Miss("the argument is not a quotient with a single use"), nil
	}
	num, den := q.Inputs()[0], q.Inputs()[1]
	if !isFloat(num) {
		return c.Miss("the numerator is an integer, which has no negative zero and may be the smallest one"), nil
	}
	x := argument(num, array.Neg)
	if v, ok := uniform(num); x == nil && ok && num.IsConstant() && isScalar(num) {
		x = number(-v, num)
	}
	if x == nil {
		return c.Miss("the numerator is neither a negation nor a number"), nil
	}
	return replace(c, n, computeAs(q.Out(), array.TrueDiv, x, den), n.Inputs()...)
}

func mulZero(c *rewrite.Context, n *apply) (result, error) {
	if !slices.ContainsFunc(n.Inputs(), func(v *variable) bool { return is(v, 0) }) {
		return c.Miss("no factor is 0"), nil
	}
	return replace(c, n, number(0, n.Out()), n.Inputs()...)
}

func zeroDiv(c *rewrite.Context, n *apply) (result, error) {
	if !is(n.Inputs()[0], 0) {
		return c.Miss("the numerator is not 0"), nil
	}
	return replace(c, n, number(0, n.Out()), n.Inputs()...)
}

func intDivByOne(c *rewrite.Context, n *apply) (result, error) {
	if isFloat(n.Out()) || !is(n.Inputs()[1], 1) {
		return c.Miss("it does not divide an integer by 1"), nil
	}
	return replace(c, n, n.Inputs()[0], n.Inputs()...)
}
