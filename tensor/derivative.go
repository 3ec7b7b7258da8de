package tensor

import (
	"math"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// Grad multiplies by the derivatives of the operation.
func (e Elemwise) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	grads := make([]*fgraph.Variable, len(a.Inputs()))
	if !TypeOf(a.Out()).DType().IsFloat() {
		return grads
	}
	// The type is that of the result. Whoever adds the terms of a gradient converts them.
	if e.Op == array.Cast {
		grads[0] = out[0]
		return grads
	}
	for i, v := range a.Inputs() {
		if !TypeOf(v).DType().IsFloat() {
			continue
		}
		if g := derivative(e.Op, a, i, out[0]); g != nil {
			grads[i] = unbroadcast(g, v)
		}
	}
	return grads
}

// derivative returns g times the derivative of an element-wise operation with respect to
// argument i, in the shape of g. It is nil if there is none.
func derivative(op array.Opcode, a *fgraph.Apply, i int, g *fgraph.Variable) *fgraph.Variable {
	if f := unaryDerivatives[op]; f != nil {
		return f(a.Inputs()[0], a.Out(), g)
	}
	in, y := a.Inputs(), a.Out()
	x := in[0]
	switch op {
	case array.Add:
		return g
	case array.Second:
		if i == 0 {
			return ZerosLike(x)
		}
		return g
	case array.Switch:
		return choose(x, i-1, g)
	case array.Mul:
		factors := []*fgraph.Variable{g}
		for k, v := range in {
			if k != i {
				factors = append(factors, v)
			}
		}
		return Mul(factors...)
	case array.IntDiv:
		return ZerosLike(g)
	case array.Maximum: // if both are equal, the first one gets the gradient
		return choose(Map(array.Ge, x, in[1]), i, g)
	case array.Minimum:
		return choose(Map(array.Le, x, in[1]), i, g)
	case array.LogAddExp:
		// exp(x)/(exp(x)+exp(y)) is sigmoid(x-y), in which nothing overflows.
		return Mul(g, Sigmoid(Sub(in[i], in[1-i])))
	}
	if f := binaryDerivatives[op]; f[0] != nil {
		return f[i](x, in[1], y, g)
	}
	return nil
}

// choose passes the gradient to the first of two arguments where the condition holds, and to the
// second one elsewhere.
func choose(first *fgraph.Variable, i int, g *fgraph.Variable) *fgraph.Variable {
	if i == 0 {
		return Switch(first, g, Number(0, g))
	}
	return Switch(first, Number(0, g), g)
}

// binaryDerivatives return g times the derivatives of z = op(x, y) with respect to x and y.
var binaryDerivatives = map[array.Opcode][2]func(x, y, z, g *fgraph.Variable) *fgraph.Variable{
	array.Sub: {
		func(_, _, _, g *fgraph.Variable) *fgraph.Variable { return g },
		func(_, _, _, g *fgraph.Variable) *fgraph.Variable { return Neg(g) },
	},
	array.TrueDiv: {
		func(_, y, _, g *fgraph.Variable) *fgraph.Variable { return TrueDiv(g, y) },
		func(_, y, z, g *fgraph.Variable) *fgraph.Variable { return Neg(TrueDiv(Mul(g, z), y)) },
	},
	array.Mod: {
		func(_, _, _, g *fgraph.Variable) *fgraph.Variable { return g },
		func(x, y, _, g *fgraph.Variable) *fgraph.Variable { return Neg(Mul(g, Map(array.IntDiv, x, y))) },
	},
	array.Pow: {
		func(x, y, _, g *fgraph.Variable) *fgraph.Variable {
			return Mul(g, y, Pow(nonzeroBase(x, y), Sub(y, Number(1, y))))
		},
		// At x = 0 it is -∞ for negative y, otherwise 0; y = 0, at which 0^y jumps, is Theano's convention.
		func(x, y, z, g *fgraph.Variable) *fgraph.Variable {
			atZero := Switch(Map(array.Lt, y, Number(0, y)), Number(math.Inf(-1), z), Number(0, z))
			return Mul(g, Switch(Map(array.Eq, x, Number(0, x)), atZero, Mul(z, Log(x))))
		},
	},
	array.Xlogy: {
		func(_, y, _, g *fgraph.Variable) *fgraph.Variable { return Mul(g, Log(y)) },
		func(x, y, _, g *fgraph.Variable) *fgraph.Variable { return unlessZero(x, TrueDiv(Mul(g, x), y)) },
	},
	array.Xlog1py: {
		func(_, y, _, g *fgraph.Variable) *fgraph.Variable { return Mul(g, Map(array.Log1p, y)) },
		func(x, y, _, g *fgraph.Variable) *fgraph.Variable {
			return unlessZero(x, TrueDiv(Mul(g, x), Add(Number(1, y), y)))
		},
	},
	array.Copysign: {
		func(x, y, _, g *fgraph.Variable) *fgraph.Variable {
			return Mul(g, Map(array.Sgn, x), Map(array.Copysign, Number(1, y), y))
		},
		func(_, _, _, g *fgraph.Variable) *fgraph.Variable { return ZerosLike(g) },
	},
	array.Hypot: {
		func(x, _, z, g *fgraph.Variable) *fgraph.Variable { return unlessZero(z, TrueDiv(Mul(g, x), z)) },
		func(_, y, z, g *fgraph.Variable) *fgraph.Variable { return unlessZero(z, TrueDiv(Mul(g, y), z)) },
	},
	array.Polygamma: {
		func(_, _, _, g *fgraph.Variable) *fgraph.Variable { return nil }, // the order is an integer
		func(x, y, _, g *fgraph.Variable) *fgraph.Variable {
			return Mul(g, Map(array.Polygamma, Add(x, Number(1, x)), y))
		},
	},
	array.Arctan2: {
		func(x, y, _, g *fgraph.Variable) *fgraph.Variable { return TrueDiv(Mul(g, y), Add(Sqr(x), Sqr(y))) },
		func(x, y, _, g *fgraph.Variable) *fgraph.Variable {
			return Neg(TrueDiv(Mul(g, x), Add(Sqr(x), Sqr(y))))
		},
	},
}

