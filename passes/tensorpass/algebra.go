package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// algebraFunctions are what the rules of saturation ask.
var algebraFunctions = []pattern.Function{
	pattern.NewGuard("as_wide(p, x)", 1, "what is computed of x alone has the element type of p", func(a pattern.Args) bool {
		t := dtypeOf(a.Vars[1])
		for _, v := range a.Vars[2:] {
			t = array.Upcast(t, dtypeOf(v))
		}
		p := dtypeOf(a.Vars[0])
		return t == p || !p.IsFloat() && t.Number() == p
	}),
	pattern.NewGuard("opposites(a, b)", 1, "all elements of a and of b are known to be one finite number and its opposite, which is not 0", func(a pattern.Args) bool {
		x, ok := uniform(a.Vars[0])
		y, known := uniform(a.Vars[1])
		return ok && known && x == -y && x != 0 && x-x == 0
	}),
	value("(collect x ts)", 2, "the sum of the terms ts, in which all products with the factor x have become one, and so on for other factors", collect),
	pattern.NewGuard("fewer(p, x)", 1, "all x have size 1 in a dimension in which p has another size, as far as types tell", func(a pattern.Args) bool {
		for d, n := range typeOf(a.Vars[0]).Shape() {
			if n != 1 && !slices.ContainsFunc(a.Vars[1:], func(v *variable) bool { return typeOf(v).Dim(d) != 1 }) {
				return true
			}
		}
		return false
	}),
}

// maxCollected bounds the terms that collect looks at, as it takes quadratic time.
const maxCollected = 64

// collect is what rules of pairs of terms can't say: many terms have too many pairs, and the rest
// of a sum as many again. What is left of the terms without x is collected, too, by the factor that
// most of them have, and so are the products that come out.
func collect(a pattern.Args) *variable {
	like := a.Root.Out()
	terms := a.Vars[1:]
	if len(terms) > maxCollected || later(a.Root.Inputs(), a.Vars[0], terms[:2]) {
		return nil
	}
	for x := a.Vars[0]; x != nil; x = commonFactor(terms, like) {
		if terms = collectOnce(x, terms, like); terms == nil {
			return nil
		}
	}
	if len(terms) == 1 {
		return terms[0]
	}
	return computeAs(like, array.Add, terms...)
}

// later reports whether another pair of terms with the factor x comes before a pair in a sum: that
// one says the same.
func later(sum []*variable, x *variable, pair []*variable) bool {
	before := 0
	for _, t := range sum {
		switch {
		case slices.Contains(pair, t):
			before++
		case before < 2 && slices.Contains(factorsOf(t), x):
			return slices.Contains(sum, pair[0]) && slices.Contains(sum, pair[1])
		}
	}
	return false
}

// collectOnce puts terms with the factor x together, then those with another factor, and so on. It
// returns nil if x is the factor of less than two. Equal sums of quotients are one variable.
func collectOnce(x *variable, left []*variable, like *variable) (terms []*variable) {
	var sums [][]*variable
	var made []*variable
	for x != nil {
		var quotients, others []*variable
		for _, t := range left {
			if q := quotient(t, x, like); q != nil {
				quotients = append(quotients, q)
			} else {
				others = append(others, t)
			}
		}
		if len(quotients) < 2 {
			return nil
		}
		at := slices.IndexFunc(sums, func(s []*variable) bool { return sameTerms(s, quotients) })
		if at < 0 {
			at = len(sums)
			sums = append(sums, quotients)
			made = append(made, computeAs(like, array.Add, quotients...))
		}
		terms, left = append(terms, computeAs(like, array.Mul, x, made[at])), others
		x = commonFactor(left, like)
	}
	return append(terms, left...)
}

// sameTerms reports whether two lists have the same variables, each as often.
func sameTerms(a, b []*variable) bool {
	left := slices.Clone(b)
	for _, v := range a {
		i := slices.Index(left, v)
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return len(left) == 0
}

// quotient returns a term of a sum without its factor x, or nil.
func quotient(term, x, like *variable) *variable {
	m := elem(term, array.Mul)
	if m == nil || len(m.Inputs()) < 2 || dtypeOf(term) != dtypeOf(like) {
		return nil
	}
	i := slices.Index(m.Inputs(), x)
	if i < 0 {
		return nil
	}
	if rest := without(m.Inputs(), i); len(rest) > 1 {
		return computeAs(like, array.Mul, rest...)
	} else {
		return rest[0]
	}
}

// commonFactor returns the factor that most terms have, if at least two do, or nil.
func commonFactor(terms []*variable, like *variable) (best *variable) {
	most := 1
	for _, t := range terms {
		for _, x := range factorsOf(t) {
			n := 0
			for _, u := range terms {
				if dtypeOf(u) == dtypeOf(like) && elem(u, array.Mul) != nil && slices.Contains(factorsOf(u), x) {
					n++
				}
			}
			if n > most {
				best, most = x, n
			}
		}
	}
	return best
}

// arithmeticRules take expressions of any size apart.
var arithmeticRules = goRules{
	"local_add_canonizer":      {on(array.Add, array.Sub, array.Neg), nil, 0, addCanonizer.transform},
	"local_mul_canonizer":      {on(array.Mul, array.TrueDiv, array.Inv), nil, 0, mulCanonizer.transform},
	"local_mul_pow_to_pow_add": {on(array.Mul, array.TrueDiv), of(on(array.Pow)), 2, mulPow},
	"local_greedy_distributor": {on(array.Mul, array.TrueDiv, array.Inv), of(onDimShuffle, on(array.Add, array.Sub, array.Neg, array.Mul, array.TrueDiv, array.Inv)), 0, greedyDistribute},
}

// arithmeticFunctions are what the rules of sums and products ask.
var arithmeticFunctions = []pattern.Function{
	pattern.NewGuardOfEach("outermost(x)", 1, "x is not a term of a sum, difference or negation with a single use",
		func(v *variable) bool { return v.Owner() != nil && addCanonizer.outermost(v.Owner()) }),
	pattern.NewGuardOfPairs("same_pattern(x, y)", 1, "x and y have size 1 in the same dimensions, as far as types tell", samePattern),
	about("fixed(x)", "x is one number that is known, or will be when sizes are", isFixed),
	about("magnitude(x)", "x is the absolute value of a float, or one number that is not negative, known or of sizes", func(v *variable) bool {
		return isFixed(v) && tensor.Nonnegative(v) || argument(v, array.Abs) != nil && isFloat(v)
	}),
	value("(inside x)", 2, "the argument of an absolute value, and x itself if it is not one", func(a pattern.Args) *variable {
		if x := argument(a.Vars[0], array.Abs); x != nil {
			return x
		}
		return a.Vars[0]
	}),
}
