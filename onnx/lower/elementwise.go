package lower

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// operators are ONNX's operators by name, with the domain unless that is ONNX's own.
var operators map[string]func(c *call) []*value

func init() {
	operators = make(map[string]func(c *call) []*value)
	for _, table := range []map[string]func(c *call) []*value{elementwise, activations, shapes, reshapes, slicing, reductions, norms, windows, products, indexing, detection, signals, control, sequences, attention, blockCodes, recurrent, textual, learned, contributed} {
		for name, f := range table {
			operators[name] = f
		}
	}
}

type variable = *fgraph.Variable

// unary lowers an operator of one tensor.
func unary(f func(c *call, x variable) variable) func(*call) []*value {
	return func(c *call) []*value { return c.like(f(c, c.x(0))) }
}

// gelu multiplies x by the probability that a normal variable is less than it. Where x is far below zero, its definition
// 1 + erf(x/√2) would leave few bits of that: 12 units of the last place of 1 at -4.96.
func gelu(x variable) variable {
	below := tensor.Map(array.Erfc, tensor.Neg(tensor.TrueDiv(x, number(math.Sqrt2, x))))
	return tensor.Mul(tensor.Mul(x, below), number(0.5, x))
}

// mapped lowers an operator that is one of tensors'.
func mapped(op array.Opcode) func(*call) []*value {
	return unary(func(_ *call, x variable) variable { return tensor.Map(op, x) })
}

// folded lowers an operator of any number of tensors.
func folded(f func(x, y variable) variable) func(*call) []*value {
	return func(c *call) []*value {
		v := c.x(0)
		for k := 1; k < len(c.in); k++ {
			v = f(v, c.x(k))
		}
		return c.like(v)
	}
}

// binaryOp lowers an operator of two tensors with the type of the first.
func binaryOp(f func(c *call, x, y variable) variable) func(*call) []*value {
	return func(c *call) []*value { return c.like(f(c, c.x(0), c.x(1))) }
}

// comparison lowers an operator whose result is a tensor of bools.
func comparison(op array.Opcode) func(*call) []*value {
	return func(c *call) []*value { return c.out(tensor.Map(op, c.x(0), c.x(1)), onnx.Bool) }
}

// logic lowers an operator of bools.
func logic(op array.Opcode) func(*call) []*value {
	return func(c *call) []*value { return c.out(tensor.Map(op, truth(c.x(0)), truth(c.x(1))), onnx.Bool) }
}

