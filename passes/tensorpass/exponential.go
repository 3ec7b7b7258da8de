package tensorpass

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// mulExp is PyTensor's local_mul_exp_to_exp_add. Exponentials that are used elsewhere, too, stay: they would be computed anyway. So do those
// of a column and a row: there are fewer of them than elements of the product.
func mulExp() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_mul_exp_to_exp_add", Depth: 2, On: on(array.Mul, array.TrueDiv),
		Doc: "one exponential does for several: exp(x)*exp(y) → exp(x + y), exp(x)/exp(y) → exp(x - y); the product was NaN where one is infinite and the other 0, and is NaN where both together are infinite and a third factor is 0",
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			var exponents, rest []*vari
			for _, f := range n.Inputs() {
				if e := elem(f, array.Exp); e != nil && alone(f) && typ(f).DType() == typ(n.Out()).DType() {
					exponents = append(exponents, e.Inputs()[0])
				} else {
					rest = append(rest, f)
				}
			}
			if len(exponents) < 2 {
				return c.Miss("there are no two exponentials that are used here only"), nil
			}
			sign := array.Add
			if op, _ := elemOf(n); op == array.TrueDiv {
				sign = array.Sub
			}
			sum := computeAs(n.Out(), sign, exponents...)
			if !slices.ContainsFunc(exponents, func(x *vari) bool { return samePattern(x, sum) }) {
				return c.Miss("there would be more exponentials than before: of a product of a column and a row"), nil
			}
			y := tensor.Exp(sum)
			if len(rest) > 0 {
				y = tensor.Mul(append(rest, y)...)
			}
			return replace(c, n, y)
		},
	}
}

// mulPow is PyTensor's local_mul_pow_to_pow_add, which does not count the base itself as a power.
func mulPow() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_mul_pow_to_pow_add", Depth: 2, On: on(array.Mul, array.TrueDiv),
		Doc: "one power does for several of one base: x**2*x**3 → x**5, x**3/x → x**2, a**x*a**y → a**(x + y); the powers may have been NaN or infinite where x or a is 0, infinite or negative",
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, _ := elemOf(n)
			if !isFloat(n.Out()) {
				return c.Miss("powers of integers overflow"), nil
			}
			in, dtype := n.Inputs(), typ(n.Out()).DType()
			if !slices.ContainsFunc(in, func(f *vari) bool { return elem(f, array.Pow) != nil }) {
				return c.Miss("no factor is a power"), nil
			}
			factors := make([]*vari, 0, len(in))
			places := make(map[powerKey]int) // of the first factor of a kind
			for _, f := range in {
				key, ok := keyOfPower(f, dtype)
				at, seen := places[key]
				if ok && seen {
					if p := joint(factors[at], f, op == array.TrueDiv); p != nil {
						factors[at] = p
						continue
					}
				} else if ok {
					places[key] = len(factors)
				}
				factors = append(factors, f)
			}
			switch len(factors) {
			case len(in):
				return c.Miss("no two factors are powers of one base that are used here only"), nil
			case 1:
				return replace(c, n, factors[0], in...)
			}
			return replace(c, n, computeAs(n.Out(), array.Mul, factors...), in...)
		},
	}
}

// powerKey is what factors have in common that can be made one power: the base, a variable or a number, and whether the exponents are known.
type powerKey struct {
	base   *vari
	number float64
	known  bool
}

// keyOfPower returns the key of a factor, which is the first power of itself if it is no power that is used here only. Of exponents that are
// known only whole ones are joined: x**0.5*x**0.5 is not x where x is negative.
func keyOfPower(f *vari, dtype array.DType) (key powerKey, ok bool) {
	p := elem(f, array.Pow)
	if p == nil || !alone(f) {
		return powerKey{base: f, known: true}, true
	}
	k, known := uniform(p.Inputs()[1])
	if typ(f).DType() != dtype || known && (k != math.Trunc(k) || !isScalar(p.Inputs()[1])) {
		return powerKey{}, false
	}
	if b, ok := uniform(p.Inputs()[0]); ok && isScalar(p.Inputs()[0]) {
		return powerKey{number: b, known: known}, true
	}
	return powerKey{base: p.Inputs()[0], known: known}, true
}

