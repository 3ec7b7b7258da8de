package tensorpass

import (
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor/array"
)

// arithmeticRules lists the rules of sums, products and powers that take expressions of any size
// apart.
func arithmeticRules() []Local {
	return []Local{
		rule(Canonicalize|unsafe, "local_add_canonizer", on(array.Add, array.Sub, array.Neg), 0, addCanonizer.transform,
			"sums are flat and have one constant: x + 1 - (x - y) → 1 + y; x - x → 0, also where x is NaN or infinite").
			because("it takes sums of any size and depth apart"),
		rule(Canonicalize|unsafe, "local_mul_canonizer", on(array.Mul, array.TrueDiv, array.Inv), 0, mulCanonizer.transform,
			"products are flat and have one constant: 2*x/(4*x*y) → 0.5/y, x*(y*z) → x*y*z; x/x → 1, also where x is zero, NaN or infinite").
			because("it takes products of any size and depth apart"),
		rule(Canonicalize|Specialize|unsafe, "local_mul_pow_to_pow_add", on(array.Mul, array.TrueDiv), 2, mulPow,
			"powers of one base become one power: x**2*x**3 → x**5, x**3/x → x**2, a**x*a**y → a**(x + y); "+
				"the powers may have been NaN or infinite where x or a is 0, infinite or negative").
			because("it collects the powers of every base among factors of any number"),
		rule(Canonicalize|Stabilize|unsafe, "local_greedy_distributor", on(array.Mul, array.TrueDiv, array.Inv), 0, greedyDistribute,
			"a factor is multiplied into a sum where that saves operations: (a/x + b)*x → a + b*x; changes results at zero and infinity").
			because("it counts what each factor would save in sums of any size"),
	}
}

// arithmeticFunctions are what the rules of sums and products ask.
var arithmeticFunctions = []pattern.Function{
	{Name: "outermost", Usage: "outermost(x)", Depth: 1, Doc: "x is not a term of a sum, difference or negation with a single use",
		Holds: func(a pattern.Args) bool {
			return a.Vars[0].Owner() != nil && addCanonizer.outermost(a.Vars[0].Owner())
		}},
	alike("same_pattern(x, y)", 1, "x and y have size 1 in the same dimensions, as far as types tell", samePattern),
	about("magnitude(x)", "x is the absolute value of a float, or known to be one number that is not negative", func(v *variable) bool {
		x, ok := uniform(v)
		return ok && x >= 0 || argument(v, array.Abs) != nil && isFloat(v)
	}),
	{Name: "inside", Usage: "(inside x)", Depth: 2, Doc: "the argument of an absolute value, and x itself if it is not one",
		Build: func(a pattern.Args) (*variable, error) {
			if x := argument(a.Vars[0], array.Abs); x != nil {
				return x, nil
			}
			return a.Vars[0], nil
		}},
}
