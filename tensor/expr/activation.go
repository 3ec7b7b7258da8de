package expr

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// activations holds functions of neural networks, under the names and with the arguments of
// theano.tensor.nnet, and functions of scipy.special and NumPy that are made of others.
var activations = map[string]function{
	"elu": elu, "selu": unaryOf(selu), "softsign": unaryOf(softsign), "silu": unaryOf(silu), "swish": unaryOf(silu), "hard_sigmoid": unaryOf(hardSigmoid),
	"binary_crossentropy":         binaryOf(binaryCrossentropy, "output", "target"),
	"sigmoid_binary_crossentropy": binaryOf(sigmoidBinaryCrossentropy, "output", "target"),

	"betaln": binaryOf(betaln, "a", "b"), "factorial": unaryOf(factorial), "poch": binaryOf(poch, "z", "m"),
	"isposinf": unaryOf(func(x *fgraph.Variable) *fgraph.Variable { return infinite(x, array.Gt) }),
	"isneginf": unaryOf(func(x *fgraph.Variable) *fgraph.Variable { return infinite(x, array.Lt) }), "nan_to_num": nanToNum,
}

func asFloat(x *fgraph.Variable) *fgraph.Variable {
	return tensor.Cast(x, tensor.TypeOf(x).DType().Float())
}

// elu is x where x is positive, and alpha·(exp(x) - 1) elsewhere.
func elu(c *call) *fgraph.Variable {
	c.count(2)
	alpha, ok := c.arg(1, "alpha")
	if !ok {
		alpha = value{kind: kindNumber, num: intNumber(1)}
	}
	in := tensors(c.name, []value{tensorValue(asFloat(c.tensor(0, "x"))), alpha})
	return eluOf(in[0], in[1])
}

// eluOf takes no exponential of positive numbers, which may overflow.
func eluOf(x, alpha *fgraph.Variable) *fgraph.Variable {
	zero := tensor.Number(0, x)
	below := tensor.Map(array.Expm1, tensor.Minimum(x, zero))
	return tensor.Switch(tensor.Map(array.Gt, x, zero), x, tensor.Mul(alpha, below))
}

// selu is a multiple of elu that keeps mean 0 and variance 1 (Klambauer et al., Self-Normalizing
// Neural Networks).
func selu(x *fgraph.Variable) *fgraph.Variable {
	x = asFloat(x)
	return tensor.Mul(tensor.Number(1.0507009873554805, x), eluOf(x, tensor.Number(1.6732632423543772, x)))
}

// softsign returns x/(1 + |x|).
func softsign(x *fgraph.Variable) *fgraph.Variable {
	return tensor.TrueDiv(x, tensor.Add(tensor.Number(1, x), tensor.Abs(x)))
}

// silu returns x·sigmoid(x).
func silu(x *fgraph.Variable) *fgraph.Variable { return tensor.Mul(x, tensor.Sigmoid(x)) }

// hardSigmoid returns x/5 + ½, but at least 0 and at most 1.
func hardSigmoid(x *fgraph.Variable) *fgraph.Variable {
	x = asFloat(x)
	y := tensor.Add(tensor.Mul(tensor.Number(0.2, x), x), tensor.Number(0.5, x))
	return tensor.Minimum(tensor.Maximum(y, tensor.Number(0, x)), tensor.Number(1, x))
}

// binaryCrossentropy returns -(t·log(p) + (1 - t)·log(1 - p)).
func binaryCrossentropy(p, t *fgraph.Variable) *fgraph.Variable {
	p = asFloat(p)
	rest := tensor.Mul(tensor.Sub(tensor.Number(1, t), t), tensor.Map(array.Log1p, tensor.Neg(p)))
	return tensor.Neg(tensor.Add(tensor.Mul(t, tensor.Log(p)), rest))
}

// sigmoidBinaryCrossentropy is that of sigmoid(x).
func sigmoidBinaryCrossentropy(x, t *fgraph.Variable) *fgraph.Variable {
	return tensor.Sub(tensor.Softplus(x), tensor.Mul(x, t))
}

// betaln returns the logarithm of the absolute value of the beta function.
func betaln(a, b *fgraph.Variable) *fgraph.Variable {
	log := func(x *fgraph.Variable) *fgraph.Variable { return tensor.Map(array.GammaLn, x) }
	return tensor.Sub(tensor.Add(log(a), log(b)), log(tensor.Add(a, b)))
}

// factorial returns gamma(n + 1).
func factorial(n *fgraph.Variable) *fgraph.Variable {
	return tensor.Map(array.Gamma, tensor.Add(n, tensor.Number(1, n)))
}

// poch returns gamma(z + m)/gamma(z), Pochhammer's symbol.
func poch(z, m *fgraph.Variable) *fgraph.Variable {
	return tensor.TrueDiv(tensor.Map(array.Gamma, tensor.Add(z, m)), tensor.Map(array.Gamma, z))
}

// infinite returns whether x is an infinity above or below 0.
func infinite(x *fgraph.Variable, side array.Opcode) *fgraph.Variable {
	return tensor.Map(array.And, tensor.Map(array.IsInf, x), tensor.Map(side, x, tensor.Number(0, x)))
}

// nanToNum replaces NaN by nan, and infinities by posinf and neginf: 0 and the largest numbers, if
// they are missing.
func nanToNum(c *call) *fgraph.Variable {
	x := c.tensor(0, "x")
	d := tensor.TypeOf(x).DType()
	largest := d.Largest()
	missing := []float64{0, largest, -largest}
	var replacements []*fgraph.Variable
	for i, name := range []string{"nan", "posinf", "neginf"} {
		v, ok := c.arg(-1, name)
		if !ok || v.kind == kindNone {
			v = value{kind: kindNumber, num: number{array.Float64, 0, missing[i]}}
		}
		if d.IsFloat() {
			replacements = append(replacements, tensor.Cast(tensors(c.name, []value{tensorValue(x), v})[1], d))
		}
	}
	c.count(1)
	if !d.IsFloat() {
		return x
	}
	y := tensor.Switch(tensor.Map(array.IsNan, x), replacements[0], x)
	y = tensor.Switch(infinite(x, array.Gt), replacements[1], y)
	return tensor.Switch(infinite(x, array.Lt), replacements[2], y)
}
