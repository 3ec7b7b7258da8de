package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// negToMul is local_neg_to_mul. It leaves to the canonizer what is a term of a sum.
func negToMul() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_neg_to_mul", Doc: "a negation is a product: -x → -1*x, -(x*y) → -1*x*y; specialize undoes what is left of it", On: on(array.Neg), Depth: 1,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			if !addCanonizer.outermost(n) {
				return c.Miss("it is a term of a sum"), nil
			}
			x := n.Inputs()[0]
			factors := []*vari{number(-1, n.Out()), x}
			if a := elem(x, array.Mul); a != nil && alone(x) && samePattern(x, n.Out()) {
				factors = append(factors[:1], a.Inputs()...)
			}
			return replace(c, n, tensor.Mul(factors...))
		},
	}
}

// negNeg is local_neg_neg.
func negNeg() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_neg_neg", Doc: "two negations are none: -(-x) → x", On: on(array.Neg), Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			if a := elem(n.Inputs()[0], array.Neg); a != nil {
				return replace(c, n, a.Inputs()[0])
			}
			return c.Miss("the argument is no negation"), nil
		},
	}
}

// negDivNeg is local_neg_div_neg.
func negDivNeg() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_neg_div_neg", Doc: "a negation goes into a quotient where it meets another one or a number: -((-a)/b) → a/b, -(c/b) → (-c)/b", On: on(array.Neg), Depth: 3,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			q := elem(n.Inputs()[0], array.TrueDiv)
			if q == nil || !alone(q.Out()) {
				return c.Miss("the argument is no quotient that is used here only"), nil
			}
			num, den := q.Inputs()[0], q.Inputs()[1]
			if !isFloat(num) {
				return c.Miss("the numerator is an integer, which has no zero with a sign and may be the smallest one"), nil
			}
			if a := elem(num, array.Neg); a != nil {
				return replace(c, n, computeAs(q.Out(), array.TrueDiv, a.Inputs()[0], den), n.Inputs()...)
			}
			if v, ok := uniform(num); ok && tensor.ConstantOf(num) != nil && isScalar(num) {
				return replace(c, n, computeAs(q.Out(), array.TrueDiv, number(-v, num), den), n.Inputs()...)
			}
			return c.Miss("the numerator is neither a negation nor a number"), nil
		},
	}
}

// mulZero is local_mul_zero.
func mulZero() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_mul_zero", Doc: "a product with 0 is 0: x*0 → 0, also where x is NaN or infinite", On: on(array.Mul), Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			for _, v := range n.Inputs() {
				if is(v, 0) {
					return replace(c, n, number(0, n.Out()), n.Inputs()...)
				}
			}
			return c.Miss("no factor is 0"), nil
		},
	}
}

// zeroDiv is local_zero_div.
func zeroDiv() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_zero_div", Doc: "0 divided by anything is 0: 0/x → 0, also where x is zero or NaN", On: on(array.TrueDiv, array.IntDiv), Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			if !is(n.Inputs()[0], 0) {
				return c.Miss("the numerator is not 0"), nil
			}
			return replace(c, n, number(0, n.Out()), n.Inputs()...)
		},
	}
}

// intDivByOne is local_intdiv_by_one.
func intDivByOne() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_intdiv_by_one", Doc: "integers divided by 1 are themselves: x//1 → x", On: on(array.IntDiv), Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			if isFloat(n.Out()) || !is(n.Inputs()[1], 1) {
				return c.Miss("not integers divided by 1"), nil
			}
			return replace(c, n, n.Inputs()[0], n.Inputs()...)
		},
	}
}

