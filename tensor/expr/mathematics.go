package expr

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// mathematics holds the functions that compute numbers, under the names and with the arguments of
// NumPy and of scipy.special.
var mathematics = map[string]function{
	"matmul": pairOf(tensor.Matmul), "inner": pairOf(inner), "vdot": pairOf(vdot), "tensordot": tensordot, "einsum": einsum,
	"batched_dot": pairOf(batchedDot),
	"cumsum":      cumulative(tensor.Cumsum), "cumprod": cumulative(tensor.Cumprod), "sort": sorted(tensor.Sort), "argsort": sorted(tensor.Argsort),
	"argmax": folding(tensor.Argmax), "argmin": folding(tensor.Argmin), "ptp": folding(span),
	"amax": func(c *call) *fgraph.Variable { return c.reduce(array.Max) }, "amin": func(c *call) *fgraph.Variable { return c.reduce(array.Min) },
	"var": variance, "std": func(c *call) *fgraph.Variable { return tensor.Sqrt(variance(c)) },

	"digamma": mapped(array.Psi), "loggamma": mapped(array.GammaLn), "expit": mapped(array.Sigmoid), "rint": mapped(array.Round),
	"absolute": mapped(array.Abs), "fix": mapped(array.Trunc), "degrees": mapped(array.Rad2deg), "radians": mapped(array.Deg2rad),
	"tri_gamma": unaryOf(trigamma), "polygamma": polygamma, "trigamma": unaryOf(trigamma), "xlogx": unaryOf(func(x *fgraph.Variable) *fgraph.Variable { return tensor.Map(array.Xlogy, x, x) }),
	"log_sigmoid": unaryOf(logSigmoid), "log_expit": unaryOf(logSigmoid), "logit": unaryOf(logit), "sinc": unaryOf(sinc),
	"isfinite": unaryOf(isFinite), "isclose": isClose, "allclose": func(c *call) *fgraph.Variable { return tensor.ReduceOver(array.All, isClose(c)) },
	"logical_and": logicalOf(array.And), "logical_or": logicalOf(array.Or), "logical_xor": logicalOf(array.Xor), "logical_not": logicalOf(array.Invert),
	"count_nonzero": folding(func(x *fgraph.Variable, axes ...int) *fgraph.Variable { return tensor.Sum(nonZero(x), axes...) }),

	"subtract": mapped(array.Sub), "multiply": mapped(array.Mul), "true_divide": mapped(array.TrueDiv), "floor_divide": mapped(array.IntDiv), "remainder": mapped(array.Mod),
	"equal": mapped(array.Eq), "not_equal": mapped(array.Neq), "less": mapped(array.Lt), "less_equal": mapped(array.Le), "greater": mapped(array.Gt), "greater_equal": mapped(array.Ge),
	"bitwise_and": mapped(array.And), "bitwise_or": mapped(array.Or), "bitwise_xor": mapped(array.Xor), "bitwise_not": mapped(array.Invert),
}

// inner sums over the last dimensions.
func inner(x, y *fgraph.Variable) *fgraph.Variable {
	if tensor.TypeOf(x).NDim() == 0 || tensor.TypeOf(y).NDim() == 0 {
		return tensor.Mul(x, y)
	}
	return tensor.Tensordot(x, y, []int{-1}, []int{-1})
}

func vdot(x, y *fgraph.Variable) *fgraph.Variable {
	return tensor.Dot(flat(x), flat(y))
}

// tensordot takes a number of dimensions, the last ones of a and the first ones of b, or two lists.
func tensordot(c *call) *fgraph.Variable {
	c.count(3)
	in := tensors(c.name, []value{c.need(0, "a"), c.need(1, "b")})
	axes, ok := c.arg(2, "axes")
	if !ok {
		axes = value{kind: kindNumber, num: intNumber(2)}
	}
	if axes.kind != kindList {
		n, ndim := axes.integer(c.name), tensor.TypeOf(in[0]).NDim()
		if n < 0 || n > ndim || n > tensor.TypeOf(in[1]).NDim() {
			fail(c.name, "%d dimensions of a %v and a %v", n, in[0].Type(), in[1].Type())
		}
		return tensor.Tensordot(in[0], in[1], dims(ndim-n, ndim), dims(0, n))
	}
	if len(axes.list) != 2 {
		fail(c.name, "axes are a number, or two lists of dimensions")
	}
	return tensor.Tensordot(in[0], in[1], axes.list[0].integers(c.name), axes.list[1].integers(c.name))
}