var elementwise = map[string]func(c *call) []*value{
	"Abs": mapped(array.Abs), "Neg": mapped(array.Neg), "Sign": mapped(array.Sgn), "Sqrt": mapped(array.Sqrt), "Exp": mapped(array.Exp), "Log": mapped(array.Log),
	"Floor": mapped(array.Floor), "Ceil": mapped(array.Ceil), "Round": mapped(array.Round), "Reciprocal": mapped(array.Inv), "Erf": mapped(array.Erf),
	"Sin": mapped(array.Sin), "Cos": mapped(array.Cos), "Tan": mapped(array.Tan), "Asin": mapped(array.Arcsin), "Acos": mapped(array.Arccos), "Atan": mapped(array.Arctan),
	"Sinh": mapped(array.Sinh), "Cosh": mapped(array.Cosh), "Tanh": mapped(array.Tanh), "Asinh": mapped(array.Arcsinh), "Acosh": mapped(array.Arccosh), "Atanh": mapped(array.Arctanh),
	"Sigmoid": mapped(array.Sigmoid), "Softplus": mapped(array.Softplus),
	"Identity": func(c *call) []*value {
		c.failIf(!c.has(0), "input 0 is missing")
		return []*value{c.in[0]} // which may be a sequence
	},
	"Add": binaryOp(func(_ *call, x, y variable) variable { return tensor.Add(x, y) }),
	"Sub": binaryOp(func(_ *call, x, y variable) variable { return tensor.Sub(x, y) }),
	"Mul": binaryOp(func(_ *call, x, y variable) variable { return tensor.Mul(x, y) }),
	"Div": binaryOp(divide),
	"Mod": binaryOp(modulo),
	"Pow": binaryOp(func(_ *call, x, y variable) variable { return tensor.Pow(x, y) }),
	"PRelu": binaryOp(func(c *call, x, slope variable) variable {
		// Before opset 7 there is a slope for each channel.
		if n := ndim(x); c.opset < 7 && ndim(slope) == 1 && n > 2 {
			shape := slices.Repeat([]int{1}, n-1)
			shape[0] = c.shape(slope)[0]
			slope = c.reshape(slope, shape)
		}
		return tensor.Switch(tensor.Map(array.Lt, x, number(0, x)), tensor.Mul(x, slope), x)
	}),
	"Sum": folded(func(x, y variable) variable { return tensor.Add(x, y) }),
	"Max": folded(tensor.Maximum), "Min": folded(tensor.Minimum),
	"Mean": func(c *call) []*value {
		v := c.x(0)
		for k := 1; k < len(c.in); k++ {
			v = tensor.Add(v, c.x(k))
		}
		return c.like(tensor.TrueDiv(v, number(float64(len(c.in)), v)))
	},
	"Equal": comparison(array.Eq), "Less": comparison(array.Lt), "LessOrEqual": comparison(array.Le), "Greater": comparison(array.Gt), "GreaterOrEqual": comparison(array.Ge),
	"And": logic(array.And), "Or": logic(array.Or), "Xor": logic(array.Xor),
	"Not":        func(c *call) []*value { return c.out(tensor.Map(array.Invert, truth(c.x(0))), onnx.Bool) },
	"BitwiseAnd": binaryOp(func(_ *call, x, y variable) variable { return tensor.Map(array.And, x, y) }),
	"BitwiseOr":  binaryOp(func(_ *call, x, y variable) variable { return tensor.Map(array.Or, x, y) }),
	"BitwiseXor": binaryOp(func(_ *call, x, y variable) variable { return tensor.Map(array.Xor, x, y) }),
	"BitwiseNot": mapped(array.Invert),
	"BitShift": func(c *call) []*value {
		// Two to the power of at least as many bits as there are wraps around to 0. Then nothing is left,
		// since a quotient by 0 is 0, too.
		x := c.x(0)
		by := tensor.Pow(number(2, x), c.x(1))
		if c.text("direction", "") == "RIGHT" {
			return c.like(tensor.Map(array.IntDiv, x, by))
		}
		return c.like(tensor.Mul(x, by))
	},
	"IsNaN": func(c *call) []*value { return c.out(tensor.Map(array.IsNan, c.x(0)), onnx.Bool) },
	"IsInf": func(c *call) []*value {
		x := c.x(0)
		inf := tensor.Map(array.IsInf, x)
		if !c.bool("detect_negative", true) {
			inf = tensor.Map(array.And, inf, tensor.Map(array.Gt, x, number(0, x)))
		}
		if !c.bool("detect_positive", true) {
			inf = tensor.Map(array.And, inf, tensor.Map(array.Lt, x, number(0, x)))
		}
		return c.out(inf, onnx.Bool)
	},
	"Where": func(c *call) []*value { return c.out(tensor.Switch(truth(c.x(0)), c.x(1), c.x(2)), c.elem(1)) },
	"Clip": func(c *call) []*value {
		x := c.x(0)
		if c.has(1) {
			x = tensor.Maximum(x, tensor.Cast(c.bound(1), tensor.TypeOf(x).DType()))
		}
		if c.has(2) {
			x = tensor.Minimum(x, tensor.Cast(c.bound(2), tensor.TypeOf(x).DType()))
		}
		return c.like(x)
	},
	"Cast":     func(c *call) []*value { return c.cast(onnx.DataType(c.int("to", 0))) },
	"CastLike": func(c *call) []*value { return c.cast(c.elem(1)) },
	"BitCast":  (*call).bitCast,
	"Dropout": func(c *call) []*value {
		if training := c.has(2) && c.one(2) != 0; training && !(c.has(1) && c.one(1) == 0) {
			c.fail("%w: training", ErrUnsupported)
		}
		return []*value{c.in[0], c.typed(tensor.Map(array.Eq, c.x(0), c.x(0)), onnx.Bool)}
	},
}

