package tensor

import (
	"math"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// derivative returns g times the derivative of an element-wise operation with respect to argument i, before what was broadcast is
// summed up; nil where the result does not depend on it.
func derivative(op array.Opcode, a *fgraph.Apply, i int, g *fgraph.Variable) *fgraph.Variable {
	in, y := a.Inputs(), a.Out()
	x := in[0]
	c := func(v float64) *fgraph.Variable { return Number(v, g) }
	switch op {
	case array.Identity, array.Add:
		return g
	case array.Second:
		if i == 0 {
			return ZerosLike(x)
		}
		return g
	case array.Switch:
		if i == 1 {
			return Switch(x, g, c(0))
		}
		return Switch(x, c(0), g)
	case array.Mul:
		factors := []*fgraph.Variable{g}
		for k, v := range in {
			if k != i {
				factors = append(factors, v)
			}
		}
		return Mul(factors...)
	case array.Sub:
		if i == 0 {
			return g
		}
		return Neg(g)
	case array.TrueDiv:
		if i == 0 {
			return TrueDiv(g, in[1])
		}
		return Neg(TrueDiv(Mul(g, y), in[1]))
	case array.Mod:
		if i == 0 {
			return g
		}
		return Neg(Mul(g, Map(array.IntDiv, x, in[1])))
	case array.Pow:
		if i == 0 {
			return Mul(g, in[1], Pow(x, Sub(in[1], Number(1, in[1]))))
		}
		return Mul(g, y, Switch(Map(array.Eq, x, Number(0, x)), Number(0, x), Log(x)))
	case array.Maximum: // where both are the largest the first one gets the gradient
		return choose(Map(array.Ge, x, in[1]), i, g)
	case array.Minimum:
		return choose(Map(array.Le, x, in[1]), i, g)
	case array.LogAddExp:
		return Mul(g, Sigmoid(Sub(in[i], in[1-i])))
	case array.Arctan2:
		n := Add(Sqr(x), Sqr(in[1]))
		if i == 0 {
			return TrueDiv(Mul(g, in[1]), n)
		}
		return Neg(TrueDiv(Mul(g, x), n))
	case array.IntDiv, array.Sgn, array.Floor, array.Ceil, array.Trunc, array.Round:
		return ZerosLike(g)
	}
	return unaryDerivative(op, x, y, g, c)
}

// choose gives the gradient to the first argument where the condition holds, else to the second one.
func choose(first *fgraph.Variable, i int, g *fgraph.Variable) *fgraph.Variable {
	if i == 0 {
		return Switch(first, g, Number(0, g))
	}
	return Switch(first, Number(0, g), g)
}

// unaryDerivative returns g times the derivative of y = op(x).
func unaryDerivative(op array.Opcode, x, y, g *fgraph.Variable, c func(float64) *fgraph.Variable) *fgraph.Variable {
	one := c(1)
	switch op {
	case array.Neg:
		return Neg(g)
	case array.Inv:
		return Neg(Mul(g, Sqr(y)))
	case array.Abs:
		return Mul(g, Sgn(x))
	case array.Sqr:
		return Mul(c(2), g, x)
	case array.Sqrt:
		return TrueDiv(Mul(c(0.5), g), y)
	case array.Exp:
		return Mul(g, y)
	case array.Expm1:
		return Mul(g, Exp(x))
	case array.Exp2:
		return Mul(c(math.Ln2), g, y)
	case array.Log:
		return TrueDiv(g, x)
	case array.Log1p:
		return TrueDiv(g, Add(one, x))
	case array.Log2:
		return TrueDiv(g, Mul(c(math.Ln2), x))
	case array.Log10:
		return TrueDiv(g, Mul(c(math.Ln10), x))
	case array.Sigmoid:
		return Mul(g, y, Sub(one, y))
	case array.Softplus:
		return Mul(g, Sigmoid(x))
	case array.Erf:
		return Mul(c(2/math.Sqrt(math.Pi)), g, Exp(Neg(Sqr(x))))
	case array.Erfc:
		return Mul(c(-2/math.Sqrt(math.Pi)), g, Exp(Neg(Sqr(x))))
	case array.Sin:
		return Mul(g, Cos(x))
	case array.Cos:
		return Neg(Mul(g, Sin(x)))
	case array.Tan:
		return Mul(g, Add(one, Sqr(y)))
	case array.Arcsin:
		return TrueDiv(g, Sqrt(Sub(one, Sqr(x))))
	case array.Arccos:
		return Neg(TrueDiv(g, Sqrt(Sub(one, Sqr(x)))))
	case array.Arctan:
		return TrueDiv(g, Add(one, Sqr(x)))
	case array.Sinh:
		return Mul(g, Map(array.Cosh, x))
	case array.Cosh:
		return Mul(g, Map(array.Sinh, x))
	case array.Tanh:
		return Mul(g, Sub(one, Sqr(y)))
	case array.Arcsinh:
		return TrueDiv(g, Sqrt(Add(Sqr(x), one)))
	case array.Arccosh:
		return TrueDiv(g, Sqrt(Sub(Sqr(x), one)))
	case array.Arctanh:
		return TrueDiv(g, Sub(one, Sqr(x)))
	case array.Deg2rad:
		return Mul(c(math.Pi/180), g)
	case array.Rad2deg:
		return Mul(c(180/math.Pi), g)
	}
	return nil
}