// batchedDot returns the products over the first dimension, which both have, as Theano's does.
func batchedDot(x, y *fgraph.Variable) *fgraph.Variable {
	n, m := tensor.TypeOf(x).NDim(), tensor.TypeOf(y).NDim()
	if n < 2 || n > 3 || m < 2 || m > 3 {
		fail("batched_dot", "a %v and a %v, not tensors of two or three dimensions", x.Type(), y.Type())
	}
	return tensor.Einsum([]string{"bj", "bij"}[n-2]+","+[]string{"bj", "bjk"}[m-2]+"->b"+[]string{"", "i"}[n-2]+[]string{"", "k"}[m-2], x, y)
}

// einsum ignores the argument optimize: the order is always a good one.
func einsum(c *call) *fgraph.Variable {
	text := c.need(0, "subscripts")
	if text.kind != kindName {
		fail(c.name, "a text such as 'ij,jk->ik' is expected")
	}
	c.arg(-1, "optimize")
	return tensor.Einsum(text.text, tensors(c.name, c.rest(1))...)
}

// cumulative returns the function that applies f along a dimension, or to all elements if there is
// no axis.
func cumulative(f func(x *fgraph.Variable, axis int) *fgraph.Variable) function {
	return func(c *call) *fgraph.Variable {
		c.count(2)
		x := c.tensor(0, "a")
		axis, ok := c.arg(1, "axis")
		if d, typed := c.arg(-1, "dtype"); typed && d.kind != kindNone {
			x = tensor.Cast(x, d.dtype(c.name))
		}
		if !ok || axis.kind == kindNone {
			return f(flat(x), 0)
		}
		return f(x, axis.integer(c.name))
	}
}

// sorted returns the function that applies f along a dimension, the last one if there is no axis,
// or to all elements if it is None. All kinds of sorting are stable.
func sorted(f func(x *fgraph.Variable, axis int) *fgraph.Variable) function {
	return func(c *call) *fgraph.Variable {
		c.count(2)
		x := c.tensor(0, "a")
		if kind, ok := c.arg(-1, "kind"); ok && !(kind.kind == kindName && slices.Contains([]string{"quicksort", "mergesort", "heapsort", "stable"}, kind.text)) {
			fail(c.name, "kind is 'quicksort', 'mergesort', 'heapsort' or 'stable'")
		}
		switch axis, ok := c.arg(1, "axis"); {
		case !ok:
			return f(x, -1)
		case axis.kind != kindNone:
			return f(x, axis.integer(c.name))
		}
		return f(flat(x), 0)
	}
}

// span returns the distance between maximum and minimum.
func span(x *fgraph.Variable, axes ...int) *fgraph.Variable {
	return tensor.Sub(tensor.ReduceOver(array.Max, x, axes...), tensor.ReduceOver(array.Min, x, axes...))
}

// variance returns the sum of squared distances from the mean, over the number of elements less
// ddof.
func variance(c *call) *fgraph.Variable {
	ddof, ok := c.arg(-1, "ddof")
	return folding(func(x *fgraph.Variable, axes ...int) *fgraph.Variable {
		mean := tensor.KeepDims(tensor.Mean(x, axes...), x, axes...)
		squares := tensor.Sqr(tensor.Sub(x, mean))
		if !ok || ddof.kind == kindNumber && ddof.num.f == 0 {
			return tensor.Mean(squares, axes...)
		}
		n := tensors(c.name, []value{tensorValue(squares), ddof})
		count := tensor.Cast(tensor.CountOver(x, axes...), tensor.TypeOf(squares).DType())
		return tensor.TrueDiv(tensor.Sum(squares, axes...), tensor.Sub(count, n[1]))
	})(c)
}