// divide rounds quotients of integers towards zero.
func divide(_ *call, x, y variable) variable {
	if tensor.TypeOf(x).DType().IsFloat() {
		return tensor.TrueDiv(x, y)
	}
	// The quotient of tensors is rounded down, so signs are put aside and come back.
	q := tensor.Map(array.IntDiv, tensor.Abs(x), tensor.Abs(y))
	return tensor.Mul(q, tensor.Mul(tensor.Map(array.Sgn, x), tensor.Map(array.Sgn, y)))
}

// modulo has the sign of the divisor or, with fmod, that of the dividend.
func modulo(c *call, x, y variable) variable {
	if !c.bool("fmod", false) {
		return tensor.Map(array.Mod, x, y)
	}
	// The remainder of tensors has the sign of the divisor, so signs are put aside here, too.
	r := tensor.Map(array.Mod, tensor.Abs(x), tensor.Abs(y))
	return tensor.Switch(tensor.Map(array.Lt, x, number(0, x)), tensor.Neg(r), r)
}

var activations = map[string]func(c *call) []*value{
	"Relu":      unary(func(_ *call, x variable) variable { return tensor.Maximum(x, number(0, x)) }),
	"LeakyRelu": unary(func(c *call, x variable) variable { return leakyRelu(x, c.float("alpha", 0.01)) }),
	"Elu":       unary(func(c *call, x variable) variable { return elu(x, c.float("alpha", 1)) }),
	"Selu": unary(func(c *call, x variable) variable {
		alpha, gamma := c.float("alpha", 1.67326319217681884765625), c.float("gamma", 1.05070102214813232421875)
		return tensor.Mul(number(gamma, x), elu(x, alpha))
	}),
	"Celu": unary(func(c *call, x variable) variable {
		alpha, zero := number(c.float("alpha", 1), x), number(0, x)
		return tensor.Add(tensor.Maximum(x, zero), tensor.Mul(alpha, tensor.Map(array.Expm1, tensor.TrueDiv(tensor.Minimum(x, zero), alpha))))
	}),
	"ThresholdedRelu": unary(func(c *call, x variable) variable { return thresholdedRelu(x, c.float("alpha", 1)) }),
	"HardSigmoid":     unary(func(c *call, x variable) variable { return hardSigmoid(x, c.float("alpha", 0.2), c.float("beta", 0.5)) }),
	"HardSwish":       unary(func(_ *call, x variable) variable { return tensor.Mul(x, hardSigmoid(x, 1.0/6, 0.5)) }),
	"Softsign":        unary(func(_ *call, x variable) variable { return softsign(x) }),
	"Mish":            unary(func(_ *call, x variable) variable { return tensor.Mul(x, tensor.Tanh(tensor.Softplus(x))) }),
	"Swish": unary(func(c *call, x variable) variable {
		return tensor.Mul(x, tensor.Sigmoid(tensor.Mul(number(c.float("alpha", 1), x), x)))
	}),
	"Gelu": unary(func(c *call, x variable) variable {
		if c.text("approximate", "none") == "none" {
			return gelu(x)
		}
		cube := tensor.Mul(number(0.044715, x), tensor.Mul(x, tensor.Mul(x, x)))
		tanh := tensor.Tanh(tensor.Mul(number(math.Sqrt(2/math.Pi), x), tensor.Add(x, cube)))
		return tensor.Mul(tensor.Mul(number(0.5, x), x), tensor.Add(number(1, x), tanh))
	}),
	"com.microsoft.Gelu":     unary(func(_ *call, x variable) variable { return gelu(x) }),
	"com.microsoft.BiasGelu": func(c *call) []*value { return c.like(gelu(tensor.Add(c.x(0), c.x(1)))) },
	"Shrink": unary(func(c *call, x variable) variable {
		lambda, bias := number(c.float("lambd", 0.5), x), number(c.float("bias", 0), x)
		zero := number(0, x)
		up := tensor.Switch(tensor.Map(array.Gt, x, lambda), tensor.Sub(x, bias), zero)
		return tensor.Switch(tensor.Map(array.Lt, x, tensor.Neg(lambda)), tensor.Add(x, bias), up)
	}),
	"Softmax":    func(c *call) []*value { return c.softmax(tensor.Softmax) },
	"LogSoftmax": func(c *call) []*value { return c.softmax(tensor.LogSoftmax) },
	"Hardmax": func(c *call) []*value {
		return c.softmax(func(x variable) variable {
			n := c.shape(x)
			if n[1] == 0 {
				return x // a row without elements has no largest one
			}
			at := tensor.ExpandDims(tensor.Argmax(x, 1), 1)
			return tensor.Cast(tensor.Map(array.Eq, tensor.DimShuffle(arange(n[1]), -1, 0), at), tensor.TypeOf(x).DType())
		})
	},
}

