package tensorpass

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// maxSquarings bounds the exponents that powDevice writes out: 2 to the power of 9. It is Theano's
// bound.
const maxSquarings = 512

// powDevice multiplies by squaring.
func powDevice(c *rewrite.Context, n *apply) (result, error) {
	x := n.Inputs()[0]
	y, ok := uniform(n.Inputs()[1])
	k := int(y)
	e := max(k, -k)
	if !ok || !n.Inputs()[1].IsConstant() || !isFloat(n.Out()) || dtypeOf(x) != dtypeOf(n.Out()) || float64(k) != y || e > maxSquarings || e <= 2 {
		return c.Miss("the exponent is not an integer of the right size"), nil
	}
	p := array.NewProgram(dtypeOf(x))
	power, square := -1, 0
	for ; e > 0; e >>= 1 {
		if e&1 != 0 {
			if power < 0 {
				power = square
			} else {
				power = p.Append(array.Mul, power, square)
			}
		}
		if e > 1 {
			square = p.Append(array.Sqr, square)
		}
	}
	if k < 0 {
		power = p.Append(array.Inv, power)
	}
	return replace(c, n, tensor.MustApply(tensor.NewComposite(p.Return(power)), x), n.Inputs()...)
}

// mulPow is PyTensor's rule, except that it counts the base itself as a power, too.
func mulPow(c *rewrite.Context, n *apply) (result, error) {
	op, _ := elemOf(n)
	if !isFloat(n.Out()) {
		return c.Miss("powers of integers overflow"), nil
	}
	in, dtype := n.Inputs(), dtypeOf(n.Out())
	if !slices.ContainsFunc(in, func(f *variable) bool { return elem(f, array.Pow) != nil }) {
		return c.Miss("no factor is a power"), nil
	}
	factors := make([]*variable, 0, len(in))
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
		return c.Miss("no two factors are powers of one base with a single use"), nil
	case 1:
		return replace(c, n, factors[0], in...)
	}
	return replace(c, n, computeAs(n.Out(), array.Mul, factors...), in...)
}

// A powerKey is what factors have in common that can become one power: the base, which is a
// variable or a number, and whether the exponents are known.
type powerKey struct {
	base   *variable
	number float64
	known  bool
}

// keyOfPower returns the key of a factor. A factor that is not a power with a single use is the
// first power of itself. Of the known exponents only the integers have a key: x**0.5*x**0.5 is not
// x where x is negative. Beyond 2⁵² a sum may be rounded from an odd to an even number.
func keyOfPower(f *variable, dtype array.DType) (key powerKey, ok bool) {
	p := elem(f, array.Pow)
	if p == nil || !usedOnce(f) {
		return powerKey{base: f, known: true}, true
	}
	k, known := uniform(p.Inputs()[1])
	if dtypeOf(f) != dtype || known && (k != math.Trunc(k) || math.Abs(k) > largestExact || !isScalar(p.Inputs()[1])) {
		return powerKey{}, false
	}
	if b, ok := uniform(p.Inputs()[0]); ok && isScalar(p.Inputs()[0]) {
		return powerKey{number: b, known: known}, true
	}
	return powerKey{base: p.Inputs()[0], known: known}, true
}

// joint returns the product of two factors with the same key, or their quotient, as one power. It
// returns nil if neither is a power, or if their exponents have different types.
func joint(f, g *variable, divides bool) *variable {
	base, a := baseAndExponent(f, g)
	_, b := baseAndExponent(g, f)
	switch {
	case a == nil && b == nil:
		return nil
	case a == nil:
		base, a = f, number(1, b)
	case b == nil:
		b = number(1, a)
	case dtypeOf(a) != dtypeOf(b):
		return nil
	}
	x, known := uniform(a)
	y, _ := uniform(b)
	op := array.Add
	if divides {
		op, y = array.Sub, -y
	}
	if known {
		return tensor.Pow(base, number(x+y, a))
	}
	return tensor.Pow(base, computeAs(f, op, a, b))
}

// baseAndExponent takes a power apart. The exponent is nil if f is not a power, or is itself the
// base of g.
func baseAndExponent(f, g *variable) (base, exponent *variable) {
	p := elem(f, array.Pow)
	if q := elem(g, array.Pow); p == nil || f == g || q != nil && q.Inputs()[0] == f {
		return f, nil
	}
	return p.Inputs()[0], p.Inputs()[1]
}
