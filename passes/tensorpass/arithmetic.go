package tensorpass

import (
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

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