// unaryDerivatives return g times the derivative of y = op(x).
var unaryDerivatives = map[array.Opcode]func(x, y, g *fgraph.Variable) *fgraph.Variable{
	array.Identity: func(x, y, g *fgraph.Variable) *fgraph.Variable { return g },
	array.Neg:      func(x, y, g *fgraph.Variable) *fgraph.Variable { return Neg(g) },
	array.Inv:      func(x, y, g *fgraph.Variable) *fgraph.Variable { return Neg(Mul(g, Sqr(y))) },
	array.Abs:      func(x, y, g *fgraph.Variable) *fgraph.Variable { return Mul(g, Map(array.Sgn, x)) },
	array.Sqr:      func(x, y, g *fgraph.Variable) *fgraph.Variable { return Mul(Number(2, g), g, x) },
	array.Sqrt:     func(x, y, g *fgraph.Variable) *fgraph.Variable { return TrueDiv(Mul(Number(0.5, g), g), y) },
	array.Exp:      func(x, y, g *fgraph.Variable) *fgraph.Variable { return Mul(g, y) },
	array.Expm1:    func(x, y, g *fgraph.Variable) *fgraph.Variable { return Mul(g, Exp(x)) },
	array.Exp2:     func(x, y, g *fgraph.Variable) *fgraph.Variable { return Mul(Number(math.Ln2, g), g, y) },
	array.Log:      func(x, y, g *fgraph.Variable) *fgraph.Variable { return TrueDiv(g, x) },
	array.Log1p:    func(x, y, g *fgraph.Variable) *fgraph.Variable { return TrueDiv(g, Add(Number(1, g), x)) },
	array.Log2:     func(x, y, g *fgraph.Variable) *fgraph.Variable { return TrueDiv(g, Mul(Number(math.Ln2, g), x)) },
	array.Log10:    func(x, y, g *fgraph.Variable) *fgraph.Variable { return TrueDiv(g, Mul(Number(math.Ln10, g), x)) },
	array.Sigmoid:  func(x, y, g *fgraph.Variable) *fgraph.Variable { return Mul(g, y, Sub(Number(1, g), y)) },
	array.Softplus: func(x, y, g *fgraph.Variable) *fgraph.Variable { return Mul(g, Sigmoid(x)) },
	array.Erf:      func(x, y, g *fgraph.Variable) *fgraph.Variable { return gaussian(2, x, g) },
	array.Erfc:     func(x, y, g *fgraph.Variable) *fgraph.Variable { return gaussian(-2, x, g) },
	array.Sin:      func(x, y, g *fgraph.Variable) *fgraph.Variable { return Mul(g, Cos(x)) },
	array.Cos:      func(x, y, g *fgraph.Variable) *fgraph.Variable { return Neg(Mul(g, Sin(x))) },
	array.Tan:      func(x, y, g *fgraph.Variable) *fgraph.Variable { return Mul(g, Add(Number(1, g), Sqr(y))) },
	array.Arcsin:   func(x, y, g *fgraph.Variable) *fgraph.Variable { return TrueDiv(g, Sqrt(Sub(Number(1, g), Sqr(x)))) },
	array.Arccos: func(x, y, g *fgraph.Variable) *fgraph.Variable {
		return Neg(TrueDiv(g, Sqrt(Sub(Number(1, g), Sqr(x)))))
	},
	array.Arctan:  func(x, y, g *fgraph.Variable) *fgraph.Variable { return TrueDiv(g, Add(Number(1, g), Sqr(x))) },
	array.Sinh:    func(x, y, g *fgraph.Variable) *fgraph.Variable { return Mul(g, Map(array.Cosh, x)) },
	array.Cosh:    func(x, y, g *fgraph.Variable) *fgraph.Variable { return Mul(g, Map(array.Sinh, x)) },
	array.Tanh:    func(x, y, g *fgraph.Variable) *fgraph.Variable { return Mul(g, Sub(Number(1, g), Sqr(y))) },
	array.Arcsinh: func(x, y, g *fgraph.Variable) *fgraph.Variable { return TrueDiv(g, Sqrt(Add(Sqr(x), Number(1, g)))) },
	array.Arccosh: func(x, y, g *fgraph.Variable) *fgraph.Variable { return TrueDiv(g, Sqrt(Sub(Sqr(x), Number(1, g)))) },
	array.Arctanh: func(x, y, g *fgraph.Variable) *fgraph.Variable { return TrueDiv(g, Sub(Number(1, g), Sqr(x))) },
	array.Deg2rad: func(x, y, g *fgraph.Variable) *fgraph.Variable { return Mul(Number(math.Pi/180, g), g) },
	array.Rad2deg: func(x, y, g *fgraph.Variable) *fgraph.Variable { return Mul(Number(180/math.Pi, g), g) },
	array.Gamma:   func(x, y, g *fgraph.Variable) *fgraph.Variable { return Mul(g, y, Map(array.Psi, x)) },
	array.GammaLn: func(x, y, g *fgraph.Variable) *fgraph.Variable { return Mul(g, Map(array.Psi, x)) },
	array.Psi:     func(x, y, g *fgraph.Variable) *fgraph.Variable { return Mul(g, Map(array.Polygamma, Number(1, x), x)) },
	array.Erfinv:  func(x, y, g *fgraph.Variable) *fgraph.Variable { return inverseGaussian(1, y, g) },
	array.Erfcinv: func(x, y, g *fgraph.Variable) *fgraph.Variable { return inverseGaussian(-1, y, g) },
	// Not -1/expm1(-x), which is +∞ at 0.
	array.Log1mexp: func(x, y, g *fgraph.Variable) *fgraph.Variable { return Neg(Mul(g, Exp(Sub(x, y)))) },
	array.Erfcx: func(x, y, g *fgraph.Variable) *fgraph.Variable {
		return Mul(Number(2, g), g, Sub(Mul(x, y), Number(1/math.Sqrt(math.Pi), y)))
	},
	array.Cbrt: func(x, y, g *fgraph.Variable) *fgraph.Variable { return TrueDiv(g, Mul(Number(3, g), Sqr(y))) },
	array.Sgn:  flat, array.Floor: flat, array.Ceil: flat, array.Trunc: flat, array.Round: flat,
}