// uselessElemwise is local_useless_elemwise. Comparisons of floats with themselves are up to local_useless_elemwise_comparison.
func uselessElemwise() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_useless_elemwise", Doc: "what computes its argument, or is known, is left out: identity(x) → x, add(x) → x, eq(n, n) → 1 for integers, a and True → a, n | 0 → n", Depth: 2,
		On: on(array.Identity, array.Add, array.Mul, array.Eq, array.Neq, array.And, array.Or, array.Xor, array.Maximum, array.Minimum),
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, _ := elemOf(n)
			in, out := n.Inputs(), n.Out()
			if len(in) == 1 {
				return replace(c, n, in[0])
			}
			if len(in) > 2 || op == array.Add || op == array.Mul {
				return c.Miss("it has several terms"), nil
			}
			same := in[0] == in[1]
			switch op {
			case array.Eq, array.Neq:
				if same && !isFloat(in[0]) {
					return replace(c, n, number(truth(op == array.Eq), out), in...)
				}
			case array.Maximum, array.Minimum:
				if same {
					return replace(c, n, in[0])
				}
			case array.And, array.Or, array.Xor:
				if same {
					if op == array.Xor {
						return replace(c, n, number(0, out), in...)
					}
					return replace(c, n, in[0])
				}
				if typ(out).DType() == array.Bool {
					return logicWithConstant(c, n, op)
				}
				neutral := 0.0
				if op == array.And {
					neutral = -1 // all bits
				}
				for i, v := range in {
					if is(v, neutral) {
						return replace(c, n, in[1-i], in...)
					}
				}
			}
			return c.Miss("nothing is known of the result"), nil
		},
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// logicWithConstant simplifies and, or and xor of bools one of which is known.
func logicWithConstant(c *rewrite.Context, n *apply, op array.Opcode) (result, error) {
	for i, v := range n.Inputs() {
		x, ok := uniform(v)
		if !ok {
			continue
		}
		other := n.Inputs()[1-i]
		switch {
		case op == array.And && x == 0, op == array.Or && x != 0:
			return replace(c, n, number(x, n.Out()), n.Inputs()...)
		case op == array.Xor && x != 0:
			return replace(c, n, tensor.Map(array.Invert, other), n.Inputs()...)
		}
		return replace(c, n, other, n.Inputs()...)
	}
	return c.Miss("neither argument is known"), nil
}

// uselessComparison is local_useless_elemwise_comparison.
func uselessComparison() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_useless_elemwise_comparison",
		Doc:  "comparisons whose result is known: x < x → 0, x == x → 1, also where x is NaN; shape < 0 → 0, max(shape, 0) → shape", Depth: 2,
		On: on(array.Lt, array.Le, array.Gt, array.Ge, array.Eq, array.Neq, array.Maximum, array.Minimum),
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, _ := elemOf(n)
			x, y := n.Inputs()[0], n.Inputs()[1]
			known := func(b bool) (result, error) { return replace(c, n, number(truth(b), n.Out()), x, y) }
			if x == y {
				switch op {
				case array.Lt, array.Gt, array.Neq:
					return known(false)
				case array.Le, array.Ge, array.Eq:
					return known(true)
				}
			}
			if isSizeVar(y) && is(x, 0) {
				x, y, op = y, x, mirrored(op)
			}
			if !isSizeVar(x) || !is(y, 0) {
				return c.Miss("it is not known what comes out"), nil
			}
			switch op {
			case array.Lt:
				return known(false)
			case array.Ge:
				return known(true)
			case array.Maximum:
				return replace(c, n, x)
			case array.Minimum:
				return replace(c, n, number(0, n.Out()))
			}
			return c.Miss("a size may be 0"), nil
		},
	}
}

// mirrored returns the operation that gives the same result with its arguments swapped.
func mirrored(op array.Opcode) array.Opcode {
	switch op {
	case array.Lt:
		return array.Gt
	case array.Le:
		return array.Ge
	case array.Gt:
		return array.Lt
	case array.Ge:
		return array.Le
	}
	return op
}

// isSizeVar reports whether v is a size and thus not negative: a Shape_i, or a sum, product or maximum of such.
func isSizeVar(v *vari) bool {
	a := v.Owner()
	if a == nil {
		return false
	}
	switch op := a.Op().(type) {
	case tensor.ShapeIOp:
		return true
	case tensor.Elemwise:
		if op.Op != array.Add && op.Op != array.Mul {
			return false
		}
		for _, in := range a.Inputs() {
			if _, _, ok := owner[tensor.ShapeIOp](in); !ok {
				x, known := uniform(in)
				if !known || x < 0 {
					return false
				}
			}
		}
		return true
	}
	return false
}

// castCast is local_cast_cast.
func castCast() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_cast_cast", Doc: "of two conversions one is enough if the first one loses nothing: cast(cast(x, d), d) → cast(x, d)", Depth: 2,
		On: []rewrite.Track{rewrite.TrackType[tensor.Elemwise]()},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, _ := elemOf(n)
			if op != array.Cast {
				return none, nil
			}
			x := n.Inputs()[0]
			if typ(x).DType() == typ(n.Out()).DType() {
				return replace(c, n, x)
			}
			a := elem(x, array.Cast)
			if a == nil {
				return c.Miss("the argument is no conversion"), nil
			}
			from, via, to := typ(a.Inputs()[0]).DType(), typ(x).DType(), typ(n.Out()).DType()
			if !lossless(from, via) {
				return c.Miss("%v does not hold all of %v", via, from), nil
			}
			if from == to {
				return replace(c, n, a.Inputs()[0])
			}
			return replace(c, n, tensor.Cast(a.Inputs()[0], to))
		},
	}
}