// negative returns y where x is negative, and x elsewhere.
func negative(x, y variable) variable {
	return tensor.Switch(tensor.Map(array.Lt, x, number(0, x)), y, x)
}

func leakyRelu(x variable, alpha float64) variable {
	return negative(x, tensor.Mul(x, number(alpha, x)))
}

// elu is a sum of which one term is zero, because sums and maxima are faster than a choice.
func elu(x variable, alpha float64) variable {
	zero := number(0, x)
	return tensor.Add(tensor.Maximum(x, zero), tensor.Mul(number(alpha, x), tensor.Map(array.Expm1, tensor.Minimum(x, zero))))
}

func thresholdedRelu(x variable, alpha float64) variable {
	return tensor.Switch(tensor.Map(array.Gt, x, number(alpha, x)), x, number(0, x))
}

func softsign(x variable) variable {
	return tensor.TrueDiv(x, tensor.Add(number(1, x), tensor.Abs(x)))
}

func hardSigmoid(x variable, alpha, beta float64) variable {
	y := tensor.Add(tensor.Mul(number(alpha, x), x), number(beta, x))
	return tensor.Maximum(number(0, x), tensor.Minimum(number(1, x), y))
}

// softmax applies a function of the rows of a matrix along an axis. Before opset 13, all dimensions
// from the axis on are one.
func (c *call) softmax(f func(variable) variable) []*value {
	x := c.x(0)
	n, dims := ndim(x), c.dims(x)
	if c.opset < 13 {
		axis := c.axis(c.int("axis", 1), max(n, 1))
		return c.like(c.reshapeTo(f(c.reshapeTo(x, []ir.Dim{together(dims[:axis]), together(dims[axis:])})), dims))
	}
	return c.like(c.alongAxis(f, x, c.axis(c.int("axis", -1), n)))
}

// alongAxis applies a function of the rows of a matrix along an axis.
func (c *call) alongAxis(f func(variable) variable, x variable, axis int) variable {
	n := ndim(x)
	last := tensor.MoveAxes(x, []int{axis}, []int{n - 1})
	dims := c.dims(x)
	moved := append(slices.Delete(slices.Clone(dims), axis, axis+1), dims[axis])
	y := c.reshapeTo(f(c.reshapeTo(last, []ir.Dim{together(moved[:n-1]), moved[n-1]})), moved)
	return tensor.MoveAxes(y, []int{n - 1}, []int{axis})
}

func product(list []int) int {
	n := 1
	for _, v := range list {
		n *= v
	}
	return n
}

// bound returns an input that is one number, without the dimension that some programs give it.
func (c *call) bound(k int) *fgraph.Variable {
	v := c.x(k)
	if ndim(v) == 0 {
		return v
	}
	return c.reshape(v, nil)
}