// nonzeroBase returns x with 1 in place of 0 where the exponent y is 0. There y·x^(y-1) is 0·∞, and right is 0, as
// x^0 is 1 everywhere; with another base it and its derivatives are.
func nonzeroBase(x, y *fgraph.Variable) *fgraph.Variable {
	zero := func(v *fgraph.Variable) *fgraph.Variable { return Map(array.Eq, v, Number(0, v)) }
	return Switch(Map(array.And, zero(x), zero(y)), Number(1, x), x)
}

// unlessZero returns v where x is not 0, and 0 elsewhere.
func unlessZero(x, v *fgraph.Variable) *fgraph.Variable {
	return Switch(Map(array.Eq, x, Number(0, x)), Number(0, v), v)
}

// flat is the derivative of a step function.
func flat(_, _, g *fgraph.Variable) *fgraph.Variable { return ZerosLike(g) }

// gaussian returns g times the derivative of scale/2·erf(x).
func gaussian(scale float64, x, g *fgraph.Variable) *fgraph.Variable {
	return Mul(Number(scale/math.Sqrt(math.Pi), g), g, Exp(Neg(Sqr(x))))
}

// inverseGaussian returns g times the derivative of scale·erfinv, whose value is y.
func inverseGaussian(scale float64, y, g *fgraph.Variable) *fgraph.Variable {
	return Mul(Number(scale*math.Sqrt(math.Pi)/2, g), g, Exp(Sqr(y)))
}