// joint returns the power that is the product of two factors with the same key, or the quotient; nil if neither is a power or their exponents
// have different types.
func joint(f, g *vari, divides bool) *vari {
	base, a := baseAndExponent(f, g)
	_, b := baseAndExponent(g, f)
	switch {
	case a == nil && b == nil:
		return nil
	case a == nil:
		base, a = f, number(1, b)
	case b == nil:
		b = number(1, a)
	case typ(a).DType() != typ(b).DType():
		return nil
	}
	x, known := uniform(a)
	y, _ := uniform(b)
	switch {
	case known && divides:
		return tensor.Pow(base, number(x-y, a))
	case known:
		return tensor.Pow(base, number(x+y, a))
	case divides:
		return tensor.Pow(base, computeAs(f, array.Sub, a, b))
	}
	return tensor.Pow(base, computeAs(f, array.Add, a, b))
}

// baseAndExponent takes a power apart. The exponent is nil if f is no power, or itself the base of g.
func baseAndExponent(f, g *vari) (base, exponent *vari) {
	p := elem(f, array.Pow)
	if q := elem(g, array.Pow); p == nil || f == g || q != nil && q.Inputs()[0] == f {
		return f, nil
	}
	return p.Inputs()[0], p.Inputs()[1]
}

// expm1Softplus is a part of PyTensor's local_exp_log; what is left of that is in local_func_inv.
func expm1Softplus() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_exp_log", Doc: "expm1(softplus(x)) → exp(x)", On: on(array.Expm1), Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			a := elem(n.Inputs()[0], array.Softplus)
			if a == nil {
				return c.Miss("the argument is no softplus"), nil
			}
			return replace(c, n, tensor.Exp(a.Inputs()[0]))
		},
	}
}

// softmaxOfExp is what Theano calls softmax_simplifier, a part of local_mul_canonizer.
func softmaxOfExp() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_softmax_of_exp", Depth: 4, On: on(array.TrueDiv),
		Doc: "the softmax is an op: exp(x)/sum(exp(x), axis=1, keepdims=True) → Softmax(x); the quotient was NaN where exp(x) overflows, and only there; where x is infinite its whole row of the softmax is NaN",
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			num, den := factorsOf(n.Inputs()[0]), factorsOf(n.Inputs()[1])
			for j, d := range den {
				x, axis := sumOfExp(d)
				if x == nil {
					continue
				}
				i := slices.IndexFunc(num, func(f *vari) bool {
					e := elem(f, array.Exp)
					return e != nil && e.Inputs()[0] == x
				})
				if i < 0 {
					continue
				}
				num[i] = softmaxOver(castTo(x, typ(num[i]).DType()), axis)
				return replace(c, n, mulCanonizer.join(num, slices.Delete(den, j, j+1), n.Out()), n.Inputs()...)
			}
			return c.Miss("it does not divide an exponential by its sum along a dimension"), nil
		},
	}
}

// factorsOf returns the factors of a product that is used once, or v itself. It does not look deeper: a long quotient would take long.
func factorsOf(v *vari) []*vari {
	if a := elem(v, array.Mul); a != nil && alone(v) {
		return slices.Clone(a.Inputs())
	}
	return []*vari{v}
}

// sumOfExp returns x and the dimension along which d is the sum of exp(x), if size 1 is left of that dimension; otherwise x is nil.
func sumOfExp(d *vari) (x *vari, axis int) {
	a, ds, ok := owner[tensor.DimShuffleOp](d)
	if !ok {
		return nil, 0
	}
	r, op, ok := owner[tensor.Reduce](a.Inputs()[0])
	if !ok || op.Op != array.Sum {
		return nil, 0
	}
	e := elem(r.Inputs()[0], array.Exp)
	if e == nil || !isFloat(e.Out()) {
		return nil, 0
	}
	ndim := typ(e.Out()).NDim()
	order := make([]int, ndim) // that of keepdims
	kept := 0
	axis = -1
	for k := range order {
		if op.Over(ndim).Has(k) {
			if order[k] = array.NewAxis; axis >= 0 {
				return nil, 0
			}
			axis = k
			continue
		}
		order[k] = kept
		kept++
	}
	if axis < 0 || !slices.Equal(ds.NewOrder(), order) {
		return nil, 0
	}
	return e.Inputs()[0], axis
}

// softmaxOver returns the softmax along a dimension.
func softmaxOver(x *vari, axis int) *vari {
	last := typ(x).NDim() - 1
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
