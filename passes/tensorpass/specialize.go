package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// mulSpecialize is local_mul_specialize. A product with 0 is up to local_mul_zero.
func mulSpecialize() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_mul_specialize", Doc: "factors 1 are dropped, and signs counted: 1*x → x, -1*x → -x, (-x)*(-y) → x*y", On: on(array.Mul), Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			in := make([]*vari, 0, len(n.Inputs()))
			minus, negs, numbers := false, 0, 0
			for _, v := range n.Inputs() {
				for a := elem(v, array.Neg); a != nil && exactIn(n.Out(), v); a = elem(v, array.Neg) {
					minus, v = !minus, a.Inputs()[0]
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
			if slices.Equal(in, n.Inputs()) {
				return c.Miss("no factor is 1, -1 or a negation"), nil
			}
			models := n.Inputs()
			switch {
			case len(in) == 0 && minus:
				return replace(c, n, number(-1, n.Out()), models...)
			case len(in) == 0:
				return replace(c, n, number(1, n.Out()), models...)
			case len(in) == 1 && minus:
				return replace(c, n, computeAs(n.Out(), array.Neg, in[0]), models...)
			case len(in) == 1:
				return replace(c, n, in[0], models...)
			case minus && negs == 0 && numbers == 1:
				return c.Miss("the sign is a factor -1 already"), nil
			case minus:
				in = append([]*vari{number(-1, n.Out())}, in...)
			}
			return replace(c, n, computeAs(n.Out(), array.Mul, in...), models...)
		},
	}
}

// addSpecialize is local_add_specialize.
func addSpecialize() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_add_specialize", Doc: "terms 0 are dropped: x + 0 → x", On: on(array.Add), Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			rest := slices.DeleteFunc(slices.Clone(n.Inputs()), func(v *vari) bool { return is(v, 0) })
			switch len(rest) {
			case len(n.Inputs()):
				return c.Miss("no term is 0"), nil
			case 0:
				return replace(c, n, number(0, n.Out()), n.Inputs()...)
			}
			return replace(c, n, sumOf(n.Out(), rest), n.Inputs()...)
		},
	}
}

// addNegToSub is local_add_neg_to_sub.
func addNegToSub() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_add_neg_to_sub", Doc: "x + -y → x - y", On: on(array.Add), Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			in := n.Inputs()
			if len(in) != 2 {
				return c.Miss("there are more than two terms"), nil
			}
			for i, v := range in {
				if a := elem(v, array.Neg); a != nil && alone(v) && exactIn(n.Out(), v) {
					return replace(c, n, computeAs(n.Out(), array.Sub, in[1-i], a.Inputs()[0]))
				}
			}
			return c.Miss("no term is a negation that is used here only"), nil
		},
	}
}

// subNegToAdd is local_sub_neg_to_add.
func subNegToAdd() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_sub_neg_to_add", Doc: "x - -y → x + y", On: on(array.Sub), Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			if a := elem(n.Inputs()[1], array.Neg); a != nil && exactIn(n.Out(), a.Out()) {
				return replace(c, n, computeAs(n.Out(), array.Add, n.Inputs()[0], a.Inputs()[0]))
			}
			return c.Miss("what is subtracted is no negation"), nil
		},
	}
}

// divToInv is local_div_to_inv.
func divToInv() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_div_to_inv", Doc: "1/x → inv(x)", On: on(array.TrueDiv), Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			if !is(n.Inputs()[0], 1) {
				return c.Miss("the numerator is not 1"), nil
			}
			return replace(c, n, computeAs(n.Out(), array.Inv, n.Inputs()[1]), n.Inputs()...)
		},
	}
}

// mulToSqr is local_mul_to_sqr.
func mulToSqr() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_mul_to_sqr", Doc: "x*x → sqr(x)", On: on(array.Mul), Depth: 1,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			if in := n.Inputs(); len(in) == 2 && in[0] == in[1] {
				return replace(c, n, tensor.Sqr(in[0]))
			}
			return c.Miss("the factors are not twice the same"), nil
		},
	}
}

// powCanonicalize is local_pow_canonicalize.
func powCanonicalize() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_pow_canonicalize", Doc: "x**0 → 1, x**1 → x", On: on(array.Pow), Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			switch {
			case is(n.Inputs()[1], 0):
				return replace(c, n, number(1, n.Out()), n.Inputs()...)
			case is(n.Inputs()[1], 1):
				return replace(c, n, n.Inputs()[0], n.Inputs()...)
			}
			return c.Miss("the exponent is neither 0 nor 1"), nil
		},
	}
}

// powSpecialize is local_pow_specialize without the roots, which are up to local_pow_to_sqrt.
func powSpecialize() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_pow_specialize", Doc: "powers with small exponents are cheaper ops: x**2 → sqr(x), x**-1 → inv(x), x**-2 → inv(sqr(x))", On: on(array.Pow), Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			x := n.Inputs()[0]
			y, ok := uniform(n.Inputs()[1])
			if !ok {
				return c.Miss("the exponent is not known"), nil
			}
			switch {
			case y == 2:
				return replace(c, n, computeAs(n.Out(), array.Sqr, x), n.Inputs()...)
			case y == -1 && isFloat(n.Out()):
				return replace(c, n, computeAs(n.Out(), array.Inv, x), n.Inputs()...)
			case y == -2 && isFloat(n.Out()):
				return replace(c, n, tensor.Map(array.Inv, computeAs(n.Out(), array.Sqr, x)), n.Inputs()...)
			}
			return c.Miss("there is no op for the exponent %v", y), nil
		},
	}
}

// powToSqrt is the part of local_pow_specialize that changes what comes of -Inf.
func powToSqrt() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_pow_to_sqrt", Doc: "x**0.5 → sqrt(x), x**-0.5 → inv(sqrt(x)), which are NaN where x is minus infinity, and keep the sign of zero", On: on(array.Pow), Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			x := n.Inputs()[0]
			switch {
			case !isFloat(n.Out()):
				return c.Miss("the result is an integer"), nil
			case is(n.Inputs()[1], 0.5):
				return replace(c, n, computeAs(n.Out(), array.Sqrt, x), n.Inputs()...)
			case is(n.Inputs()[1], -0.5):
				return replace(c, n, tensor.Map(array.Inv, computeAs(n.Out(), array.Sqrt, x)), n.Inputs()...)
			}
			return c.Miss("the exponent is neither 0.5 nor -0.5"), nil
		},
	}
}

// mostSquarings bounds the exponents that are written out: 2 to the power of 9. It is Theano's.
const mostSquarings = 512

// powDevice is local_pow_specialize_device.
func powDevice() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_pow_specialize_device", On: on(array.Pow), Depth: 2,
		Doc: "a power with an integer exponent is a few multiplications: x**15 → one fused op of six; it belongs before the fusion, without which it would cost more memory",
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			x := n.Inputs()[0]
			y, ok := uniform(n.Inputs()[1])
			k := int(y)
			if !ok || !isFloat(n.Out()) || typ(x).DType() != typ(n.Out()).DType() || float64(k) != y || k > mostSquarings || k < -mostSquarings || k >= -2 && k <= 2 {
				return c.Miss("the exponent is no integer of the right size"), nil
			}
			p := array.NewProgram(typ(x).DType())
			power, square := -1, 0
			for e := max(k, -k); e > 0; e >>= 1 {
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
		},
	}
}