// lossless reports whether every value of one type is one of the other.
func lossless(from, to array.DType) bool {
	return from <= to && !(from == array.Int64 && to.IsFloat())
}

// subZeros is local_elemwise_sub_zeros.
func subZeros() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_elemwise_sub_zeros", Doc: "x - x → 0, also where x is NaN or infinite", On: on(array.Sub), Depth: 1,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			if n.Inputs()[0] != n.Inputs()[1] {
				return c.Miss("two different terms"), nil
			}
			return replace(c, n, number(0, n.Out()), n.Inputs()...)
		},
	}
}

// inverses maps functions to those that they undo.
var inverses = map[array.Opcode]array.Opcode{
	array.Deg2rad: array.Rad2deg, array.Rad2deg: array.Deg2rad, array.Sinh: array.Arcsinh, array.Arcsinh: array.Sinh,
	array.Tanh: array.Arctanh, array.Arctanh: array.Tanh, array.Cosh: array.Arccosh, array.Arccosh: array.Cosh,
	array.Neg: array.Neg, array.Inv: array.Inv, array.Invert: array.Invert, array.Log: array.Exp, array.Log1p: array.Expm1,
}

// funcInv is local_func_inv.
func funcInv() rewrite.Rule {
	outer := make([]array.Opcode, 0, len(inverses))
	for o := range array.NumOpcodes {
		if _, ok := inverses[o]; ok {
			outer = append(outer, o)
		}
	}
	return rewrite.Rule{
		Name: "local_func_inv", Doc: "a function of its inverse is the argument: log(exp(x)) → x, sinh(arcsinh(x)) → x, also where the inverse was NaN or infinite: tanh(arctanh(2)) → 2",
		On: on(outer...), Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, _ := elemOf(n)
			inner := n.Inputs()[0]
			a := elem(inner, inverses[op])
			if a == nil {
				return c.Miss("the argument is not the inverse function"), nil
			}
			x := a.Inputs()[0]
			if op == array.Arccosh { // the branch that cosh loses
				x = computeAs(n.Out(), array.Abs, x)
			}
			return replace(c, n, x)
		},
	}
}

// sqrtSqr is local_sqrt_sqr.
func sqrtSqr() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_sqrt_sqr", Doc: "sqrt(sqr(x)) → |x|", On: on(array.Sqrt), Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			if a := elem(n.Inputs()[0], array.Sqr); a != nil && typ(a.Out()).DType() == typ(n.Out()).DType() {
				return replace(c, n, tensor.Abs(a.Inputs()[0]))
			}
			return c.Miss("the argument is no square"), nil
		},
	}
}

// absLift is local_abs_lift. It is for floats: a product of integers wraps around, and then its sign is not that of the numbers. It leaves a product alone whose other factors would be lost to local_abs_merge.
func absLift() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_abs_lift", Doc: "the absolute value of a product is that of its factors: |x*y| → |x|*|y|, |x/y| → |x|/|y|, ||x|| → |x|", On: on(array.Abs), Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			x := n.Inputs()[0]
			if elem(x, array.Abs) != nil {
				return replace(c, n, x)
			}
			for _, op := range []array.Opcode{array.Mul, array.TrueDiv} {
				a := elem(x, op)
				if a == nil || !alone(x) || slices.ContainsFunc(a.Inputs(), isInteger) {
					continue
				}
				in := make([]*vari, len(a.Inputs()))
				for i, v := range a.Inputs() {
					in[i] = tensor.Abs(v)
				}
				return replace(c, n, tensor.Map(op, in...))
			}
			return c.Miss("the argument is no product or quotient of floats that is used here only"), nil
		},
	}
}

// absMerge is local_abs_merge, for floats as absLift is.
func absMerge() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_abs_merge", Doc: "a product of absolute values is one of the product: |x|*|y|*2 → |x*y*2|, |x|/|y| → |x/y|", On: on(array.Mul, array.TrueDiv), Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, _ := elemOf(n)
			in := make([]*vari, len(n.Inputs()))
			found := 0
			for i, v := range n.Inputs() {
				if a := elem(v, array.Abs); a != nil && isFloat(v) {
					in[i] = a.Inputs()[0]
					found++
					continue
				}
				if x, ok := uniform(v); !ok || x < 0 || op == array.TrueDiv {
					return c.Miss("an argument is neither the absolute value of a float nor a positive number"), nil
				}
				in[i] = v
			}
			if found < 2 {
				return c.Miss("there is one absolute value only"), nil
			}
			return replace(c, n, tensor.Abs(tensor.Map(op, in...)))
		},
	}
}