func trigamma(x *fgraph.Variable) *fgraph.Variable {
	return tensor.Map(array.Polygamma, tensor.Constant(array.Full(tensor.TypeOf(x).DType(), 1)), x)
}

// polygamma takes the order first. An order that is an integer takes the type of x.
func polygamma(c *call) *fgraph.Variable {
	in := c.tensors("n", "x")
	if d := tensor.TypeOf(in[1]).DType(); d.IsFloat() && !tensor.TypeOf(in[0]).DType().IsFloat() {
		in[0] = tensor.Cast(in[0], d)
	}
	return tensor.Map(array.Polygamma, in...)
}

// logSigmoid returns log(1/(1 + exp(-x))).
func logSigmoid(x *fgraph.Variable) *fgraph.Variable {
	// Far below 0 a sigmoid is 0, whose logarithm is infinite. This form has x there.
	return tensor.Neg(tensor.Softplus(tensor.Neg(x)))
}

// logit returns the number whose sigmoid is x.
func logit(x *fgraph.Variable) *fgraph.Variable {
	return tensor.Log(tensor.TrueDiv(x, tensor.Sub(tensor.Number(1, x), x)))
}

// sinc returns sin(πx)/(πx), and 1 at 0.
func sinc(x *fgraph.Variable) *fgraph.Variable {
	zero := tensor.Map(array.Eq, x, tensor.Number(0, x))
	x = tensor.Cast(x, tensor.TypeOf(x).DType().Float())
	// Like NumPy: so close to 0 the quotient is 1, and nothing is divided by 0.
	y := tensor.Mul(tensor.Number(math.Pi, x), tensor.Switch(zero, tensor.Number(1e-20, x), x))
	return tensor.TrueDiv(tensor.Sin(y), y)
}

func isFinite(x *fgraph.Variable) *fgraph.Variable {
	return tensor.Map(array.Invert, tensor.Map(array.Or, tensor.Map(array.IsNan, x), tensor.Map(array.IsInf, x)))
}

// nonZero returns whether the elements are not 0, as bools.
func nonZero(x *fgraph.Variable) *fgraph.Variable {
	if tensor.TypeOf(x).DType() == array.Bool {
		return x
	}
	return tensor.Map(array.Neq, x, tensor.Number(0, x))
}

// logicalOf returns the function that applies an operation on bools to whether elements are not 0.
func logicalOf(op array.Opcode) function {
	return func(c *call) *fgraph.Variable {
		in := tensors(c.name, c.args)
		for i, x := range in {
			in[i] = nonZero(x)
		}
		if n := op.NumArgs(); len(in) != n {
			fail(c.name, "%d arguments, it takes %d", len(in), n)
		}
		return tensor.Map(op, in...)
	}
}

// isClose returns |a-b| ≤ atol + rtol·|b|, and whether both are the same infinity.
func isClose(c *call) *fgraph.Variable {
	c.count(4)
	tolerance := func(i int, name string, missing float64) value {
		if x, ok := c.arg(i, name); ok {
			return x
		}
		return value{kind: kindNumber, num: number{array.Float64, 0, missing}}
	}
	list := []value{c.need(0, "a"), c.need(1, "b"), tolerance(2, "rtol", 1e-5), tolerance(3, "atol", 1e-8)}
	equalNaN, nan := c.arg(-1, "equal_nan")
	in := tensors(c.name, list)
	a, b := in[0], in[1]
	near := tensor.Map(array.Le, tensor.Abs(tensor.Sub(a, b)), tensor.Add(in[3], tensor.Mul(in[2], tensor.Abs(b))))
	// An infinite b would have everything near it.
	close := tensor.Map(array.Or, tensor.Map(array.And, near, isFinite(b)), tensor.Map(array.Eq, a, b))
	if nan && equalNaN.kind == kindNumber && equalNaN.num.f != 0 {
		close = tensor.Map(array.Or, close, tensor.Map(array.And, tensor.Map(array.IsNan, a), tensor.Map(array.IsNan, b)))
	}
	return close
}
